//! Tests of `portcullis diff`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn diff(folder: &Path, args: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    let output = command.arg("diff").args(args).current_dir(folder).output().expect("the binary is there");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    Run { code: output.status.code().expect("it exits"), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Returns a folder with the subfolders `old` and `new`. Both contain the files in the argument `old`. In the subfolder
/// `new`, the files in the argument `new` are added or replaced, and the files in `gone` are removed.
fn folders(old: &[(&str, &str)], new: &[(&str, &str)], gone: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for side in ["old", "new"] {
        write(&folder.path().join(side), old);
    }
    write(&folder.path().join("new"), new);
    for path in gone {
        fs::remove_file(folder.path().join("new").join(path)).unwrap();
    }
    folder
}

fn plan(folder: &Path, args: &[&str]) -> Value {
    let run = diff(folder, &[args, &["--output", "json"]].concat());
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", run.stdout, run.stderr))
}

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
      - name: log
        image: log:1
";
const KUSTOMIZATION: &str = "namespace: shop\nresources: [../base]\n";
const SHOP: [(&str, &str); 5] = [
    ("base/kustomization.yaml", "resources: [web.yaml, service.yaml]\n"),
    ("base/web.yaml", DEPLOYMENT),
    ("base/service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"),
    ("prod/kustomization.yaml", KUSTOMIZATION),
    ("other/kustomization.yaml", "configMapGenerator: [{name: settings, literals: [a=b]}]\n"),
];

#[test]
fn shows_changed_fields_with_their_places() {
    let newer = DEPLOYMENT.replace("replicas: 1", "replicas: 3").replace("log:1", "log:2");
    let folder = folders(&SHOP, &[("base/web.yaml", &newer)], &[]);
    let run = diff(folder.path(), &["old", "new"]);
    let expected = "prod
  ~ change   Deployment.apps shop/web
      spec.replicas: 1 -> 3  (base/web.yaml:6)
      spec.template.spec.containers[name=log].image: log:1 -> log:2  (base/web.yaml:15)

Plan: 0 to create, 1 to change, 0 to replace, 0 to delete, 0 moved, 1 unchanged
";
    assert_eq!((run.code, run.stdout.as_str()), (0, expected), "{}", run.stderr);
    assert_eq!(diff(folder.path(), &["old", "new", "--exit-code"]).code, 1);
    assert_eq!(diff(folder.path(), &["old", "old", "--exit-code"]).code, 0);
}

#[test]
fn compares_elements_by_the_schemas_merge_keys() {
    let sidecar = "      containers:\n      - name: proxy\n        image: proxy:1\n      - name: web\n";
    let newer = DEPLOYMENT.replace("      containers:\n      - name: web\n", sidecar);
    let folder = folders(&SHOP, &[("base/web.yaml", &newer)], &[]);
    let plan = plan(folder.path(), &["old", "new"]);
    let fields = plan["roots"][0]["objects"][0]["fields"].as_array().unwrap();
    assert_eq!(fields.len(), 1, "{fields:?}");
    assert_eq!(fields[0]["path"], "spec.template.spec.containers[name=proxy]");
    assert_eq!(fields[0]["before"], Value::Null);
}

#[test]
fn builds_only_roots_that_a_changed_file_reaches() {
    let folder = folders(&SHOP, &[("other/kustomization.yaml", "resources: []\n")], &[]);
    let plan = plan(folder.path(), &["old", "new"]);
    let roots: Vec<_> = plan["roots"].as_array().unwrap().iter().map(|root| &root["root"]).collect();
    assert_eq!(roots, ["other"]);
    assert_eq!(plan["untouchedRoots"], 1);
}

#[test]
fn generated_objects_are_replaced_and_not_deleted() {
    let other = "configMapGenerator: [{name: settings, literals: [a=c]}]\n";
    let folder = folders(&SHOP, &[("other/kustomization.yaml", other)], &[]);
    let plan = plan(folder.path(), &["old", "new"]);
    let object = &plan["roots"][0]["objects"][0];
    assert_eq!(object["action"], "replace");
    assert!(object["replaces"].as_str().unwrap().starts_with("settings-"), "{object}");
    let paths: Vec<_> = object["fields"].as_array().unwrap().iter().map(|field| &field["path"]).collect();
    assert_eq!(paths, ["data.a"]);
    assert_eq!((&plan["summary"]["replace"], &plan["summary"]["delete"]), (&1.into(), &0.into()));
}

