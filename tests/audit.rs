//! Tests of `portcullis audit`, which runs the rules of admission on stored objects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod artifacts;
mod cases;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use artifacts::{Answer, ArtifactServer, packed};
use cases::objects;
use cases::pages::Page;
use portcullis::admission::Level;
use portcullis::audit::{Audit, Audited, Chosen, Outcome};
use portcullis::gate::{Gate, Policy, Registry};
use portcullis::kustomize::delivery::Artifact;
use serde_json::{Value, json};

/// Rules that check a change, a deletion or the user of a request. An audit of stored objects has no findings of these
/// rules.
const RULES_ABOUT_CHANGES: [&str; 13] = [
    "DP002", "DP003", "DP004", "DP007", "DP009", "DP010", "DP014", "DR009", "DR010", "EN010", "EN011", "OW006", "OW007",
];

fn audit_objects(policy: Policy, objects: Vec<Value>) -> Audited {
    let registry = Registry::standard();
    let catalog = Arc::new(registry.catalog());
    let gate = Arc::new(Gate::new(registry, policy, catalog));
    let audit = Audit { gate, namespaces: Vec::new(), chosen: Chosen::default() };
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    fs::write(file.path(), json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    audit.files(&[file.path().to_owned()], &runtime, |_| ()).unwrap()
}

/// Audits the first example with findings on the page of the rule `id`. The audit covers the stored objects of the
/// example, and also the object in its request, as if the request had been admitted.
fn audit_page_example(id: &str) -> Audited {
    let page = Page::of(Registry::standard().info(id).unwrap());
    let example = &page.reported[0];
    let (mut stored, object) = (objects(example.stored), example.object().expect("the example is a request"));
    let names = |object: &Value| ["/kind", "/metadata/name"].map(|part| object.pointer(part).cloned());
    stored.retain(|other| names(other) != names(&object));
    stored.push(object);
    audit_objects(page.policy(), stored)
}

#[test]
fn every_rule_about_state_finds_stored_objects() {
    let rules: Vec<_> = Registry::standard().rules().iter().map(|rule| rule.info.id).collect();
    let finds = |id: &str| audit_page_example(id).entries.iter().any(|entry| entry.rule == id);
    let without_findings: Vec<_> = rules.into_iter().filter(|id| !finds(id)).collect();
    assert_eq!(without_findings, RULES_ABOUT_CHANGES);
}

fn overwrites(namespace: &str, repository_context: &str) -> String {
    format!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: ComponentVersionOverwrites\nmetadata: {{name: mine, \
         namespace: {namespace}}}\noverwrites:\n  - source: {{componentName: example.org/a}}\n    substitution: \
         {{version: v2.0.0, repositoryContext: {repository_context}}}\n"
    )
}

const BAD: &str = "none";
const GOOD: &str = "{type: ociRegistry, baseUrl: example.org}";

fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    let output = command.args(["audit", "--manifests"]).arg(folder).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn prints_a_table_and_a_line_per_finding() {
    let folder = folder(&[("a.yaml", overwrites("team-a", BAD)), ("b.yaml", overwrites("team-b", GOOD))]);
    let (code, stdout, stderr) = run(folder.path(), &[]);
    assert_eq!((code, &*stderr), (Some(1), ""), "{stdout}");
    let reported = [
        "rule                         denied      warned    recorded      exempt  unreadable\n",
        "OW001       undecodable",
        "\n  denied     OW001      team-a ComponentVersionOverwrites mine: overwrites[0].substitution.repositoryContext: ",
        "audited 2 objects: 1 denied at their next update, 0 other findings\n",
    ];
    for part in reported {
        assert!(stdout.contains(part), "{part:?} is not in\n{stdout}");
    }
    assert!(!stdout.contains("team-b"), "{stdout}");
    let (code, stdout, _) = run(folder.path(), &["--namespace", "team-b"]);
    assert_eq!((code, &*stdout), (Some(0), "audited 1 objects: 0 denied at their next update, 0 other findings\n"));
}

#[test]
fn cluster_scoped_objects_have_no_namespace() {
    let patch = json!({"type": "FromCompositeFieldPath", "fromFieldPath": "spec[0", "toFieldPath": "a"});
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "buckets"},
        "spec": {"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XBucket"}, "environment": {"patches": [patch]}},
    });
    let audited = audit_objects(Policy::default(), vec![composition]);
    let found: Vec<_> = audited.entries.iter().map(|entry| (entry.rule, &*entry.subject.namespace)).collect();
    assert_eq!(found, [("EN002", "")]);
}

#[test]
fn json_contains_each_finding_with_its_object() {
    let folder = folder(&[("a.yaml", overwrites("team-a", BAD))]);
    let (code, stdout, _) = run(folder.path(), &["--output", "json"]);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &report["objects"], &report["errors"]), (Some(1), &1.into(), &serde_json::json!([])));
    let finding = &report["findings"][0];
    let reported = [("rule", "OW001"), ("level", "deny"), ("result", "fail")];
    assert!(reported.iter().all(|(key, value)| finding[key] == *value), "{finding}");
    assert_eq!(finding["path"], "overwrites[0].substitution.repositoryContext");
    assert_eq!((&finding["object"]["namespace"], &finding["new"]), (&"team-a".into(), &Value::Null));
}

