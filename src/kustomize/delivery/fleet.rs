//! Checks Bundles of Rancher Fleet. A Bundle contains all files of a kustomize tree.
//!
//! Source: `Process` in fleet's `internal/helmdeployer/kustomize/kustomize.go`. Fleet builds from an in-memory file
//! system with the files in `spec.resources`. Fleet adds the output of Helm beside the kustomization file, as
//! `fleet-manifests.yaml`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::carried::{self, Encoding, File};
use super::{At, Delivery, FAMILY, Look, Root};
use crate::admission::{FieldPath, Level, Request};
use crate::kustomize::options::{Options, Profile};
use crate::rule::Match;

static MATCHERS: [Match; 1] = [Match::create_or_update("fleet.cattle.io", &["v1alpha1"], "bundles", "Bundle")];

/// The definition of the check `fleet`, which builds the kustomization files in Bundles of Rancher Fleet. In the
/// configuration file, `deliveries.fleet` sets the highest level of its findings, such as `warn`.
pub(super) static DELIVERY: Delivery = Delivery {
    name: "fleet",
    family: FAMILY,
    summary: "the trees in Rancher Fleet's Bundles",
    max_level: Level::Deny,
    limited_by: None,
    matchers: &MATCHERS,
    narrowed: None,
    looks_up: &[],
    live_reads: None,
    ahead: None,
    withhold: None,
    consequences: None,
    look: |request, _| Look { findings: Vec::new(), roots: roots(request) },
};

/// The file to which Fleet writes the output of Helm, next to the kustomization file.
const MANIFESTS: &str = "fleet-manifests.yaml";

fn roots(request: &Request<'_>) -> Vec<Root> {
    let Some(spec) = request.object().get("spec") else { return Vec::new() };
    let Some(resources) = spec.get("resources").and_then(Value::as_array) else { return Vec::new() };
    let field = FieldPath::of(["spec", "resources"]);
    let root = |(dir, field): (String, FieldPath)| Root {
        field,
        of: None,
        content: carried::files(files(resources, &dir)),
        at: At::FolderIfAny(dir),
        options: Options::of(Profile::Fleet),
        late: None,
        follows_revision: false,
    };
    folders(spec, field).into_iter().map(root).collect()
}

/// Returns the folders to build, each with the path of the field that names the folder. These are the folder of the
/// Bundle, and the folders of its targets. If the Bundle itself names no folder, Fleet builds the top folder. No field
/// names this folder, so it is returned with the path `resources`.
fn folders(spec: &Value, resources: FieldPath) -> BTreeMap<String, FieldPath> {
    let dir = |options: &Value| options.pointer("/kustomize/dir").and_then(Value::as_str).map(str::to_owned);
    let named = |dir: String, field: FieldPath| (dir, field.key("kustomize").key("dir"));
    let own = dir(spec).filter(|dir| !dir.is_empty()).map(|dir| named(dir, FieldPath::of(["spec"])));
    let own = own.unwrap_or((String::new(), resources));
    let targets = spec.get("targets").and_then(Value::as_array).into_iter().flatten().enumerate();
    let of_target = |(index, target)| {
        Some(named(dir(target).filter(|dir| !dir.is_empty())?, FieldPath::of(["spec", "targets"]).index(index)))
    };
    let mut folders: BTreeMap<_, _> = targets.filter_map(of_target).collect();
    folders.insert(own.0, own.1);
    folders
}

fn files(resources: &[Value], dir: &str) -> Vec<File> {
    let text = |resource: &Value, key: &str| resource.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let file = |resource: &Value| File {
        path: text(resource, "name"),
        content: text(resource, "content"),
        encoding: match &*text(resource, "encoding") {
            "base64+gz" => Encoding::Base64Gz,
            "base64" => Encoding::Base64,
            _ => Encoding::Plain,
        },
    };
    let mut files =
        vec![File { path: format!("{dir}/{MANIFESTS}"), content: String::new(), encoding: Encoding::Plain }];
    files.extend(resources.iter().map(file).filter(|file| !file.path.is_empty()));
    files
}