#[test]
fn objects_that_another_root_renders_move() {
    let service = SHOP[2].1;
    let base = ("base/kustomization.yaml", "resources: [web.yaml]\n");
    let other = ("other/kustomization.yaml", "namespace: shop\nresources: [service.yaml]\n");
    let folder = folders(&SHOP, &[base, other, ("other/service.yaml", service)], &[]);
    let plan = plan(folder.path(), &["old", "new"]);
    assert_eq!(plan["summary"]["move"], 1, "{plan:#}");
    let prod = plan["roots"].as_array().unwrap().iter().find(|root| root["root"] == "prod").unwrap();
    assert_eq!((&prod["objects"][0]["action"], &prod["objects"][0]["movedTo"]), (&"move".into(), &"other".into()));
}

#[test]
fn values_of_secrets_are_never_printed() {
    let secret = |value: &str| {
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{password: {value}, user: u}}\n")
    };
    let old = [("kustomization.yaml", "resources: [s.yaml]\n"), ("s.yaml", &*secret("hunter-one"))];
    let folder = folders(&old, &[("s.yaml", &secret("hunter-two"))], &[]);
    for output in ["text", "json", "markdown", "unified"] {
        let run = diff(folder.path(), &["old", "new", "--output", output]);
        assert!(run.stdout.contains("(hidden "), "{output}: {}", run.stdout);
        assert!(!run.stdout.contains("hunter"), "{output}: {}", run.stdout);
    }
    let plan = plan(folder.path(), &["old", "new"]);
    let fields = plan["roots"][0]["objects"][0]["fields"].as_array().unwrap();
    assert_eq!(fields.len(), 1, "equal values are not listed: {fields:?}");
}

#[test]
fn reports_roots_that_appear_vanish_or_stop_building() {
    let new = [("prod/kustomization.yaml", "resources: [../missing]\n"), ("more/kustomization.yaml", KUSTOMIZATION)];
    let folder = folders(&SHOP, &new, &["other/kustomization.yaml"]);
    let plan = plan(folder.path(), &["old", "new"]);
    let states: Vec<_> =
        plan["roots"].as_array().unwrap().iter().map(|root| (root["root"].clone(), root["state"].clone())).collect();
    let expected = [("more", "appears"), ("other", "vanishes"), ("prod", "stops-building")];
    assert_eq!(states, expected.map(|(root, state)| (root.into(), state.into())));
    let run = diff(folder.path(), &["old", "new"]);
    assert!(run.stdout.contains("prod (no longer builds)\n"), "{}", run.stdout);
    assert!(run.stdout.contains("(prod/kustomization.yaml:1)"), "{}", run.stdout);
}

#[test]
fn a_root_that_needs_the_network_is_unknown() {
    let folder = folders(&SHOP, &[("prod/kustomization.yaml", "resources: [github.com/a/b]\n")], &[]);
    let run = diff(folder.path(), &["old", "new"]);
    assert_eq!(run.code, 3, "{}", run.stdout);
    assert!(run.stdout.contains("prod (unknown)\n"), "{}", run.stdout);
    assert!(run.stdout.contains("0 to delete"), "no deletion is reported for an unknown root: {}", run.stdout);
}

