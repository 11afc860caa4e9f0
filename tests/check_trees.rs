//! Tests of `portcullis check` on kustomize trees.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::fs;
use std::path::Path;
use std::process::Command;

use cases::repository;
use serde_json::Value;

fn check(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .arg("check")
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the binary is there");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    (output.status.code().expect("it exits"), text(output.stdout), text(output.stderr))
}

fn report(folder: &Path, args: &[&str]) -> Value {
    let (_, stdout, stderr) = check(folder, &[args, &["--output", "json"]].concat());
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), files);
    folder
}

fn copy(from: &Path, to: &Path, wanted: &dyn Fn(&str) -> bool) {
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let target = to.join(&name);
        if path.is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&path, &target, wanted);
        } else if wanted(&name.to_string_lossy()) {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Copies the files in `examples/kustomize` whose names `wanted` accepts into a new folder, and returns this folder.
/// The example comes from the design proposal for kustomize components.
fn example(wanted: &dyn Fn(&str) -> bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&repository().join("examples/kustomize"), folder.path(), wanted);
    folder
}

fn verdicts(report: &Value) -> Vec<(String, String)> {
    let text = |root: &Value, key: &str| root[key].as_str().unwrap_or_default().to_owned();
    let roots = report["roots"].as_array().expect("roots is a list");
    roots.iter().map(|root| (text(root, "root"), text(root, "verdict"))).collect()
}

/// Returns the rule, file and line of each finding of level `deny`.
fn denied(report: &Value) -> Vec<(String, String, u64)> {
    let findings = report["findings"].as_array().expect("findings is a list").iter();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    findings
        .filter(|finding| finding["level"] == "deny")
        .map(|finding| (text(finding, "rule"), text(finding, "file"), finding["line"].as_u64().unwrap_or_default()))
        .collect()
}

const OVERLAYS: [&str; 3] = ["overlays/community", "overlays/dev", "overlays/enterprise"];

#[test]
fn the_worked_example_is_accepted() {
    let example = example(&|_| true);
    let (code, stdout, _) = check(example.path(), &["."]);
    assert_eq!(code, 0, "{stdout}");
    let expected: Vec<_> = OVERLAYS.iter().map(|root| ((*root).to_owned(), "accept".to_owned())).collect();
    assert_eq!(verdicts(&report(example.path(), &["."])), expected);
}

