//! Tests of `portcullis explain overwrites --tree` and `--diff`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::process::{Command, Output};

use serde_json::{Value, json};

fn explain(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["explain", "overwrites"]).args(arguments).output().unwrap()
}

const EXAMPLE_ARGUMENTS: [&str; 5] =
    ["--manifests", "examples/landscaper", "--tree", "--components", "examples/components"];

fn tree(arguments: &[&str]) -> (i32, String, String) {
    let output = explain(&[&EXAMPLE_ARGUMENTS[..], arguments].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn prints_every_reference_with_its_substitution() {
    let (code, text, _) = tree(&[]);
    assert_eq!(code, 0);
    assert_eq!(
        text,
        "Installation my-namespace/server
  context     default
  overwrites  my-overwrites

github.com/gardener/landscaper/echo-server v0.2.0 → my-own-echo-server v0.2.0 from example.org/my-own-registry/components
│    overwrites[0] applied: sets repositoryContext to example.org/my-own-registry/components, componentName to my-own-echo-server
│    overwrites[1] rejected: componentName was already set by overwrites[0]
├─ fallback: github.com/gardener/landscaper/echo-server v0.1.0 → another-echo-server v1.2.3
│       overwrites[0] not matched: repositoryContext is example.org/my-own-registry/components, the source requires eu.gcr.io/gardener-project/landscaper/tutorials/components
│       overwrites[1] applied: sets componentName to another-echo-server, version to v1.2.3
└─ ingress: github.com/gardener/landscaper/ingress-nginx v0.2.0
   └─ backend: github.com/gardener/landscaper/echo-server v0.2.0 → another-echo-server v1.2.3  (as above)
           overwrites[0] not matched: repositoryContext is example.org/my-own-registry/components, the source requires eu.gcr.io/gardener-project/landscaper/tutorials/components
           overwrites[1] applied: sets componentName to another-echo-server, version to v1.2.3
"
    );
}

#[test]
fn json_contains_every_entry_and_the_patches() {
    let (_, text, _) = tree(&["--output", "json"]);
    let reported: Value = serde_json::from_str(&text).unwrap();
    let references = reported[0]["references"].as_array().unwrap();
    assert_eq!(references.len(), 4);
    assert!(references.iter().all(|reference| reference["entries"].as_array().unwrap().len() == 2));
    assert_eq!(references[3]["way"], "ingress → backend");
    assert_eq!((&reported[0]["complete"], &reported[0]["landscaperFails"]), (&json!(true), &Value::Null));
    let patch = &reported[0]["descriptors"][0]["patch"];
    assert_eq!(patch[0]["path"], "/component/componentReferences/0/componentName");
    let newer = reported[0]["descriptors"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["version"] == "v0.2.0" && one["patch"][0]["path"] == "/spec/references/0/componentName");
    assert!(newer.is_some(), "{reported:#}");
}

#[test]
fn draws_trees_in_three_formats() {
    let (_, dot, _) = tree(&["--output", "dot"]);
    assert!(dot.contains("n0 -> n1 [label=\"fallback\"") && dot.contains("n2 -> n3 [label=\"backend\""), "{dot}");
    let (_, mermaid, _) = tree(&["--output", "mermaid"]);
    assert!(mermaid.contains("n2 -->|\"backend\"| n3"), "{mermaid}");
    let (_, svg, _) = tree(&["--output", "svg"]);
    assert!(svg.starts_with("<svg ") && svg.matches("<rect ").count() == 4, "{svg}");
    let (code, _, error) = {
        let output = explain(&["--manifests", "examples/landscaper", "--output", "svg"]);
        (output.status.code().unwrap(), (), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(code, 2);
    assert!(error.contains("explain overwrites --tree"), "{error}");
}

fn edited_overwrites(from: &str, to: &str) -> tempfile::NamedTempFile {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/landscaper/overwrites.yaml");
    let text = std::fs::read_to_string(path).unwrap().replace(from, to);
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn diff_shows_every_affected_installation() {
    let other = edited_overwrites("v1.2.3", "v1.2.9");
    let path = other.path().display().to_string();
    let (code, text, error) = tree(&["--diff", &path]);
    assert_eq!(code, 1, "{error}");
    assert!(text.contains("  - fallback: version v0.1.0 -> v1.2.3 (overwrites[1] of my-overwrites)\n"), "{text}");
    assert!(
        text.contains("  + ingress → backend: version v0.2.0 -> v1.2.9 (overwrites[1] of my-overwrites)\n"),
        "{text}"
    );
    assert!(text.contains("  ✗ Landscaper will fail: unable to resolve component reference fallback"), "{text}");
    assert!(text.ends_with("1 of 1 Installations get other components\n"), "{text}");
    // Without component trees, only the references of the Installations themselves are known. The changed entry does
    // not apply to them.
    let output = explain(&["--manifests", "examples/landscaper", "--diff", &path]);
    assert_eq!(output.status.code(), Some(0));
    let same = edited_overwrites("nothing", "");
    assert_eq!(tree(&["--diff", &same.path().display().to_string()]).0, 0);
}

#[test]
fn reports_unusable_inputs() {
    let (code, _, error) = tree(&["--diff", "examples/landscaper/installation.yaml"]);
    assert!(code == 2 && error.contains("neither ComponentVersionOverwrites nor Contexts"), "{error}");
    let output = explain(&["--manifests", "examples/landscaper", "--tree", "--components", "examples/landscaper"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("no component descriptor"), "{error}");
    let broken = edited_overwrites("apiVersion: landscaper.gardener.cloud/v1alpha1", "meta: {schemaVersion: v2}");
    let path = broken.path().display().to_string();
    let output = explain(&["--manifests", "examples/landscaper", "--tree", "--components", &path]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("line ") && error.contains("component: expected an object, found nothing"), "{error}");
    let ca = explain(&[&EXAMPLE_ARGUMENTS[..], &["--registry-ca", "README.md"]].concat());
    assert!(ca.status.success(), "without registries nothing is read from it");
}
