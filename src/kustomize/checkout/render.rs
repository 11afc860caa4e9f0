//! Builds a folder with kustomize, and returns selected objects of the output, such as Flux Kustomizations and Argo CD
//! Applications. Portcullis then builds the folders to which these objects refer. Also substitutes Flux variables in
//! the objects.

use serde_json::Value;

use super::object::Object;
use crate::admission::Metadata;
use crate::kustomize::emit;
use crate::kustomize::engine::{Resource, Settings, Step, build};
use crate::kustomize::files::Files;
use crate::kustomize::finding::Site;
use crate::kustomize::flux;
use crate::kustomize::node::printed;
use crate::kustomize::options::{Options, PostBuild};
use crate::kustomize::tree::{Tree, TreePath};
use crate::yaml::{self, Limits};

/// The label or annotation whose value `disabled` excludes an object from the substitution of variables.
const OPT_OUT: &str = "kustomize.toolkit.fluxcd.io/substitute";

/// Builds the folder `root`, and returns the objects for which `wants` returns true. Does not substitute Flux
/// variables.
///
/// # Errors
///
/// If the build fails, or if it needs a remote base that is not fetched or a program that is not run, such as Helm.
pub(super) fn render(
    tree: &Tree,
    root: &TreePath,
    options: &Options,
    files: &Files,
    wants: impl Fn(&Resource) -> bool,
) -> Step<Vec<Object>> {
    let built = build(tree, root, options, &Settings::default(), files)?;
    let wanted = built.resources().iter().filter(|resource| wants(resource));
    Ok(wanted.filter_map(|resource| object(resource, built.site(resource))).collect())
}

fn object(resource: &Resource, site: Site) -> Option<Object> {
    let mut text = String::new();
    emit::document(&printed(&resource.node).ok()?, &mut text).ok()?;
    let limits = Limits::default();
    let value = yaml::documents(&text, &limits).next()?.ok()?.value;
    Some(Object { file: site.file, line: site.place.line, value })
}

/// Returns a copy of an object in which the known variables of `post_build` are substituted. Texts with unknown
/// variables stay unchanged. The whole object stays unchanged if `post_build` is `None`, or if a label or annotation
/// excludes the object from the substitution.
pub(super) fn substituted(object: &Object, post_build: Option<&PostBuild>) -> Object {
    let mut object = object.clone();
    let metadata = Metadata::of(&object.value);
    let is_excluded = [metadata.label(OPT_OUT), metadata.annotation(OPT_OUT)].contains(&Some("disabled"));
    if let Some(post_build) = post_build.filter(|_| !is_excluded) {
        let wants = post_build.is_certain() || !post_build.from.is_empty();
        if wants {
            substitute(&mut object.value, post_build);
        }
    }
    object
}

fn substitute(value: &mut Value, post_build: &PostBuild) {
    match value {
        Value::String(text) if text.contains('$') => {
            *text = flux::evaluated(text, post_build).unwrap_or_else(|| text.clone());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| substitute(item, post_build)),
        Value::Object(members) => members.values_mut().for_each(|member| substitute(member, post_build)),
        _ => {}
    }
}
