//! Kustomize trees against the executed verdicts of `tests/vectors/kustomize`, and the rules' pages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, reason = "what is left open is told")]

mod cases;

use cases::vectors;
use portcullis::kustomize::finding::TreeFinding;
use portcullis::kustomize::options::{FluxSpec, Options, Profile};
use portcullis::kustomize::rule::TreeExample;
use portcullis::kustomize::tree::{Memory, Tree, TreePath};
use portcullis::kustomize::{Report, Verdict, analyse, tree_rules};
use serde_json::Value;

/// Where the trees of the cases stand: the cases write `$ROOT`.
const ROOT: &str = "/srv/tree";

fn text(value: &Value) -> &str {
    value.as_str().expect("the cases hold texts here")
}

fn tree(case: &Value) -> Tree {
    let mut files = Memory::new();
    for (path, content) in case["files"].as_object().expect("a case has files") {
        files = files.file(path, text(content).replace("$ROOT", ROOT));
    }
    for (path, target) in case["symlinks"].as_object().into_iter().flatten() {
        files = files.link(path, text(target));
    }
    Tree::new(files, ROOT)
}

/// Says in words how a verdict differs from the one that kustomize gave.
fn differs(case: &Value, report: &Report) -> Option<String> {
    let accepts = case["expect"]["accept"].as_bool().expect("a case has a verdict");
    let agrees = report.verdict == if accepts { Verdict::Accept } else { Verdict::Reject };
    (!agrees && report.verdict != Verdict::Unknown).then(|| {
        let findings: Vec<_> = report.findings.iter().map(TreeFinding::paragraph).collect();
        let error = case["expect"]["error"].as_str().unwrap_or("accepted");
        format!("{}: {}\n  kustomize: {error}\n{}", case["name"], report.verdict, findings.join("\n"))
    })
}

/// Cases of which the verdict may be Unknown: what decides them must be fetched from somewhere.
const MUST_BE_FETCHED: [&str; 4] = [
    "F12d http with org/repo",
    "I26 git file url component",
    "I27c user@ local path 3 segments",
    "I28 github.com dir locally vendored",
];

#[test]
fn verdicts_are_those_of_kustomize() {
    let cases = vectors("kustomize/trees.json");
    let (mut wrong, mut unknown, mut garbled, mut agreed) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for case in cases.as_array().expect("the cases are a list") {
        let name = text(&case["name"]);
        // absolute paths were lost in these when they were recorded
        if case["files"].to_string().contains("$TMP") {
            garbled.push(name);
            continue;
        }
        let restrictor = text(&case["load_restrictor"]).parse().expect("a load restrictor");
        let options = Options { restrictor, ..Options::default() };
        let report = analyse(&tree(case), &TreePath::from(text(&case["build"])), &options);
        match differs(case, &report) {
            Some(difference) => wrong.push(difference),
            None if report.verdict == Verdict::Unknown => unknown.push(format!("{name}: {:?}", report.reasons)),
            None => agreed += 1,
        }
    }
    println!("{agreed} agree; unknown: {unknown:#?}; without their paths: {garbled:?}");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
    let allowed = |line: &&String| !MUST_BE_FETCHED.iter().any(|name| line.starts_with(name));
    assert_eq!(unknown.iter().filter(allowed).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn verdicts_for_other_versions_are_those_of_kustomize() {
    let cases = vectors("kustomize/trees.json");
    for case in cases.as_array().expect("the cases are a list") {
        let Some(after) = case["expect_other_versions"].as_object() else { continue };
        let head = after.iter().find(|(version, _)| version.to_lowercase().contains("head"));
        let Some((_, expect)) = head else { continue };
        let options = Options { version: "5.9.0".parse().expect("a version"), ..Options::default() };
        let report = analyse(&tree(case), &TreePath::from(text(&case["build"])), &options);
        let accepts = expect["accept"].as_bool().expect("a verdict");
        assert_eq!(report.verdict == Verdict::Accept, accepts, "{}", case["name"]);
    }
}

#[test]
fn verdicts_for_flux_are_those_of_flux() {
    let cases = vectors("kustomize/flux.json");
    let mut wrong = Vec::new();
    for case in cases.as_array().expect("the cases are a list") {
        let object = portcullis::yaml::read(text(&case["flux_kustomization"]), &Default::default()).expect("YAML");
        let spec = &object[0].value["spec"];
        let components = spec["components"].as_array().into_iter().flatten();
        let flux = FluxSpec {
            components: components.map(|entry| text(entry).to_owned()).collect(),
            ignore_missing_components: spec["ignoreMissingComponents"] == true,
        };
        let options = Options { flux, ..Options::of(Profile::Flux) };
        let report = analyse(&tree(case), &TreePath::from(text(&spec["path"])), &options);
        let fetched = text(&case["name"]).starts_with("X7c");
        if report.verdict == Verdict::Unknown && !fetched {
            wrong.push(format!("{}: {:?}", case["name"], report.reasons));
        }
        wrong.extend(differs(case, &report));
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
}

fn found(example: &TreeExample) -> Report {
    let files = example.files.iter().fold(Memory::new(), |files, (path, content)| files.file(path, content));
    let components = example.components.iter().map(|entry| (*entry).to_owned()).collect();
    let flux = FluxSpec { components, ..FluxSpec::default() };
    let options = Options { flux, ..Options::of(example.profile) };
    analyse(&Tree::new(files, ROOT), &TreePath::from(example.root), &options)
}

#[test]
fn every_page_shows_what_its_rule_finds() {
    for rule in tree_rules() {
        let finds = |report: &Report| report.findings.iter().any(|finding| finding.rule == rule.id);
        let (wrong, right) = (found(&rule.page.wrong), found(&rule.page.right));
        assert!(finds(&wrong), "{}: the wrong example is not found: {:#?}", rule.id, wrong.findings);
        assert!(!finds(&right), "{}: the right example is found: {:#?}", rule.id, right.findings);
        assert_eq!(right.verdict, Verdict::Accept, "{}: {:#?}", rule.id, right.findings);
    }
}
