//! Creates catalogs of any size, as Lists in JSON files.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::reviews::{self, NAMESPACE};

/// A file of these is a few megabytes.
const IN_A_FILE: usize = 5_000;
/// A namespace of a large cluster has some thousands of objects, one of a small cluster a handful.
const IN_A_NAMESPACE: usize = 5_000;

/// Writes `count` objects to a folder: of every five a Context, the overwrites that it names, and three Installations
/// that use it, in several namespaces.
pub fn write(folder: &Path, count: usize) {
    fs::create_dir(folder).unwrap();
    let namespaces = (count / IN_A_NAMESPACE).max(2);
    let objects: Vec<Value> = (0..count).map(|at| object(at / 5, at % 5, namespaces)).collect();
    for (at, items) in objects.chunks(IN_A_FILE).enumerate() {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        fs::write(folder.join(format!("{at}.json")), list.to_string()).unwrap();
    }
}

fn object(family: usize, member: usize, namespaces: usize) -> Value {
    let (number, namespace) = (family / namespaces, namespace(family % namespaces));
    match member {
        0 => context(&namespace, number),
        1 => {
            let mut overwrites = reviews::overwrites_object(&format!("overwrites-{number}"), 5);
            overwrites["metadata"]["namespace"] = namespace.into();
            overwrites
        }
        _ => {
            let mut installation = reviews::small_installation(&format!("installation-{number}-{member}"));
            installation["metadata"]["namespace"] = namespace.into();
            installation["spec"]["context"] = format!("context-{number}").into();
            installation
        }
    }
}

fn namespace(number: usize) -> String {
    if number == 0 { NAMESPACE.to_owned() } else { format!("team-{number}") }
}

fn context(namespace: &str, number: usize) -> Value {
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Context",
        "metadata": {"name": format!("context-{number}"), "namespace": namespace, "generation": 1},
        "repositoryContext": {"type": "ociRegistry", "baseUrl": "registry.example.org/components"},
        "componentVersionOverwrites": format!("overwrites-{number}"),
    })
}
