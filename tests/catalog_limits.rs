//! Tests the catalog with very large objects, with very many labels, and with very many objects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::fmt::Write as _;

use portcullis::catalog::{Catalog, Coverage};
use portcullis::crossplane::kinds::{BY_LABEL, BY_LABEL_KEY, ENVIRONMENT_CONFIGS, label_key};
use portcullis::landscaper::kinds::{BY_OWNER, INSTALLATIONS, owner_key};
use serde_json::{Value, json};

fn environment_config(name: &str, data: Value) -> Value {
    json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
           "metadata": {"name": name}, "data": data})
}

#[test]
fn an_object_of_several_mebibytes_is_stored_and_read() {
    let entries: Value = (0..100_000).map(|number| (format!("key-{number}"), json!([number, "value"]))).collect();
    let object = environment_config("large", entries);
    assert!(object.to_string().len() > 2 << 20);
    let catalog = Catalog::of([&ENVIRONMENT_CONFIGS], vec![object.clone()]);
    assert_eq!(catalog.find(&ENVIRONMENT_CONFIGS, "", "large").unwrap().value(), &object);
    assert!(catalog.size(&ENVIRONMENT_CONFIGS).bytes < 2 << 20, "{:?}", catalog.size(&ENVIRONMENT_CONFIGS));
}

#[test]
fn a_million_labels_are_indexed_and_removed() {
    const LABELS: usize = 1_000_000;
    let mut text = r#"{"kind":"EnvironmentConfig","metadata":{"name":"a","labels":{"stage":"prod""#.to_owned();
    (0..LABELS).for_each(|number| write!(text, r#","label-{number}":"{number}""#).unwrap());
    text.push_str("}}}");
    let catalog = Catalog::of([&ENVIRONMENT_CONFIGS], Vec::new());
    let empty = catalog.size(&ENVIRONMENT_CONFIGS);
    let mut listing = catalog.list(&ENVIRONMENT_CONFIGS);
    listing.add(&text);
    listing.finish(Coverage::Complete);
    let found = |key: &str, value: &str| {
        catalog.count(&ENVIRONMENT_CONFIGS, &BY_LABEL, "", &label_key(key, value))
            + catalog.count(&ENVIRONMENT_CONFIGS, &BY_LABEL_KEY, "", key)
    };
    assert_eq!((found("stage", "prod"), found("label-999999", "999999"), found("label-5", "6")), (2, 2, 1));
    let size = catalog.size(&ENVIRONMENT_CONFIGS).bytes;
    assert!(size < 2 * LABELS * 64 + text.len(), "{size}");
    catalog.list(&ENVIRONMENT_CONFIGS).finish(Coverage::Complete);
    assert_eq!(found("stage", "prod"), 0);
    assert_eq!(catalog.size(&ENVIRONMENT_CONFIGS), empty);
}

fn installation(number: usize) -> String {
    let metadata = json!({
        "name": format!("installation-{number}"), "namespace": format!("team-{}", number % 40), "uid": format!("{number:032}"),
        "ownerReferences": [{"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation",
                             "name": format!("installation-{}", number % 40), "uid": "u", "controller": true}],
        "annotations": {"unread": "x".repeat(100)},
    });
    let spec = json!({"context": "default", "blueprint": {"ref": {"resourceName": "unread"}}});
    json!({"kind": "Installation", "metadata": metadata, "spec": spec}).to_string()
}

#[test]
fn a_kind_with_a_hundred_thousand_objects_takes_bounded_memory() {
    const OBJECTS: usize = 100_000;
    let catalog = Catalog::of([&INSTALLATIONS], Vec::new());
    let list = |count: usize| {
        let mut listing = catalog.list(&INSTALLATIONS);
        (0..count).for_each(|number| listing.add(&installation(number)));
        listing.finish(Coverage::Complete);
        catalog.size(&INSTALLATIONS)
    };
    let size = list(OBJECTS);
    assert_eq!(size.objects, OBJECTS);
    assert!(size.bytes < OBJECTS * 200, "{} bytes an object", size.bytes / OBJECTS);
    let owner = owner_key("Installation", "installation-7");
    assert_eq!(catalog.count(&INSTALLATIONS, &BY_OWNER, "team-7", &owner), OBJECTS / 40);
    assert_eq!(catalog.indexed(&INSTALLATIONS, &BY_OWNER, "team-7", &owner, 10).len(), 10);
    assert!(catalog.find(&INSTALLATIONS, "team-39", "installation-99999").is_some());
    let size = list(100);
    assert!(size.objects == 100 && size.bytes < 100 * 1_000, "{size:?}");
}
