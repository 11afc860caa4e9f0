//! The hash suffix of generated names.
//!
//! Source: kustomize's `api/hasher`. The JSON that is hashed contains an empty name, because kustomize reads the name
//! of the object at a wrong path.

use serde_json::{Map, Value, json};

use super::json;
use super::resource::Resource;
use crate::go::floats;
use crate::go::json::marshal;
use crate::kustomize::node::{Node, Unprintable};

/// Number of characters of the hash in the name of a generated object.
const LENGTH: usize = 10;

/// Returns the hash that kustomize appends to the name of a ConfigMap or Secret. `None` for other kinds, because
/// kustomize hashes their internal representation, which cannot be reproduced here.
///
/// # Errors
///
/// If the data cannot be converted to JSON.
pub(super) fn of(resource: &Resource) -> Result<Option<String>, Unprintable> {
    let (fields, optional): (&[&str], _) = match resource.kind() {
        "ConfigMap" => (&["data"], "binaryData"),
        "Secret" => (&["data", "type"], "stringData"),
        _ => return Ok(None),
    };
    let mut members = Map::new();
    members.insert("kind".to_owned(), json!(resource.kind()));
    members.insert("name".to_owned(), json!(""));
    for field in fields {
        members.insert((*field).to_owned(), content(resource.node.get(field))?);
    }
    let optional_node = resource.node.get(optional).filter(|node| !node.is_scalar());
    if optional_node.is_some() {
        members.insert(optional.to_owned(), content(optional_node)?);
    }
    Ok(Some(encoded(&marshal(&Value::Object(members)))))
}

fn content(node: Option<&Node>) -> Result<Value, Unprintable> {
    match node {
        None => Ok(json!("")),
        // kustomize decodes a list as a mapping, and ignores the error
        Some(node) if node.is_seq() => Ok(Value::Null),
        Some(node) => match node.text() {
            Some(text) => Ok(json!(text)),
            None => Ok(floats(json::of_node(node)?)),
        },
    }
}

/// Returns the first [`LENGTH`] hexadecimal digits of the SHA-256 hash of a text. Replaces the digits `0`, `1`, `3`,
/// `a` and `e` with other letters, as Kubernetes does.
fn encoded(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let letter = |letter: char| match letter {
        '0' => 'g',
        '1' => 'h',
        '3' => 'k',
        'a' => 'm',
        'e' => 't',
        other => other,
    };
    hex.chars().take(LENGTH).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{self, Limits};

    #[test]
    fn the_hash_is_that_of_kustomize() {
        let node = yaml::node("kind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1'}\n", 0, &Limits::default());
        let resource = Resource::new(node.unwrap().unwrap());
        assert_eq!(of(&resource).unwrap().as_deref(), Some("h29d89cmmt"));
    }

    #[test]
    fn a_list_counts_as_null() {
        let text = "kind: ConfigMap\nmetadata: {name: gen-2, namespace: prod}\ndata: [a]\n";
        let resource = Resource::new(yaml::node(text, 0, &Limits::default()).unwrap().unwrap());
        assert_eq!(of(&resource).unwrap().as_deref(), Some("dk855m5d49"));
    }

    #[test]
    fn numbers_are_floats_in_the_hash() {
        let text = "kind: ConfigMap\nmetadata: {name: c}\ndata: {data9: 18446744073709551615}\n";
        let resource = Resource::new(yaml::node(text, 0, &Limits::default()).unwrap().unwrap());
        assert_eq!(of(&resource).unwrap().as_deref(), Some("t8fdfmhghc"));
    }
}