#[test]
fn reports_every_missing_text_file() {
    let example = example(&|name| !name.ends_with(".txt"));
    let report = report(example.path(), &["."]);
    assert!(verdicts(&report).iter().all(|(_, verdict)| verdict == "reject"), "{report}");
    let mut found: Vec<_> =
        denied(&report).into_iter().map(|(rule, file, line)| format!("{rule} {file}:{line}")).collect();
    found.sort();
    let expected = [
        "KZ004 components/external_db/kustomization.yaml:7",
        "KZ004 components/ldap/kustomization.yaml:7",
        "KZ004 components/recaptcha/kustomization.yaml:7",
        "KZ004 components/recaptcha/kustomization.yaml:8",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_component_under_resources_is_refused_and_moved() {
    let example = example(&|_| true);
    let overlay = example.path().join("overlays/community/kustomization.yaml");
    let right = fs::read_to_string(&overlay).unwrap();
    let wrong = right
        .replace("components:\n  - ../../components/external_db\n", "  - ../../components/external_db\ncomponents:\n");
    fs::write(&overlay, &wrong).unwrap();
    let found = denied(&report(example.path(), &["."]));
    assert_eq!(found, [("KZ001".to_owned(), "overlays/community/kustomization.yaml".to_owned(), 7)]);
    let (code, stdout, stderr) = check(example.path(), &["--fix", "."]);
    assert_eq!(code, 0, "{stdout}");
    assert_eq!(stderr, "fixed overlays/community/kustomization.yaml: resources[1] is now in components\n");
    let fixed = fs::read_to_string(&overlay).unwrap();
    assert!(
        fixed.ends_with("components:\n  - ../../components/recaptcha\n  - ../../components/external_db\n"),
        "{fixed}"
    );
}

#[test]
fn a_kustomization_under_components_is_refused() {
    let example = example(&|_| true);
    let overlay = example.path().join("overlays/dev/kustomization.yaml");
    let right = fs::read_to_string(&overlay).unwrap();
    fs::write(&overlay, right.replace("components:\n", "components:\n  - ../../base\n")).unwrap();
    let (code, stdout, _) = check(example.path(), &["."]);
    assert_eq!(code, 1);
    assert!(stdout.contains("error[KZ002]: \"../../base\" is a Kustomization"), "{stdout}");
}

#[test]
fn reports_all_findings_of_all_roots() {
    let folder = tree(&[
        ("a/kustomization.yaml", "resources: [../c, missing.yaml]\nnamePrefx: x\n"),
        ("b/kustomization.yaml", "components: [../a]\n"),
        ("c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"),
        (
            "lonely/kustomization.yaml",
            "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\nresources: [gone.yaml]\n",
        ),
    ]);
    let rules: Vec<_> =
        denied(&report(folder.path(), &["."])).into_iter().map(|(rule, file, _)| format!("{rule} {file}")).collect();
    for expected in [
        "KZ001 a/kustomization.yaml",
        "KZ004 a/kustomization.yaml",
        "KZ008 a/kustomization.yaml",
        "KZ002 b/kustomization.yaml",
        "KZ004 lonely/kustomization.yaml",
    ] {
        assert!(rules.iter().any(|rule| rule == expected), "{expected} is not among {rules:?}");
    }
}

/// Checks that one run of `portcullis check` checks both objects and kustomizations. A patch file is not checked as an
/// object.
#[test]
fn judges_objects_and_trees_in_one_run() {
    let folder = tree(&[
        ("app/kustomization.yaml", "resources: [context.yaml]\npatches: [{path: patch.yaml}]\n"),
        (
            "app/context.yaml",
            "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Context\nmetadata: {name: c}\nrepositoryContext: x\n",
        ),
        (
            "app/patch.yaml",
            "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Context\nmetadata: {name: c}\nrepositoryContext: 7\n",
        ),
    ]);
    let report = report(folder.path(), &["."]);
    assert_eq!(denied(&report), [("OW001".to_owned(), "app/context.yaml".to_owned(), 4)]);
    assert_eq!(verdicts(&report), [("app".to_owned(), "accept".to_owned())]);
}

#[test]
fn judges_folders_that_refer_to_each_other() {
    let folder =
        tree(&[("a/kustomization.yaml", "resources: [../b]\n"), ("b/kustomization.yaml", "resources: [../a]\n")]);
    let report = report(folder.path(), &["."]);
    assert_eq!(verdicts(&report).len(), 1);
    assert!(denied(&report).iter().any(|(rule, _, _)| rule == "KZ009"), "{report}");
}

#[test]
fn selects_profiles_and_roots() {
    let folder = tree(&[
        ("app/kustomization.yaml", "resources: [../cm.yaml]\n"),
        ("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"),
    ]);
    assert_eq!(check(folder.path(), &["."]).0, 1);
    assert_eq!(check(folder.path(), &["--load-restrictor", "none", "."]).0, 0);
    assert_eq!(check(folder.path(), &["--profile", "flux", "."]).0, 0);
    let report = report(folder.path(), &["--root", "app", "."]);
    assert_eq!(verdicts(&report), [("app".to_owned(), "reject".to_owned())]);
    assert_eq!(check(folder.path(), &["--profile", "helm", "."]).0, 2);
}

/// Files that a root does not refer to are not read, so errors in them do not matter.
#[test]
fn reads_only_files_of_the_given_root() {
    let folder = tree(&[
        ("app/kustomization.yaml", "resources: [../base]\n"),
        ("base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("base/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
        ("elsewhere/kustomization.yaml", "resources: [missing.yaml]\n"),
        ("elsewhere/broken.yaml", "a: [\n"),
    ]);
    assert_eq!(check(folder.path(), &["."]).0, 2);
    for args in [&["--root", "app"][..], &[".", "--root", "app"]] {
        let (code, stdout, stderr) = check(folder.path(), args);
        assert_eq!((code, &*stderr), (0, ""), "{stdout}");
        let report = report(folder.path(), args);
        assert_eq!((&report["files"], verdicts(&report)), (&0.into(), vec![("app".to_owned(), "accept".to_owned())]));
    }
    // Files that the command line names are read.
    let (code, stdout, _) = check(folder.path(), &["elsewhere/broken.yaml", "--root", "app"]);
    assert_eq!(code, 2, "{stdout}");
}

/// Returns a YAML object of about 1,500 bytes whose aliases expand to about ninety thousand values.
fn bomb(name: &str) -> String {
    let (zeros, aliases) = (["0"; 300].join(","), ["*a"; 300].join(","));
    let head = "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Installation\n";
    format!("{head}metadata: {{name: {name}}}\nspec:\n  a: &a [{zeros}]\n  b: [{aliases}]\n")
}

/// Checks that `check` limits how many values the YAML aliases of all documents in one run create. In this test, each
/// object is within the limit for one document. But all 200 objects together would take gigabytes of memory. `check`
/// reads 11 of them, and reports an error for each of the others.
#[test]
fn limits_the_aliases_of_all_documents_together() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..200 {
        fs::write(folder.path().join(format!("{number}.yaml")), bomb(&format!("bomb-{number}"))).unwrap();
    }
    let (code, stdout, _) = check(folder.path(), &["."]);
    assert_eq!(code, 2);
    let refused = stdout.matches("its aliases expand to 90601 values, and with those of other documents").count();
    assert_eq!(
        refused,
        189,
        "the aliases of eleven documents expand to a million values: {}",
        &stdout[..stdout.len().min(2000)]
    );
    assert!(stdout.contains("checked 11 objects in 200 files"), "{}", &stdout[stdout.len().saturating_sub(200)..]);
}

#[test]
fn releases_alias_bombs_within_a_root() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<_> = (0..20).map(|number| format!("bomb-{number}")).collect();
    let resources: String = names.iter().map(|name| format!("  - {name}.yaml\n")).collect();
    fs::write(folder.path().join("kustomization.yaml"), format!("resources:\n{resources}")).unwrap();
    for name in &names {
        fs::write(folder.path().join(format!("{name}.yaml")), bomb(name)).unwrap();
    }
    let report = report(folder.path(), &["--root", "."]);
    assert_eq!(verdicts(&report), [(".".to_owned(), "unknown".to_owned())]);
    let reasons = report["roots"][0]["reasons"].as_array().unwrap();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    let reason = reasons[0].as_str().unwrap();
    assert!(reason.starts_with("kustomization.yaml:20: the build needs more than 256 MiB"), "{reason}");
}

#[test]
fn uses_the_configured_levels() {
    let folder =
        tree(&[("app/kustomization.yaml", "resources: [gone.yaml]\n"), ("portcullis.yml.conf", "rules: {KZ: warn}\n")]);
    let (code, stdout, stderr) = check(folder.path(), &["--config", "portcullis.yml.conf", "."]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("warning[KZ004]"), "{stdout}");
}

#[test]
fn explain_draws_the_tree_in_every_form() {
    let example = example(&|_| true);
    let explain = |output: &str| {
        let run = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(["explain", "kustomize", "overlays/enterprise", "--output", output])
            .current_dir(example.path())
            .output()
            .expect("the binary is there");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).expect("it writes text")
    };
    let text = explain("text");
    for part in ["components/ldap (Component)", "base (Kustomization)", "overlays/enterprise: accept"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let reported: Value = serde_json::from_str(&explain("json")).expect("it writes JSON");
    assert_eq!(reported["verdict"], "accept");
    assert!(explain("dot").starts_with("digraph"));
    assert!(explain("mermaid").contains("flowchart") || explain("mermaid").contains("graph"));
    assert!(explain("svg").starts_with("<svg"));
}

/// Regression test for issue 18 (Kustomize on public repositories): paths are shown relative to the current folder if
/// they are below it.
#[test]
fn shows_paths_as_the_user_wrote_them() {
    let root = "resources: [https://example.com/a.yaml, s.yaml]\n";
    let settings = "kind: ConfigMap\nmetadata: {name: a}\n";
    let files = [("app/kustomization.yaml", root), ("app/s.yaml", settings)];
    let (folder, elsewhere) = (tree(&files), tempfile::tempdir().unwrap());
    let report = report(folder.path(), &["app"]);
    assert!(report["roots"][0]["reasons"][0].as_str().unwrap().starts_with("app/kustomization.yaml:1: "), "{report}");
    let app = folder.path().canonicalize().unwrap().join("app").display().to_string();
    for (here, shown) in [(folder.path(), "app"), (elsewhere.path(), &*app)] {
        let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(["explain", "kustomize", &app])
            .current_dir(here)
            .output()
            .expect("the binary is there");
        let text = String::from_utf8(output.stdout).expect("it writes text");
        let words = [format!("{shown} (Kustomization)"), format!("resources: {shown}/s.yaml")];
        for word in words.into_iter().chain([format!("because {shown}/kustomization.yaml:1:")]) {
            let bare = text.lines().filter(|line| line.contains(app.trim_start_matches('/')) && !line.contains(&app));
            assert!(text.contains(&word) && bare.count() == 0, "{text} without {word:?}");
        }
    }
}

#[test]
fn reports_and_lists_forgotten_manifests() {
    let object = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n");
    let (listed, forgotten, hidden) = (object("listed"), object("forgotten"), object("hidden"));
    let folder = tree(&[
        ("app/kustomization.yaml", "resources:\n- listed.yaml # always\n"),
        ("app/listed.yaml", &listed),
        ("app/forgotten.yaml", &forgotten),
        ("app/same.yaml", &forgotten),
        ("app/.gitignore", "ignored.yaml\n"),
        ("app/ignored.yaml", &hidden),
        ("app/.hidden.yaml", &hidden),
        ("app/manual-volume.yaml", &hidden),
        ("plain/objects.yaml", &hidden),
    ]);
    let found = |args: &[&str]| -> Vec<String> {
        let report = report(folder.path(), args);
        let findings = report["findings"].as_array().unwrap().iter();
        findings.map(|finding| format!("{} {}", finding["rule"], finding["message"])).collect()
    };
    assert_eq!(found(&["."]).len(), 2, "{:?}", found(&["."]));
    assert_eq!(found(&["--root", "app"]), [""; 0]);
    let (code, _, stderr) = check(folder.path(), &["--fix", "."]);
    assert_eq!((code, &*stderr), (0, "fixed app/kustomization.yaml: forgotten.yaml is now in resources\n"));
    let fixed = fs::read_to_string(folder.path().join("app/kustomization.yaml")).unwrap();
    assert_eq!(fixed, "resources:\n- listed.yaml # always\n- forgotten.yaml\n");
    assert_eq!(found(&["."]), [""; 0], "the other file has the same object");
}
