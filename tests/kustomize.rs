//! Compares our verdicts about kustomize trees with the recorded verdicts in `tests/vectors/kustomize`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, reason = "unknown results are printed")]

mod cases;

use std::path::Path;

use cases::{repository, vectors};
use portcullis::kustomize::delivery::flux_spec;
use portcullis::kustomize::finding::{Fix, TreeFinding};
use portcullis::kustomize::options::{Options, Profile};
use portcullis::kustomize::remote::{Repository, is_git};
use portcullis::kustomize::roots::{references, roots};
use portcullis::kustomize::tree::{Memory, Tree, TreePath};
use portcullis::kustomize::{Files, Report, Verdict, analyse};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The path at which the tree of each case is loaded. In the files of the cases, `$ROOT` stands for this path.
const ROOT: &str = "/srv/tree";

fn text(value: &Value) -> &str {
    value.as_str().expect("the value is a string")
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

/// Returns a description of the difference between our verdict and that of kustomize. Returns `None` if the verdicts
/// agree, or if ours is unknown.
fn difference(case: &Value, report: &Report) -> Option<String> {
    let accepts = case["expect"]["accept"].as_bool().expect("a case has a verdict");
    let agrees = report.verdict == if accepts { Verdict::Accept } else { Verdict::Reject };
    (!agrees && report.verdict != Verdict::Unknown).then(|| {
        let findings: Vec<_> = report.findings.iter().map(TreeFinding::paragraph).collect();
        let error = case["expect"]["error"].as_str().unwrap_or("accepted");
        format!("{}: {}\n  kustomize: {error}\n{}", case["name"], report.verdict, findings.join("\n"))
    })
}

/// Names of the cases for which Portcullis may return the verdict `Unknown`. In these cases, kustomize fetches a
/// component from a git repository, and Portcullis does not.
const MAY_BE_UNKNOWN: [&str; 4] = [
    "F12d http with org/repo",
    "I26 git file url component",
    "I27c user@ local path 3 segments",
    "I28 github.com dir locally vendored",
];

/// The files with the cases, below `tests/vectors`.
const FILES: [&str; 6] = [
    "kustomize/trees.json",
    "kustomize/components.json",
    "kustomize/found.json",
    "kustomize/keys.json",
    "kustomize/definitions.json",
    "kustomize/field-paths.json",
];

fn judge(case: &Value) -> Report {
    let restrictor = text(&case["load_restrictor"]).parse().expect("a load restrictor");
    let options = Options { restrictor, ..Options::default() };
    analyse(&tree(case), &TreePath::from(text(&case["build"])), &options)
}

#[test]
fn verdicts_equal_kustomizes() {
    let (mut wrong, mut unknown, mut incomplete, mut agreed) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut decided = Vec::new();
    for case in FILES.iter().flat_map(|file| cases_of(file)) {
        let name = text(&case["name"]);
        // The recording of these cases replaced absolute paths, so their trees are incomplete.
        if case["files"].to_string().contains("$TMP") {
            incomplete.push(name.to_owned());
            continue;
        }
        let report = judge(&case);
        match difference(&case, &report) {
            Some(difference) => wrong.push(difference),
            None if case["undecided"] == true && report.verdict != Verdict::Unknown => decided.push(name.to_owned()),
            None if case["undecided"] == true => println!("undecided {name}: {:?}", report.reasons),
            None if report.verdict == Verdict::Unknown => unknown.push(format!("{name}: {:?}", report.reasons)),
            None => agreed += 1,
        }
    }
    println!("{agreed} agree; unknown: {unknown:#?}; without their paths: {incomplete:?}");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(decided.is_empty(), "these cases have a verdict now; remove \"undecided\" from their files: {decided:?}");
    let allowed = |line: &&String| !MAY_BE_UNKNOWN.iter().any(|name| line.starts_with(name));
    assert_eq!(unknown.iter().filter(allowed).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn distinguishes_repositories_like_kustomize() {
    for row in cases_of("kustomize/remotes.json") {
        let entry = text(&row["entry"]);
        let found = Repository::of(entry).map_or(Value::Null, |found| {
            json!({"host": found.host, "repository": found.path, "folder": found.folder, "ref": found.reference})
        });
        assert_eq!(found, row["git"], "{entry}");
        assert_eq!(is_git(entry), row["git"].is_object(), "{entry}");
    }
}

fn cases_of(file: &str) -> Vec<Value> {
    match vectors(file) {
        Value::Array(cases) => cases,
        _ => panic!("{file} is not a list of cases"),
    }
}

/// Parts of kustomize's error messages, with the rule that reports the same error.
const KUSTOMIZE_ERRORS: [(&str, &str); 15] = [
    ("expected kind != 'Component'", "KZ001"),
    ("expected kind 'Component'", "KZ002"),
    ("unable to find one of", "KZ005"),
    ("Found multiple kustomization files", "KZ006"),
    ("Failed to read kustomization file", "KZ007"),
    ("invalid Kustomization", "KZ008"),
    ("kustomization.yaml is empty", "KZ008"),
    ("cycle detected", "KZ009"),
    ("security; ", "KZ010"),
    ("cannot be absolute", "KZ010"),
    ("missing metadata.name", "KZ013"),
    ("missing kind", "KZ013"),
    ("already registered id", "KZ030"),
    ("external plugins disabled", "KZ015"),
    ("failed to find unique target", "KZ030"),
];

/// Checks that the first finding corresponds to kustomize's error. The rule of the finding must be the rule for this
/// error in [`KUSTOMIZE_ERRORS`], and the position must be that of the invalid entry.
#[test]
fn the_first_finding_is_kustomizes_error() {
    let mut reported = 0;
    for case in FILES.iter().flat_map(|file| cases_of(file)) {
        let Some(error) = case["expect"]["error"].as_str() else { continue };
        let Some((_, rule)) = KUSTOMIZE_ERRORS.iter().find(|(error_part, _)| error.contains(error_part)) else {
            continue;
        };
        if case["undecided"] == true {
            continue;
        }
        let report = judge(&case);
        let first = report.findings.iter().find(|finding| finding.location.first).expect("a finding rejects the tree");
        assert_eq!(first.rule, *rule, "{}: {error}", case["name"]);
        reported += 1;
        let Some((_, rest)) = first.message.split_once('"') else { continue };
        let entry = rest.split('"').next().unwrap_or_default();
        let file = text(&case["files"][first.location.file.as_str()]).replace("$ROOT", ROOT);
        let line = file.lines().nth(first.location.place.line as usize - 1).unwrap_or_default();
        assert!(line.contains(entry), "{}: {line:?} does not show {entry:?}", case["name"]);
    }
    assert!(reported > 60, "only {reported} cases");
}

#[test]
fn findings_about_components_have_correct_positions() {
    for case in cases_of("kustomize/components.json") {
        let Some(expected) = case["finding"].as_object() else { continue };
        let report = judge(&case);
        let first = report.findings.iter().find(|finding| finding.location.first).expect("a finding rejects the tree");
        let line = u64::from(first.location.place.line);
        let found = json!({"rule": first.rule, "file": first.location.file.as_str(), "line": line});
        assert_eq!(&found, &json!(expected), "{}", case["name"]);
    }
}

#[test]
fn accepts_the_example_of_the_proposal_but_not_its_mistakes() {
    let folder = repository().join("examples/kustomize");
    let tree = Tree::folder(&folder).expect("the example is there");
    for root in ["overlays/community", "overlays/dev", "overlays/enterprise"] {
        let report = analyse(&tree, &TreePath::from(root), &Options::default());
        assert_eq!(report.verdict, Verdict::Accept, "{:#?} {:#?}", report.findings, report.reasons);
    }
    let mistakes = [
        ("components:", "resources:", "KZ001"),
        ("  - ../../base\n", "  - ../../base\n  - ../../components/ldap\n", "KZ001"),
        ("components:\n", "components:\n  - ../../base\n", "KZ002"),
    ];
    for (before, after, rule) in mistakes {
        let files = load_into_memory(&folder, &|path, text| {
            if path.starts_with("overlays/") { text.replacen(before, after, 1) } else { text }
        });
        let report = analyse(&files, &TreePath::from("overlays/community"), &Options::default());
        assert_eq!(report.verdict, Verdict::Reject, "{after}");
        assert!(report.findings.iter().any(|finding| finding.rule == rule), "{after}: {:#?}", report.findings);
    }
}

#[test]
fn rejects_the_example_without_its_text_files() {
    let folder = repository().join("examples/kustomize");
    let files = load_into_memory(&folder, &|path, text| if path.ends_with(".txt") { String::new() } else { text });
    let report = analyse(&files, &TreePath::from("overlays/enterprise"), &Options::default());
    let missing: Vec<_> = report.findings.iter().filter(|finding| finding.location.refused).collect();
    assert_eq!(missing.len(), 2, "{missing:#?}");
    assert!(missing.iter().all(|finding| finding.rule == "KZ004"));
    assert_eq!(missing[0].message, "\"dbpass.txt\" does not exist");
}

/// Loads a folder into memory. `change` gets the path and the content of each file, and returns its new content. A file
/// whose new content is empty is omitted.
fn load_into_memory(folder: &Path, change: &dyn Fn(&str, String) -> String) -> Tree {
    let mut files = Memory::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).expect("the folder can be read").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let path = entry.path().strip_prefix(folder).expect("it is in the folder").display().to_string();
            let text = std::fs::read_to_string(entry.path()).expect("the file is text");
            let changed = change(&path, text);
            if !changed.is_empty() {
                files = files.file(&path, changed);
            }
        }
    }
    Tree::new(files, ROOT)
}