#[test]
fn limits_end_with_exit_code_2() {
    let folder = folders(&SHOP, &[("base/kustomization.yaml", "resources: []\n")], &[]);
    let exceeded_limits = |args: &[&str]| {
        let run = diff(folder.path(), &[&["old", "new"], args].concat());
        (run.code, run.stdout.lines().filter(|line| line.starts_with("error: ")).map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(exceeded_limits(&["--max-deletions", "2"]), (0, vec![]));
    assert_eq!(exceeded_limits(&["--max-deletions", "1"]).1, ["error: 2 objects are deleted; the maximum is 1"]);
    assert_eq!(
        exceeded_limits(&["--max-deletions", "50%"]).1,
        ["error: 2 of 2 objects are deleted; the maximum is 50%"]
    );
    assert_eq!(exceeded_limits(&["--fail-on", "delete,create"]).1, ["error: 2 objects are deleted"]);
    assert_eq!(exceeded_limits(&["--fail-on", "protected"]), (0, vec![]));
    let protected = "error: Service shop/web is protected, and prod deletes it";
    assert_eq!(exceeded_limits(&["--protect", "Service"]), (2, vec![protected.to_owned()]));
}

fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main"]);
    let output = command.args(args).current_dir(folder).output().expect("git is installed");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns a Git repository with two commits. The second commit changes an image.
fn shop_repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet"]);
    let newer = DEPLOYMENT.replace("web:1", "web:2");
    for files in [&SHOP[..], &[("base/web.yaml", &newer)]] {
        write(folder.path(), files);
        git(folder.path(), &["add", "--all"]);
        git(folder.path(), &["commit", "--quiet", "--message", "change"]);
    }
    folder
}

#[test]
fn compares_revisions_without_a_checkout() {
    let folder = shop_repository();
    let run = diff(folder.path(), &["--git", "HEAD~1..HEAD"]);
    assert!(run.stdout.contains("containers[name=web].image: web:1 -> web:2  (base/web.yaml:13)"), "{}", run.stdout);
    let short = git(folder.path(), &["rev-parse", "--short", "HEAD~1"]);
    assert_eq!(diff(&folder.path().join("prod"), &["--git", &format!("{short}..")]).stdout, run.stdout);
    let elsewhere = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    assert_eq!(diff(elsewhere.path(), &["--git", "HEAD^..main", "--repository", &place]).stdout, run.stdout);
}

#[test]
fn compares_a_revision_with_the_checkout() {
    let folder = shop_repository();
    let clean = diff(folder.path(), &["--git", "HEAD", "--exit-code"]);
    assert_eq!((clean.code, clean.stderr.as_str()), (0, ""), "{}", clean.stdout);
    write(folder.path(), &[("prod/kustomization.yaml", "namePrefix: x-\nresources: [../base]\n")]);
    let run = diff(folder.path(), &["--git", "HEAD", "--exit-code"]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("2 to create, 0 to change, 0 to replace, 2 to delete"), "{}", run.stdout);
}

#[test]
fn unusable_input_ends_with_exit_code_3() {
    let folder = shop_repository();
    for (args, words) in [
        (&["--git", "nowhere..HEAD"][..], "nowhere: Reference \"nowhere\" could not be found\n"),
        (&["--git", "HEAD~9"], "HEAD~9: "),
        (&["--git", "HEAD...HEAD"], "three dots"),
        (&["prod", "missing"], "missing"),
        (&["prod", "base/web.yaml"], "base/web.yaml"),
    ] {
        let run = diff(folder.path(), args);
        assert_eq!(run.code, 3, "{args:?}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(words), "{args:?}: {}", run.stderr);
    }
    let outside = tempfile::tempdir().unwrap();
    let run = diff(outside.path(), &["--git", "HEAD"]);
    assert_eq!((run.code, run.stderr.contains("Could not find a git repository")), (3, true), "{}", run.stderr);
}

#[test]
fn a_revision_that_a_shallow_clone_lacks_is_reported_with_the_reason() {
    let (folder, clones) = (shop_repository(), tempfile::tempdir().unwrap());
    let origin = format!("file://{}", folder.path().display());
    git(clones.path(), &["clone", "--quiet", "--depth", "1", &origin, "clone"]);
    let run = diff(&clones.path().join("clone"), &["--git", "HEAD~1..HEAD"]);
    assert_eq!(run.code, 3);
    assert!(run.stderr.contains("; the clone is shallow: fetch its history"), "{}", run.stderr);
}

#[test]
fn compares_archives() {
    let folder = shop_repository();
    for (name, revision) in [("old.tar", "HEAD~1"), ("new.tar", "HEAD")] {
        git(folder.path(), &["archive", "--output", name, revision]);
    }
    let run = diff(folder.path(), &["old.tar", "new.tar"]);
    assert!(run.stdout.contains("web:1 -> web:2"), "{}{}", run.stdout, run.stderr);
}

#[test]
fn markdown_of_a_large_change_fits_into_a_comment() {
    let map = |number: usize, value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}}}\ndata: {{key: {}}}\n",
            value.repeat(900)
        )
    };
    let folder = tempfile::tempdir().unwrap();
    for number in 0..200 {
        for (side, value) in [("old", "a"), ("new", "b")] {
            let root = folder.path().join(side).join(format!("root{number}"));
            write(&root, &[("kustomization.yaml", "resources: [map.yaml]\n"), ("map.yaml", &map(number, value))]);
        }
    }
    let run = diff(folder.path(), &["old", "new", "--output", "markdown"]);
    assert!(run.stdout.chars().count() <= 60_000, "{}", run.stdout.chars().count());
    assert!(run.stdout.starts_with("**Plan: 0 to create, 200 to change"), "{}", run.stdout.lines().next().unwrap());
    let left_out = run.stdout.lines().last().unwrap();
    assert!(left_out.ends_with("of 200 roots are left out: the text would be too long."), "{left_out}");
    assert_eq!(run.stdout.matches("<details>").count(), run.stdout.matches("</details>").count());
}

