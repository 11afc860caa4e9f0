//! Checks the kustomization files in ConfigMaps with the label `portcullis.dev/kustomize-tree`. Each of these
//! ConfigMaps contains a tree of files, either as one archive, or with one key for each file.
//!
//! The value of the label is the tool that builds the files: `kubectl`, `flux`, `argocd`, `fleet` or `sveltos`. Any
//! other value means kubectl. A key is the path of a file, with two underscores for each `/`, because keys must not
//! contain `/`.
//!
//! The annotation `portcullis.dev/path` contains the path of the folder to build. Without this annotation, Portcullis
//! builds every folder with a kustomization file that no other kustomization includes.

use serde_json::Value;

use super::carried::{self, ARCHIVE_KEY, Encoding, File};
use super::carriers::{NARROWED, label, written};
use super::{At, Content, Delivery, FAMILY, Look, Root, path_annotation};
use crate::admission::{FieldPath, Level, Request};
use crate::kustomize::options::{Options, Profile};
use crate::rule::Match;

static MATCHERS: [Match; 1] = [written("configmaps", "ConfigMap")];

/// The definition of the check `config-maps`, which builds the kustomization files in a ConfigMap. It checks ConfigMaps
/// with the label `portcullis.dev/kustomize-tree`. In the configuration file, `deliveries.config-maps` sets the highest
/// level of its findings, such as `warn`.
pub(super) static DELIVERY: Delivery = Delivery {
    name: "config-maps",
    family: FAMILY,
    summary: "the trees in ConfigMaps with the label portcullis.dev/kustomize-tree",
    max_level: Level::Deny,
    limited_by: None,
    matchers: &MATCHERS,
    narrowed: Some(&NARROWED),
    looks_up: &[],
    live_reads: None,
    ahead: None,
    withhold: None,
    consequences: None,
    look: |request, _| Look { findings: Vec::new(), roots: root(request).into_iter().collect() },
};

fn root(request: &Request<'_>) -> Option<Root> {
    let object = request.object();
    let mut options = Options::of(label(object)?.parse().unwrap_or(Profile::Kubectl));
    let at = match path_annotation(object) {
        Some(path) => At::Folder(path.to_owned()),
        None => At::EveryRoot,
    };
    options.lone_components = at == At::EveryRoot;
    let (field, content) = content(object);
    Some(Root { field, of: None, content, at, options, late: None, follows_revision: false })
}

fn content(object: &Value) -> (FieldPath, Content) {
    let packed = object.get("binaryData").and_then(|data| data.get(ARCHIVE_KEY)).and_then(Value::as_str);
    if let Some(encoded) = packed {
        return (FieldPath::of(["binaryData", ARCHIVE_KEY]), carried::archive(encoded));
    }
    let file = |encoding| {
        move |(key, content): (&str, &str)| File { path: key.replace("__", "/"), content: content.to_owned(), encoding }
    };
    let plain = carried::members(object, "data").map(file(Encoding::Plain));
    let binary = carried::members(object, "binaryData").map(file(Encoding::Base64));
    (FieldPath::of(["data"]), carried::files(plain.chain(binary).collect()))
}
