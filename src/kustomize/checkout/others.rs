//! Finds the folders that Rancher Fleet and Project Sveltos build from a checkout.
//!
//! Fleet makes a bundle of each folder with a `fleet.yaml`. It builds the folder in `kustomize.dir`, or the folder of
//! the bundle if `kustomize.dir` is not set. If the folder has no `kustomization.yaml`, Fleet does not run kustomize.
//! Profiles of Sveltos name a Flux source and a folder in `kustomizationRefs`. Both systems also process files before
//! the build and objects after the build. Portcullis does not reproduce these steps.

use std::sync::Arc;

use serde_json::{Value, json};

use super::object::{Object, ToolObjects, text};
use super::reach::Reaches;
use super::source::{Place, Sources};
use super::{Build, Checkout, Survey};
use crate::kustomize::delivery::SourceRef;
use crate::kustomize::file::NAMES;
use crate::kustomize::options::{Options, Profile};
use crate::kustomize::tree::{Entry, TreePath};
use crate::yaml::{self, Limits};

/// The possible names of the file that makes a folder a Fleet bundle.
const FLEET: [&str; 2] = ["fleet.yaml", "fleet.yml"];

/// Finds the folders of `checkout` that Rancher Fleet and Project Sveltos build, and adds them to `survey`.
/// `tool_objects` contains the profiles of Sveltos, and `sources` the Flux sources to which these profiles refer.
pub(super) fn add(checkout: &Checkout<'_>, tool_objects: &ToolObjects, sources: &Sources<'_>, survey: &mut Survey) {
    let mut reaches = Reaches::new(checkout.tree, checkout.files);
    let bundles = checkout.manifests.iter().filter(|file| FLEET.contains(&file.name()));
    let of_fleet = bundles.flat_map(|file| bundle(checkout, file));
    let of_sveltos = tool_objects.profiles.iter().flat_map(|profile| references(profile, sources));
    for (profile, root, owner) in of_fleet.chain(of_sveltos) {
        let reach = reaches.of(&root, &[]);
        survey.reached.extend(reach.folders);
        survey.reached_files.extend(reach.files);
        let is_same = |build: &&mut Build| build.root == root && build.options.profile == profile;
        match survey.builds.iter_mut().find(is_same) {
            Some(known) => known.owners.push(owner),
            None => {
                let (tree, options) = (Arc::clone(checkout.tree), Options::of(profile));
                survey.builds.push(Build { tree, root, options, owners: vec![owner], is_used: true });
            }
        }
    }
}

/// A folder that Fleet or Sveltos builds: the tool, the folder, and the object that refers to the folder.
type Found = (Profile, TreePath, Object);

/// Returns the folders that Fleet builds with kustomize for a `fleet.yaml`. These are the folder of the bundle, and the
/// folders in `targetCustomizations`. Omits folders without a `kustomization.yaml`.
fn bundle(checkout: &Checkout<'_>, file: &TreePath) -> Vec<Found> {
    let Some(folder) = file.parent() else { return Vec::new() };
    let bytes = checkout.tree.read(file).unwrap_or_else(|_| [].into());
    let (content, limits) = (String::from_utf8_lossy(&bytes), Limits::default());
    let document = yaml::documents(&content, &limits).next().and_then(Result::ok);
    let value = document.map(|document| document.value).unwrap_or_default();
    let name = folder.relative_to(&checkout.git.top);
    let value = merged(value, json!({"kind": "Bundle", "metadata": {"name": name}}));
    let owner = Object { file: file.clone(), line: 1, value };
    let targets = owner.value.get("targetCustomizations").and_then(Value::as_array).into_iter().flatten();
    let mut folders: Vec<_> = targets.map(|target| text(target.pointer("/kustomize/dir"))).collect();
    folders.retain(|dir| !dir.is_empty());
    folders.push(text(owner.value.pointer("/kustomize/dir")));
    let roots = folders.into_iter().map(|dir| TreePath::from(&*format!("{folder}/{dir}")));
    // Without a kustomization file, the folder has plain manifests or a chart.
    let is_root = |root: &TreePath| checkout.tree.entry(&root.join(NAMES[0])) == Some(Entry::File);
    roots.filter(is_root).map(|root| (Profile::Fleet, root, owner.clone())).collect()
}

fn merged(mut value: Value, members: Value) -> Value {
    if let (Some(own), Value::Object(members)) = (value.as_object_mut(), members) {
        own.extend(members);
    }
    value
}

/// Returns the folders that a Sveltos profile names in `kustomizationRefs`. Ignores references to sources other than
/// the checkout, and paths with template parameters.
fn references(profile: &Object, sources: &Sources<'_>) -> Vec<Found> {
    let list = profile.value.pointer("/spec/kustomizationRefs").and_then(Value::as_array).into_iter().flatten();
    let root = |reference: &Value| {
        let member = |key: &str| text(reference.get(key)).to_owned();
        let source = SourceRef { kind: member("kind"), namespace: member("namespace"), name: member("name") };
        let path = Some(member("path")).filter(|path| !path.contains("{{"))?;
        match sources.place(&source) {
            Place::Checkout { top, .. } => Some(TreePath::from(&*format!("{top}/{path}"))),
            Place::Elsewhere(_) => None,
        }
    };
    list.filter_map(root).map(|root| (Profile::Sveltos, root, profile.clone())).collect()
}