#[test]
fn github_appends_to_the_job_summary() {
    let folder = shop_repository();
    let summary = folder.path().join("summary.md");
    fs::write(&summary, "before\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["diff", "--git", "HEAD~1..HEAD", "--output", "github"]).current_dir(folder.path());
    let output = command.env("GITHUB_STEP_SUMMARY", &summary).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty());
    let text = fs::read_to_string(&summary).unwrap();
    assert!(text.starts_with("before\n**Plan: ") && text.contains("+      - image: web:2\n"), "{text}");
}

/// Returns a folder with two copies of `examples/gitops`, called `old` and `new`. `changes` are replacements in files
/// of `new`: the path, the text to replace, and the new text.
fn gitops(changes: &[(&str, &str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for side in ["old", "new"] {
        copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/gitops"), &folder.path().join(side));
    }
    for (path, from, to) in changes {
        let path = folder.path().join("new").join(path);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{} has no {from:?}", path.display());
        fs::write(&path, text.replace(from, to)).unwrap();
    }
    folder
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).unwrap();
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// The diff builds the roots with the options that Flux uses. `kubectl kustomize` could not build them, because a patch
/// is in a file outside of the root.
#[test]
fn builds_roots_and_substitutes_variables_as_flux_does() {
    let folder = gitops(&[("clusters/production/settings.yaml", "domain: example.org", "domain: example.com")]);
    let run = diff(folder.path(), &["old", "new"]);
    let expected = "\
apps/production: Kustomization flux-system/apps
  ~ change   Deployment.apps web/web
      spec.template.spec.containers[name=web].env[name=URL].value: https://example.org -> \
                    https://example.com  (apps/base/web/deployment.yaml:19)

clusters/production: Kustomization flux-system/flux-system
  ~ change   ConfigMap flux-system/settings
      data.domain: example.org -> example.com  (clusters/production/settings.yaml:7)

Plan: 0 to create, 2 to change, 0 to replace, 0 to delete, 0 moved, 3 unchanged
";
    assert_eq!(run.stdout, expected, "{}", run.stderr);
    let plan = plan(folder.path(), &["old", "new"]);
    let owner = &plan["roots"][0]["builtBy"][0];
    assert_eq!(
        (&owner["object"], &owner["cluster"]),
        (&"Kustomization flux-system/apps".into(), &"clusters/production/flux-system".into())
    );
    let kubectl = diff(folder.path(), &["old", "new", "--profile", "kubectl"]);
    assert!(!kubectl.stdout.contains("apps/production"), "no file of that root changes: {}", kubectl.stdout);
}

/// If the path of a Kustomization changes to another folder, the diff reports the objects of the Kustomization as
/// changed, not as deleted.
#[test]
fn follows_a_kustomization_to_another_folder() {
    let folder = gitops(&[("clusters/staging/apps.yaml", "path: ./apps/staging", "path: ./apps/production")]);
    let plan = plan(folder.path(), &["old", "new"]);
    assert_eq!(plan["summary"]["delete"], 0, "{plan:#}");
    let staging = plan["roots"].as_array().unwrap().iter().find(|root| {
        root["builtBy"].as_array().unwrap().iter().any(|owner| owner["cluster"] == "clusters/staging/flux-system")
    });
    assert_eq!(staging.unwrap()["root"], "apps/production");
}

#[test]
fn reports_orphaned_objects_without_pruning() {
    let gone = ("apps/base/web/kustomization.yaml", "deployment.yaml", "config.yaml");
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n";
    let prunes = gitops(&[gone]);
    write(&prunes.path().join("new"), &[("apps/base/web/config.yaml", config)]);
    fs::write(prunes.path().join("new/apps/replicas.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n")
        .unwrap();
    let summary = plan(prunes.path(), &["old", "new"])["summary"].clone();
    assert_eq!((&summary["delete"], &summary["orphan"]), (&2.into(), &0.into()));
    for side in ["old", "new"] {
        let apps = prunes.path().join(side).join("clusters/production/apps.yaml");
        let text = fs::read_to_string(&apps).unwrap().replace("prune: true", "prune: false");
        fs::write(&apps, text).unwrap();
    }
    let summary = plan(prunes.path(), &["old", "new"])["summary"].clone();
    assert_eq!((&summary["delete"], &summary["orphan"]), (&1.into(), &1.into()));
    let text = diff(prunes.path(), &["old", "new"]).stdout;
    assert!(text.contains("! orphan   Deployment.apps web/web (stays in the cluster: pruning is off)"), "{text}");
    assert!(text.contains("1 to delete, 1 orphaned, 0 moved"), "{text}");
}

/// If a Kustomization is removed, the diff reports its objects as deleted, because Flux deletes them. If the
/// `deletionPolicy` of the Kustomization is `Orphan`, the diff reports them as orphaned.
#[test]
fn deletes_the_objects_of_removed_kustomizations() {
    for (policy, expected) in [("", (1, 0)), ("\n  deletionPolicy: Orphan", (0, 1))] {
        let folder = gitops(&[]);
        let apps = "clusters/production/apps.yaml";
        let old = folder.path().join("old").join(apps);
        let text = fs::read_to_string(&old).unwrap().replace("prune: true", &format!("prune: true{policy}"));
        fs::write(&old, text).unwrap();
        fs::remove_file(folder.path().join("new").join(apps)).unwrap();
        let plan = plan(folder.path(), &["old", "new"]);
        let root = plan["roots"].as_array().unwrap().iter().find(|root| root["state"] == "vanishes").unwrap();
        let count = |action: &str| {
            root["objects"].as_array().unwrap().iter().filter(|object| object["action"] == action).count()
        };
        assert_eq!((count("delete"), count("orphan")), expected, "{root:#}");
    }
}

/// Objects with the same name in two clusters are different objects, so the diff reports no move.
#[test]
fn an_object_does_not_move_between_clusters() {
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: web}\n";
    let folder = gitops(&[]);
    write(&folder.path().join("old"), &[("clusters/staging/x.yaml", config)]);
    write(&folder.path().join("new"), &[("clusters/production/x.yaml", config)]);
    let summary = plan(folder.path(), &["old", "new"])["summary"].clone();
    assert_eq!((&summary["create"], &summary["delete"], &summary["move"]), (&1.into(), &1.into(), &0.into()));
}

#[test]
fn sets_common_metadata_as_flux_does() {
    let common = "prune: true\n  commonMetadata: {labels: {team: web}}";
    let folder = gitops(&[("clusters/staging/apps.yaml", "prune: true", common)]);
    let run = diff(folder.path(), &["old", "new"]);
    let expected = "  ~ change   Deployment.apps web/web\n      metadata.labels: set to {\"team\":\"web\"}\n";
    assert!(run.stdout.contains(expected), "{}", run.stdout);
}