#[test]
fn skips_exempt_findings_and_applies_levels() {
    let folder = folder(&[("a.yaml", overwrites("team-a", BAD))]);
    let config = tempfile::NamedTempFile::new().unwrap();
    let path = config.path().display().to_string();
    let outcome = |text: &str| {
        std::fs::write(config.path(), text).unwrap();
        let (code, stdout, stderr) = run(folder.path(), &["--config", &path, "--output", "json"]);
        let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
        (code, report["findings"][0]["result"].as_str().map(str::to_owned))
    };
    let exemption = "exemptions: [{rule: OW001, namespaces: [team-a], until: ";
    assert_eq!(outcome(&format!("{exemption}2999-01-01}}]\n")), (Some(0), Some("skip".to_owned())));
    assert_eq!(outcome(&format!("{exemption}2020-01-01}}]\n")), (Some(1), Some("fail".to_owned())));
    assert_eq!(outcome("rules: {OW001: warn}\n"), (Some(0), Some("warn".to_owned())));
    assert_eq!(outcome("rules: {OW: off}\n"), (Some(0), None));
    assert_eq!(outcome("rules: {OW: off}\nnamespaces: [{names: [team-*], rules: {OW001: deny}}]\n").0, Some(1));
}

#[test]
fn runs_only_selected_rules() {
    let folder = folder(&[("a.yaml", overwrites("team-a", BAD))]);
    assert_eq!(run(folder.path(), &["--rules", "OW"]).0, Some(1));
    assert_eq!(run(folder.path(), &["--rules", "KZ,OW002"]).0, Some(0));
    let (code, _, stderr) = run(folder.path(), &["--rules", "OW999"]);
    assert_eq!((code, &*stderr), (Some(2), "error: unknown rule \"OW999\"; `portcullis rules` lists the rules\n"));
}

#[test]
fn records_unmatched_entries_only_in_audits() {
    let audited = audit_page_example("OW009");
    let entry = audited.entries.iter().find(|entry| entry.rule == "OW009").expect("it is found");
    assert_eq!((entry.level, entry.outcome(), &*entry.field), (Level::Audit, Outcome::Warn, "overwrites[1].source"));
}

#[test]
fn counts_passes_of_rules_without_findings() {
    let good = audit_objects(Policy::default(), objects(&overwrites("team-b", GOOD)));
    let bad = audit_objects(Policy::default(), objects(&overwrites("team-b", BAD)));
    assert!(good.entries.is_empty() && good.passes["team-b"] > 0, "{good:?}");
    assert_eq!(bad.passes["team-b"] + 1, good.passes["team-b"]);
}

/// Returns the YAML documents of a Flux Kustomization and of its GitRepository, as the API server stores them. Both
/// have the name `name`. `artifact` is the artifact in the status of the GitRepository.
fn flux(name: &str, artifact: &Artifact) -> String {
    let Artifact { url, digest, revision } = artifact;
    let source = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": name, "namespace": "team-a"},
        "status": {"artifact": {"url": url, "digest": digest, "revision": revision, "path": "x"}},
    });
    let kustomization = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {"path": "./apps", "prune": true, "interval": "10m",
                 "sourceRef": {"kind": "GitRepository", "name": name}},
    });
    format!("{source}\n---\n{kustomization}\n")
}

/// Regression test for issue 18 (Flux, item 6): an audit fetches the trees of Flux Kustomizations, and reports
/// trees that it cannot fetch.
#[test]
fn fetches_the_trees_of_flux_kustomizations() {
    let server = ArtifactServer::start();
    let good = packed([("apps/kustomization.yaml", "resources: []\n")]);
    let broken = packed([("apps/kustomization.yaml", "resources: [missing.yaml]\n")]);
    // Trees are cached by digest, so this archive must differ from those of the other sources.
    let gone = packed([("apps/kustomization.yaml", "resources: []\n# gone\n")]);
    let files = [
        ("good.yaml", flux("good", &server.artifact(&good, "main@sha1:1"))),
        ("broken.yaml", flux("broken", &server.artifact(&broken, "main@sha1:2"))),
        ("gone.yaml", flux("gone", &server.artifact_with_answer(&gone, "main@sha1:3", |_| Answer::Status(404)))),
    ];
    let folder = folder(&files);
    let config = tempfile::NamedTempFile::new().unwrap();
    fs::write(config.path(), format!("artifactHosts: [\"{}\"]\n", server.host())).unwrap();
    let (code, stdout, stderr) = run(folder.path(), &["--config", &config.path().display().to_string()]);
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    for part in [
        "warned     KZ004      team-a Kustomization broken: ",
        "\"missing.yaml\" does not exist",
        "main@sha1:2",
        "warned     KZ041      team-a Kustomization gone: ",
        "main@sha1:3",
    ] {
        assert!(stdout.contains(part), "{part:?} is not in\n{stdout}");
    }
    assert!(!stdout.contains("Kustomization good"), "{stdout}");
}
