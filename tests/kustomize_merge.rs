//! Compares how Portcullis and kustomize's own library apply strategic merge patches. The results of the library are
//! recorded in `tests/vectors/kustomize/merge.json`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::vectors;
use portcullis::kustomize::emit::document;
use portcullis::kustomize::merge::merge;
use portcullis::kustomize::node::{Node, printed};
use portcullis::kustomize::schema::Schema;
use portcullis::yaml::{self, Limits};
use proptest::prelude::*;

fn node(text: &str) -> Node {
    yaml::node(text, 0, &Limits::default()).expect("the text is YAML").expect("the text is not empty")
}

fn text(node: &Node) -> Result<String, String> {
    let mut text = String::new();
    document(&printed(node).map_err(|error| error.kind.to_string())?, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

fn merge_texts(object: &str, patch: &str, schema: &Schema) -> Result<Option<String>, String> {
    let merged = merge(&node(object), &node(patch), schema).map_err(|error| error.to_string())?;
    merged.map(|merged| text(&merged)).transpose()
}

#[test]
fn merges_what_kustomize_merges() {
    let schema = Schema::built_in();
    let mut wrong = Vec::new();
    for case in vectors("kustomize/merge.json").as_array().expect("the file is a list") {
        let [object, patch] = ["object", "patch"].map(|field| case[field].as_str().expect("a case has texts"));
        let merged = merge_texts(object, patch, &schema);
        let agrees = match &merged {
            Err(_) => case["error"].is_string(),
            Ok(None) => case["deleted"] == true,
            Ok(Some(text)) => case["yaml"] == *text,
        };
        if !agrees {
            wrong.push(format!("{object}\n{patch}\nkustomize: {}\nmerged: {merged:?}", case["yaml"]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
}

#[test]
fn errors_name_the_field() {
    let schema = Schema::built_in();
    let object = "apiVersion: v1\nkind: Service\nspec: {ports: [{port: 80}], selector: {a: b}}\n";
    let error = |patch| merge_texts(object, patch, &schema).unwrap_err();
    assert_eq!(error("spec: {selector: x}"), "spec.selector: a mapping was expected here, not a scalar");
    assert_eq!(error("spec: {ports: {a: b}}"), "spec.ports: a list was expected here, not a mapping");
    assert_eq!(
        error("spec: {selector: {$patch: remove}}"),
        "spec.selector: `$patch: remove` is not known: it must be delete, replace or merge"
    );
}

#[test]
fn a_comment_holds_the_schema_of_a_list() {
    let object = "kind: Team\nmembers: # {\"type\":\"array\",\"x-kubernetes-patch-strategy\":\"merge\",\"x-kubernetes-patch-merge-key\":\"id\"}\n- id: 1\n  a: b\n";
    let merged = merge_texts(object, "members: [{id: 1, c: d}, {id: 2}]", &Schema::built_in()).unwrap().unwrap();
    assert_eq!(merged, "kind: Team\nmembers:\n- a: b\n  c: d\n  id: 1\n- id: 2\n");
}

proptest! {
    /// Checks that an empty patch does not change an object of a custom kind if the object contains no null values.
    /// Custom kinds have no schema, so mappings are merged, and lists are replaced.
    #[test]
    fn an_empty_patch_changes_no_object_without_nulls(keys in prop::collection::hash_map("[a-z]{1,3}", "[a-z0-9]{1,5}", 0..6)) {
        let entries: Vec<_> = keys.iter().map(|(key, value)| format!("\"{key}\": [{{\"name\": \"{value}\"}}, {{}}]")).collect();
        let object = node(&format!("kind: Team\nspec: {{{}}}\n", entries.join(", ")));
        let merged = merge(&object, &node("kind: Team\nspec: {}\n"), &Schema::built_in()).unwrap().unwrap();
        prop_assert_eq!(text(&merged), text(&object));
    }
}
