//! Checks trees in ConfigMaps. A tree is an archive or individual files. A label on the ConfigMap marks the tree.
//!
//! The label `portcullis.dev/kustomize-tree` names the builder: `kubectl`, `flux`, `argocd`, `fleet` or `sveltos`. Any
//! other value means kubectl. Each key of the ConfigMap is the name of a file. Two underscores in a key stand for `/`,
//! because keys must not contain `/`. The annotation `portcullis.dev/path` names the folder to build. Without this
//! annotation, every root is checked.

use serde_json::Value;

use super::carried::{self, ARCHIVE_KEY, Encoding, File};
use super::carriers::{NARROWED, label, written};
use super::{At, Content, Delivery, FAMILY, Look, Root, path_annotation};
use crate::admission::{FieldPath, Level, Request};
use crate::kustomize::options::{Options, Profile};
use crate::rule::Match;

static MATCHERS: [Match; 1] = [written("configmaps", "ConfigMap")];

/// The check `config-maps`, a key of `deliveries` in the configuration file. It checks the tree in a ConfigMap with the
/// label `portcullis.dev/kustomize-tree`.
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
