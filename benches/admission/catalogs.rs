//! Creates catalogs with a given number of objects, as Lists in JSON files.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::reviews::{self, NAMESPACE};

/// Number of objects in one file. A file with this number of objects has a few megabytes.
const OBJECTS_PER_FILE: usize = 5_000;
/// Number of objects per namespace. In a large cluster, a namespace has some thousands of objects.
const OBJECTS_PER_NAMESPACE: usize = 5_000;

/// Creates the folder and writes `count` objects to it, in at least two namespaces. Of every five objects, one is a
/// Context, one is the ComponentVersionOverwrites object that the Context names, and three are Installations that use
/// the Context.
pub fn write(folder: &Path, count: usize) {
    fs::create_dir(folder).unwrap();
    let namespaces = (count / OBJECTS_PER_NAMESPACE).max(2);
    let objects: Vec<Value> = (0..count).map(|at| object(at / 5, at % 5, namespaces)).collect();
    for (at, items) in objects.chunks(OBJECTS_PER_FILE).enumerate() {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        fs::write(folder.join(format!("{at}.json")), list.to_string()).unwrap();
    }
}

fn object(group: usize, member: usize, namespaces: usize) -> Value {
    let (number, namespace) = (group / namespaces, namespace(group % namespaces));
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
