//! Tests of the command `portcullis build`. The tests in tests/kustomize_builds.rs compare its output with that of
//! kustomize.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn build(folder: &Path, args: &[&str], stdin: &[u8]) -> Run {
    run(folder, &[&["build"], args].concat(), stdin)
}

fn run(folder: &Path, args: &[&str], stdin: &[u8]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(args).current_dir(folder).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary is there");
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    Run { code: output.status.code().expect("it exits"), stdout: text(output.stdout), stderr: text(output.stderr) }
}

const FILES: [(&str, &str); 5] = [
    ("base/kustomization.yaml", "resources: [map.yaml, account.yaml]\n"),
    ("base/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"),
    ("base/account.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}\n"),
    ("prod/kustomization.yaml", "namePrefix: prod-\nresources: [../base]\n"),
    ("test/kustomization.yaml", "namePrefix: test-\nresources: [../base]\n"),
];
const PROD: &str = "apiVersion: v1
kind: ServiceAccount
metadata:
  name: prod-robot
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: prod-settings
";

fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in FILES {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn prints_or_writes_the_objects() {
    let folder = repository();
    let run = build(folder.path(), &["prod"], b"");
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, PROD, ""));
    assert_eq!(build(folder.path(), &["prod", "-o", "prod.yaml"], b"").stdout, "");
    assert_eq!(fs::read_to_string(folder.path().join("prod.yaml")).unwrap(), PROD);
    fs::create_dir(folder.path().join("out")).unwrap();
    assert_eq!(build(folder.path(), &["prod", "-o", "out"], b"").code, 0);
    let mut names: Vec<_> =
        fs::read_dir(folder.path().join("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["v1_configmap_prod-settings.yaml", "v1_serviceaccount_prod-robot.yaml"]);
}

/// Checks that `portcullis build -` reads tar archives with and without gzip compression. By default, `git archive`
/// writes archives without compression.
#[test]
fn reads_archives_from_standard_input() {
    let files = [("kustomization.yaml", "namePrefix: prod-\nresources: [base]\n"), FILES[0], FILES[1], FILES[2]];
    let mut archive = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    let plain = archive.into_inner().unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&plain).unwrap();
    for archive in [plain, packed.finish().unwrap()] {
        let run = build(Path::new("/"), &["-"], &archive);
        assert_eq!((run.code, run.stdout.as_str()), (0, PROD), "{}", run.stderr);
    }
    let run = build(Path::new("/"), &["-"], b"apiVersion: v1\nkind: ConfigMap\n");
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("the archive cannot be read"), "{}", run.stderr);
}

#[test]
fn builds_all_roots_of_a_repository() {
    let folder = repository();
    let run = build(folder.path(), &["--all", ".", "-o", "out"], b"");
    assert_eq!((run.code, run.stderr.as_str()), (0, "2 of 2 roots built, 0 failed\n"));
    assert_eq!(fs::read_to_string(folder.path().join("out/prod.yaml")).unwrap(), PROD);
    assert!(folder.path().join("out/test.yaml").is_file() && !folder.path().join("out/base.yaml").exists());
    fs::write(folder.path().join("test/kustomization.yaml"), "resources: [missing.yaml]\n").unwrap();
    let run = build(folder.path(), &["--all", ".", "-o", "other"], b"");
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.starts_with("test: error: ") && run.stderr.ends_with("1 of 2 roots built, 1 failed\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn writes_only_files_that_change() {
    let folder = repository();
    let build_all = || build(folder.path(), &["--all", ".", "-o", "out"], b"");
    assert_eq!(build_all().code, 0);
    let file = |name: &str| folder.path().join("out").join(name);
    let modified = |name: &str| fs::metadata(file(name)).unwrap().modified().unwrap();
    fs::File::options().write(true).open(file("prod.yaml")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    fs::write(file("test.yaml"), "of an earlier build\n").unwrap();
    assert_eq!(build_all().code, 0);
    assert_eq!(modified("prod.yaml"), SystemTime::UNIX_EPOCH);
    assert!(fs::read_to_string(file("test.yaml")).unwrap().starts_with("apiVersion: "));
    fs::write(file("prod.yaml"), PROD.to_uppercase()).unwrap();
    assert_eq!(build_all().code, 0);
    assert_eq!(fs::read_to_string(file("prod.yaml")).unwrap(), PROD);
}

#[test]
fn shows_where_each_value_comes_from() {
    let folder = repository();
    let patch = "nameSuffix: -x\nresources: [../base]\npatches:\n- path: patch.yaml\n";
    fs::write(folder.path().join("prod/kustomization.yaml"), patch).unwrap();
    let text =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  text: |\n    a\n    b\n  level: info\n";
    fs::write(folder.path().join("prod/patch.yaml"), text).unwrap();
    let run = build(folder.path(), &["prod", "--provenance"], b"");
    let expected = "apiVersion: v1 # base/account.yaml:1
kind: ServiceAccount # base/account.yaml:2
metadata:
  name: robot-x # prod/kustomization.yaml:1
---
apiVersion: v1 # prod/patch.yaml:1
data:
  level: info # prod/patch.yaml:9
  text: | # prod/patch.yaml:7
    a
    b
kind: ConfigMap # prod/patch.yaml:2
metadata:
  name: settings-x # prod/kustomization.yaml:1
";
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, expected, ""));
}