#[test]
fn verdicts_for_other_versions_equal_kustomizes() {
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
fn verdicts_for_flux_equal_fluxs() {
    let cases = vectors("kustomize/flux.json");
    let mut wrong = Vec::new();
    for case in cases.as_array().expect("the cases are a list") {
        let object = portcullis::yaml::read(text(&case["flux_kustomization"]), &Default::default()).expect("YAML");
        let spec = &object[0].value["spec"];
        let options = Options { flux: flux_spec(spec), ..Options::of(Profile::Flux) };
        let report = analyse(&tree(case), &TreePath::from(text(&spec["path"])), &options);
        let fetched = text(&case["name"]).starts_with("X7c");
        if report.verdict == Verdict::Unknown && !fetched {
            wrong.push(format!("{}: {:?}", case["name"], report.reasons));
        }
        wrong.extend(difference(case, &report));
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Compares our verdicts with recorded verdicts of Flux. The cases have random specs of Flux Kustomizations, and random
/// kustomization files in the folder `spec.path`. Unknown verdicts are accepted.
#[test]
fn verdicts_for_whole_specs_equal_fluxs() {
    let given = std::env::var("PORTCULLIS_FLUX_SPECS").ok();
    let cases = match given {
        Some(path) => serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON"),
        None => vectors("kustomize/flux-spec.json"),
    };
    let (mut wrong, mut unknown, mut agreed) = (Vec::new(), Vec::new(), 0);
    for case in cases.as_array().expect("the cases are a list") {
        let spec = &case["spec"];
        let options = Options { flux: flux_spec(spec), ..Options::of(Profile::Flux) };
        let report = analyse(&tree(case), &TreePath::from(text(&spec["path"])), &options);
        match difference(case, &report) {
            Some(difference) => wrong.push(difference),
            None if report.verdict == Verdict::Unknown => {
                unknown.push(format!("{} ({}): {:?}", case["name"], case["expect"]["accept"], report.reasons));
            }
            None => agreed += 1,
        }
    }
    println!("{agreed} agree; {} unknown: {unknown:#?}", unknown.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(agreed > 2 * unknown.len(), "{agreed} agree, {} are unknown", unknown.len());
}

/// Builds the tree of a test case as Flux does, and returns the report of Portcullis. `spec` of the case is the spec of
/// the Flux Kustomization.
fn judge_for_flux(case: &Value) -> Report {
    let options = Options { flux: flux_spec(&case["spec"]), ..Options::of(Profile::Flux) };
    analyse(&tree(case), &TreePath::from(text(&case["spec"]["path"])), &options)
}

/// Regression test for issue 18 (Flux, item 3). Flux rejects these specs of Kustomizations, but Portcullis returned the
/// verdict `Unknown`. The test `verdicts_for_whole_specs_equal_fluxs` did not find this error, because it accepts
/// unknown verdicts.
#[test]
fn rejects_specs_that_flux_rejects() {
    const REJECTED: [(&str, &str); 10] = [
        ("component root", "apiVersion for Component should be"),
        ("component file url", "must be local and relative"),
        ("flux meta ns", "namespace transformation produces ID conflict"),
        ("spec 37-1", "no resource matches strategic merge patch"),
        ("spec 68-1", "Unable to remove nonexistent key"),
        ("spec 43-1", "unable to parse SM or JSON patch from [patch: \"garbage\"]"),
        ("spec 45-1", "unable to parse SM or JSON patch from [patch: \"[{op: add"),
        ("apiVersionless", "failed to decode Kubernetes apiVersion"),
        ("bad name", "var name is invalid"),
        ("spec 62-1", "unable to parse substitution within function"),
    ];
    let cases = vectors("kustomize/flux-spec.json");
    let named = |name: &str| cases.as_array().unwrap().iter().find(|case| case["name"] == name).unwrap();
    for (name, error) in REJECTED {
        assert!(text(&named(name)["expect"]["error"]).contains(error), "{name}");
        let report = judge_for_flux(named(name));
        assert_eq!(report.verdict, Verdict::Reject, "{name}: {:?}", report.reasons);
    }
    let missing = judge_for_flux(named("missing cm"));
    assert_eq!(missing.verdict, Verdict::Unknown, "ConfigMaps are not read");
    let reason = format!("{:?}", missing.reasons);
    assert!(reason.contains("the content of ConfigMap/vars is unknown"), "{reason}");
}

/// Regression test for issue 18 (Flux, item 2). Flux accepts kustomization files with values of the wrong type, such as
/// a number as an image tag, and with unknown fields. Portcullis rejected such files.
#[test]
fn accepts_root_files_that_flux_converts() {
    for (name, root) in [
        ("a number as a tag", "resources: [x.yaml]\nimages: [{name: x, newTag: 1.25}]\n"),
        ("numbers and booleans in names", "resources: [x.yaml]\nnamePrefix: 7\nnameSuffix: true\n"),
        ("a number as a namespace", "resources: [x.yaml]\nnamespace: 7\n"),
        ("labels", "resources: [x.yaml]\nlabels: [{pairs: {a: 7, b: true, c: 1.5}}]\ncommonLabels: {d: 1}\n"),
        ("annotations", "resources: [x.yaml]\ncommonAnnotations: {a: 7, b: false}\n"),
        ("a number as a file", "resources: [7]\n"),
        ("an unknown field", "resources: [x.yaml]\nunknown: {a: b}\n"),
    ] {
        let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
        let case =
            json!({"files": {"a/kustomization.yaml": root, "a/x.yaml": object, "a/7": object}, "spec": {"path": "a"}});
        let report = judge_for_flux(&case);
        let findings: Vec<_> = report.findings.iter().map(TreeFinding::paragraph).collect();
        assert_eq!(report.verdict, Verdict::Accept, "{name}: {findings:?} {:?}", report.reasons);
    }
}

/// Generates texts similar to kustomization files of users and attackers.
fn texts() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "resources:\n",
        "components:\n",
        "- ../a\n",
        "- ../b\n",
        "  - .\n",
        "kind: Component\n",
        "kind: ConfigMap\nmetadata: {name: x}\n",
        "patches:\n- patch: |-\n    - op: add\n      path: /a\n",
        "namePrefix: p-\n",
        "namespace: x\n",
        "configMapGenerator:\n- name: x\n  literals: [a=b]\n",
        "x: &x [1]\ny: [*x, *x]\n",
        "---\n",
        "{",
        "]",
        "\u{feff}",
        "\0",
        "ſ: ",
        "\t",
    ]);
    prop_oneof![prop::collection::vec(words, 0..8).prop_map(|words| words.concat()), ".{0,40}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn never_panics_on_odd_trees(
        files in prop::collection::btree_map("(a|b|c)/(kustomization.yaml|Kustomization|x.yaml|\\.\\.)", texts(), 0..6),
        links in prop::collection::btree_map("(a|b)/(l|kustomization.yaml)", "(\\.\\./[abc]|l|/|\\.\\./\\.\\./x)", 0..3),
        profile in prop::sample::select(Profile::ALL.to_vec()),
    ) {
        let tree = files.iter().fold(Memory::new(), |tree, (path, text)| tree.file(path, text));
        let tree = Tree::new(links.iter().fold(tree, |tree, (path, target)| tree.link(path, target)), ROOT);
        for root in ["a", "b", ".", "none"] {
            let report = analyse(&tree, &TreePath::from(root), &Options::of(profile));
            let refused = report.findings.iter().filter(|finding| finding.location.refused).count();
            prop_assert_eq!(report.verdict == Verdict::Reject, refused > 0);
            prop_assert_eq!(report.findings.iter().filter(|finding| finding.location.first).count(), refused.min(1));
        }
        let folders = ["a", "b", "c"].map(TreePath::from);
        let (options, read) = (Options::of(profile), Files::default());
        prop_assert!(!roots(&folders, |folder| references(&tree, folder, &options, &read).folders).is_empty());
    }

    #[test]
    fn a_fix_changes_only_its_entry(text in texts(), index in 0_usize..3) {
        let fix = Fix::MoveEntry { from: "resources".into(), index, to: "components".into() };
        if let Some(fixed) = portcullis::kustomize::fix(&text, &[fix]) {
            prop_assert!(fixed.len() + 40 > text.len());
        }
    }
}

fn verdict_of(files: Memory) -> Report {
    analyse(&Tree::new(files, ROOT), &TreePath::from("app"), &Options::default())
}

#[test]
fn hostile_trees_stay_within_bounds() {
    let bomb: String = std::iter::once("a0: &a0 [x]\n".to_owned())
        .chain((1..10).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "))))
        .collect();
    let list = format!("resources:\n{}", "- a.yaml\n".repeat(1_000_000));
    let deep = format!("resources: {}{}", "[".repeat(10_000), "]".repeat(10_000));
    for text in [bomb, list, deep] {
        let report = verdict_of(Memory::new().file("app/kustomization.yaml", text));
        assert!(report.findings.iter().any(|finding| finding.location.place.line > 0), "{:?}", report.verdict);
        assert_ne!(report.verdict, Verdict::Accept);
    }
}

/// Checks that the number of visited folders is limited. Each of twenty folders lists the next folder twice, so there
/// would be a million visits without a limit.
#[test]
fn folders_that_multiply_are_bounded() {
    let folder = |n: usize| format!("resources: [../f{0}, ../f{0}]\n", n + 1);
    let files = (0..20).fold(Memory::new(), |files, n| files.file(&format!("f{n}/kustomization.yaml"), folder(n)));
    let files =
        files.file("f20/kustomization.yaml", "resources: []\n").file("app/kustomization.yaml", "resources: [../f0]\n");
    let report = verdict_of(files);
    assert_eq!(report.verdict, Verdict::Unknown, "{:#?}", report.findings);
}

#[test]
fn reports_the_position_of_invalid_utf8() {
    let report = verdict_of(Memory::new().file("app/kustomization.yaml", b"resources: [\xff]\n"));
    assert_eq!((report.verdict, report.findings[0].rule), (Verdict::Reject, "KZ008"));
    let report = verdict_of(Memory::new().file("app/kustomization.yaml", b"\xff\xfer\0e\0"));
    assert_eq!((report.verdict, report.findings[0].rule), (Verdict::Unknown, "KZ040"));
}