#[test]
fn prints_every_error_once() {
    let folder = repository();
    fs::write(folder.path().join("prod/kustomization.yaml"), "resources: [gone.yaml, ../base, lost.yaml]\n").unwrap();
    let run = build(folder.path(), &["prod"], b"");
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    let headlines: Vec<&str> = run.stderr.lines().filter(|line| line.contains("KZ004")).collect();
    let [first, second] = headlines.as_slice() else { panic!("{}", run.stderr) };
    assert!(first.starts_with("error: KZ004 resources[0]: \"gone.yaml\""), "{}", run.stderr);
    assert!(second.starts_with("KZ004 resources[2]: \"lost.yaml\""), "{}", run.stderr);
    assert_eq!(run.stderr.matches("at prod/kustomization.yaml:1:").count(), 2, "{}", run.stderr);
}

#[test]
fn reports_paths_that_are_not_folders() {
    const KUSTOMIZATION: &str = "prod/kustomization.yaml: this is a file, not a folder; use its folder: prod";
    let folder = repository();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["build", "prod/kustomization.yaml"], 1, KUSTOMIZATION),
        (&["build", "base/map.yaml"], 1, "base/map.yaml: this is a file, not a folder"),
        (&["build", "--all", "prod/kustomization.yaml", "-o", "out"], 2, KUSTOMIZATION),
        (&["build", "--all", "gone", "-o", "out"], 2, "gone: No such file or directory (os error 2)"),
        (&["build", "--all", "empty", "-o", "out"], 2, "empty: no kustomize root found"),
        (&["explain", "kustomize", "prod/kustomization.yaml"], 2, KUSTOMIZATION),
        (&["explain", "repository", "gone"], 2, "gone: No such file or directory (os error 2)"),
        (&["check", ".", "--root", "prod/kustomization.yaml"], 2, KUSTOMIZATION),
    ];
    for (args, code, error) in cases {
        let run = run(folder.path(), args, b"");
        assert_eq!((run.code, run.stdout.as_str(), run.stderr), (code, "", format!("error: {error}\n")), "{args:?}");
    }
}

#[test]
fn flags_for_external_programs_are_refused_by_name() {
    let folder = repository();
    for flag in ["--enable-helm", "--enable-alpha-plugins", "--enable-exec", "--as-current-user", "--network"] {
        let run = build(folder.path(), &["prod", flag], b"");
        assert_eq!(run.code, 1, "{flag}");
        assert!(run.stderr.starts_with(&format!("error: not supported: {flag}: ")), "{}", run.stderr);
    }
}

/// Builds two kustomizations that also fail in kustomize 5.8.1. In the first one, the `IAMPolicyGenerator` does not
/// name a service account of Google Cloud. In the second one, the file with the custom schema is empty.
#[test]
fn refuses_accounts_without_names_and_empty_schemas() {
    const GENERATOR: &str = "apiVersion: builtin\nkind: IAMPolicyGenerator\nmetadata: {name: plugged}\ncloud: gke\nkubernetesService: {name: web}\n";
    let account = "serviceAccount: {name: gsa, projectId: p}\n";
    let cases = [
        ("generators: [account.yaml]\n", "", "KZ031"),
        ("openapi: {path: schema.yaml}\ngenerators: [account.yaml]\n", account, "the schema is empty"),
    ];
    for (kustomization, account, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("kustomization.yaml", kustomization.to_owned()),
            ("account.yaml", format!("{GENERATOR}{account}")),
            ("schema.yaml", String::new()),
        ];
        files.iter().for_each(|(path, text)| fs::write(folder.path().join(path), text).unwrap());
        let run = build(folder.path(), &[], b"");
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{}", run.stderr);
        assert!(run.stderr.contains(expected), "{expected} is not in {}", run.stderr);
    }
}

const PATCHED: &str = "components: [../part]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: {template: {spec: {containers: [{name: a, image: three}]}}}
";
const UNSELECTED: &str = "resources: [map.yaml]
patches: [{patch: '{apiVersion: v1, kind: Secret, metadata: {name: a}}', target: {kind: Secret}}]
";

/// If a kustomization has a custom schema, kustomize does not use its built-in schema. Exception: it uses the built-in
/// schema if it had to look up an unknown kind before it read the custom schema. The expected results are those of
/// kustomize 5.8.1. A differential test found this case.
#[test]
fn a_custom_schema_replaces_the_built_in_one_unless_that_was_needed_before() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let object = |api_version: &str, kind: &str| format!("{api_version}kind: {kind}\nmetadata: {{name: a}}\n");
    write("part/kustomization.yaml", "kind: Component\nresources: [web.yaml]\nopenapi: {path: schema.json}\n");
    let containers = "[{name: a, image: one}, {name: b, image: two}]";
    let web = format!(
        "kind: Deployment\nmetadata: {{name: web}}\nspec: {{template: {{spec: {{containers: {containers}}}}}}}\n"
    );
    write("part/web.yaml", &format!("apiVersion: apps/v1\n{web}"));
    write("part/schema.json", "{\"definitions\": {}}");
    write("other/kustomization.yaml", UNSELECTED);
    write("other/map.yaml", &object("apiVersion: v1\n", "ConfigMap"));
    write("app/known.yaml", &object("apiVersion: v1\n", "ConfigMap"));
    write("app/no-version.yaml", &object("", "ClusterRole"));
    write("app/plugin.yaml", &object("apiVersion: builtin\n", "ConfigMapGenerator"));
    let cases = [
        ("resources: [known.yaml]", false),
        ("resources: [../other]", false),
        ("resources: [no-version.yaml]", true),
        ("generators: [plugin.yaml]", true),
        ("generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: g}}']", true),
    ];
    for (field, merges) in cases {
        write("app/kustomization.yaml", &format!("{field}\n{PATCHED}"));
        let run = build(folder.path(), &["app"], b"");
        assert_eq!((run.code, run.stdout.contains("image: two")), (0, merges), "{field}: {}{}", run.stdout, run.stderr);
    }
}
