//! Tests of `portcullis check` on checkouts of GitOps repositories: which roots `check` finds, and which tool builds
//! each root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::fs;
use std::path::Path;
use std::process::Command;

use cases::repository;
use serde_json::Value;
use tempfile::TempDir;

/// A copy of a repository, with a folder `.git`.
struct Checkout(TempDir);

impl Checkout {
    /// Copies the folder `folder` of this repository, and adds a folder `.git` to the copy. `remote` is the URL of the
    /// Git remote that `.git` contains.
    fn of(folder: &str, remote: &str) -> Self {
        let copy = Self(tempfile::tempdir().unwrap());
        copy_folder(&repository().join(folder), copy.0.path());
        copy.write(".git/HEAD", "ref: refs/heads/fix\n");
        copy.write(".git/config", &format!("[remote \"origin\"]\n\turl = {remote}\n"));
        copy.write(".git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main\n");
        copy
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Replaces a text in a file. Panics if the file does not contain the text.
    fn replace(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.0.path().join(path)).unwrap();
        assert!(text.contains(from), "{path} has no {from:?}");
        self.write(path, &text.replace(from, to));
    }

    fn check(&self, args: &[&str]) -> String {
        self.run(&[&["check", "."], args].concat())
    }

    fn run(&self, args: &[&str]) -> String {
        let run = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(args)
            .current_dir(self.0.path())
            .output()
            .expect("the binary is there");
        assert!(run.stderr.is_empty(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).expect("it writes text")
    }

    fn report(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.check(&[args, &["-o", "json"]].concat())).expect("it writes JSON")
    }

    /// Returns the level, rule, file and line of each finding.
    fn findings(&self, args: &[&str]) -> Vec<String> {
        let report = self.report(args);
        let text = |finding: &Value, key: &str| finding[key].to_string().replace('"', "");
        let findings = report["findings"].as_array().unwrap().iter();
        let line = |finding| ["level", "rule", "file", "line"].map(|key| text(finding, key)).join(" ");
        findings.map(line).collect()
    }

    /// Runs `portcullis check`. Returns one text for each root: its profile (the system that builds it, such as Flux),
    /// its verdict and its folder.
    fn roots(&self, args: &[&str]) -> Vec<String> {
        let report = self.report(args);
        let text = |root: &Value, key: &str| root[key].as_str().unwrap().to_owned();
        let roots = report["roots"].as_array().unwrap().iter();
        let mut roots: Vec<_> =
            roots.map(|root| ["profile", "verdict", "root"].map(|key| text(root, key)).join(" ")).collect();
        roots.sort();
        roots
    }
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let target = to.join(&name);
        if path.is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn monorepo() -> Checkout {
    Checkout::of("examples/gitops", "git@github.com:example/fleet.git")
}

fn home_ops() -> Checkout {
    Checkout::of("tests/repositories/home-ops", "https://github.com/Example/home-ops.git")
}

fn team_repositories() -> Checkout {
    Checkout::of("tests/repositories/team-repositories", "https://github.com/example/platform")
}

fn applied_by_others() -> Checkout {
    Checkout::of("tests/repositories/applied-by-others", "https://github.com/example/fleet")
}

#[test]
fn prints_one_line_for_a_healthy_repository() {
    for (copy, expected) in [
        (monorepo(), "checked 9 objects in 7 files and 4 kustomize roots: 0 denied, 0 warnings\n"),
        (home_ops(), "checked 5 objects in 5 files and 4 kustomize roots: 0 denied, 0 warnings\n"),
        (
            team_repositories(),
            "checked 7 objects in 4 files and 2 kustomize roots: 0 denied, 0 warnings; 2 Kustomizations build from 2 other \
             repositories\n",
        ),
        (applied_by_others(), "checked 2 objects in 2 files and 2 kustomize roots: 0 denied, 0 warnings\n"),
    ] {
        assert_eq!(copy.check(&[]), expected);
    }
}

#[test]
fn judges_each_root_as_flux_builds_it() {
    let copy = monorepo();
    let expected = ["apps/production", "apps/staging", "clusters/production", "clusters/staging"];
    assert_eq!(copy.roots(&[]), expected.map(|root| format!("flux accept {root}")));
    // kubectl rejects patch files outside of the root.
    assert!(copy.roots(&["--profile", "kubectl"]).contains(&"kubectl reject apps/staging".to_owned()));
}

#[test]
fn reports_errors_in_the_file_that_has_them_once() {
    let copy = monorepo();
    copy.replace("apps/base/web/kustomization.yaml", "deployment.yaml", "deploymnt.yaml");
    assert_eq!(copy.findings(&[]), ["deny KZ004 apps/base/web/kustomization.yaml 4"]);
    let text = copy.check(&[]);
    assert!(
        text.contains("builder  roots  accepted  rejected  unknown  warnings\nflux         4         2         2"),
        "{text}"
    );
}

#[test]
fn reports_a_path_that_does_not_exist_in_the_kustomization() {
    let copy = monorepo();
    copy.replace("clusters/staging/apps.yaml", "path: ./apps/staging", "path: ./apps/stagin");
    // Then no Kustomization builds apps/staging. It is judged with the rules of Flux, because Flux builds the other
    // roots.
    assert_eq!(copy.findings(&[]), ["deny KZ004 clusters/staging/apps.yaml 8"]);
    assert!(copy.roots(&[]).contains(&"flux accept apps/staging".to_owned()));
}

#[test]
fn reads_patterns_of_ignored_files_in_every_folder() {
    let copy = home_ops();
    let app = "kubernetes/apps/default/web/app";
    copy.replace(
        &format!("{app}/kustomization.yaml"),
        "resources:",
        "configMapGenerator:\n  - name: pictures\n    files: [assets/logo.png]\nresources:",
    );
    copy.write(&format!("{app}/assets/logo.png"), "PNG");
    assert_eq!(copy.findings(&[]), ["deny KZ004 kubernetes/apps/default/web/app/kustomization.yaml 5"]);
    // A folder without manifests may also have a file `.sourceignore`.
    copy.write(&format!("{app}/assets/.sourceignore"), "!logo.png\n");
    assert!(copy.findings(&[]).is_empty());
}

#[test]
fn does_not_report_shared_patches_that_have_an_effect_in_another_root() {
    let copy = home_ops();
    copy.write(
        "kubernetes/components/labels/kustomization.yaml",
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n  - target:\n      kind: HelmRelease\n      \
         name: flux-instance\n    patch: |-\n      - op: add\n        path: /spec/suspend\n        value: true\n",
    );
    assert_eq!(copy.findings(&[]), ["warn KZ025 kubernetes/components/labels/kustomization.yaml 4"]);
    let instance = "kubernetes/apps/flux-system/instance/ks.yaml";
    copy.replace(instance, "spec:", "spec:\n  components: [../../../../components/labels]");
    assert_eq!(copy.findings(&[]), ["audit KZ025 kubernetes/components/labels/kustomization.yaml 4"]);
    assert!(copy.check(&[]).contains(": 0 denied, 0 warnings"), "{}", copy.check(&[]));
}

#[test]
fn substitutes_variables_of_config_maps_in_the_checkout() {
    let copy = monorepo();
    copy.replace("clusters/production/settings.yaml", "domain:", "domian:");
    let findings = copy.findings(&[]);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].starts_with("deny KZ018 "), "{findings:?}");
    // The values of an encrypted Secret or ConfigMap are unknown, but the names of its variables are known.
    copy.replace("clusters/production/settings.yaml", "domian:", "domain:");
    copy.replace("clusters/production/settings.yaml", "\ndata:", "\nsops: {}\ndata:");
    assert_eq!(copy.roots(&[])[0], "flux accept apps/production");
    fs::remove_file(copy.0.path().join("clusters/production/settings.yaml")).unwrap();
    assert_eq!(copy.roots(&[])[3], "flux unknown apps/production");
}

#[test]
fn judges_kustomizations_as_their_root_renders_them() {
    let copy = home_ops();
    let expected = [
        "kubernetes/apps",
        "kubernetes/apps/default/web/app",
        "kubernetes/apps/flux-system/instance/app",
        "kubernetes/flux/cluster",
    ];
    assert_eq!(copy.roots(&[]), expected.map(|root| format!("flux accept {root}")));
    let report = copy.report(&[]);
    let owners: Vec<_> = report["roots"].as_array().unwrap().iter().map(|root| root["owners"][0].to_string()).collect();
    assert!(owners.contains(&"\"Kustomization default/web\"".to_owned()), "{owners:?}");
    // A patch in the parent kustomization sets the variable.
    copy.replace("kubernetes/flux/cluster/ks.yaml", "domain:", "domian:");
    let findings = copy.findings(&[]);
    assert!(findings.len() == 1 && findings[0].starts_with("deny KZ018 "), "{findings:?}");
}

#[test]
fn judges_a_folder_with_kustomizations_as_flux_builds_it() {
    let copy = applied_by_others();
    assert_eq!(copy.roots(&[]), ["flux accept apps/web/one", "flux accept clusters/one"]);
    // If a Kustomization in the folder builds the folder itself, its variables also apply to the other Kustomizations.
    copy.write(
        "apps/flux.yaml",
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux, namespace: flux-system}\n\
         spec: {path: ./clusters/one, sourceRef: {kind: GitRepository, name: fleet}, postBuild: {substitute: {cluster: one}}}\n",
    );
    copy.replace("clusters/one/kustomization.yaml", "resources:", "resources:\n  - ../../apps/flux.yaml");
    copy.replace("apps/web/ks.yaml", "apps/web/one", "apps/web/${cluster}");
    assert_eq!(copy.roots(&[]), ["flux accept apps/web/one", "flux accept clusters/one"]);
}

#[test]
fn treats_unset_variables_as_empty_if_the_installed_flux_does() {
    let copy = monorepo();
    copy.replace("apps/base/web/deployment.yaml", "${domain}", "${domain}/${unset}");
    assert_eq!(copy.findings(&[]).len(), 1);
    let controller = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kustomize-controller}\nspec: {template: {spec: \
                      {containers: [{name: manager, image: \"ghcr.io/fluxcd/kustomize-controller:v1.8.5\"}]}}}\n";
    copy.write("flux.yaml", controller);
    assert_eq!(copy.findings(&[]), [""; 0]);
    copy.write("flux.yaml", &controller.replace("1.8.5", "1.9.0"));
    assert_eq!(copy.findings(&[]).len(), 1);
}

#[test]
fn counts_kustomizations_that_build_from_other_repositories() {
    let copy = team_repositories();
    let text = copy.check(&["--verbose"]);
    assert!(text.contains("Kustomization red/red builds from github.com/example/red\n"), "{text}");
    // With `--source`, the trees of another source are judged too.
    copy.write("red/deploy/kustomization.yaml", "resources: [missing.yaml]\n");
    assert_eq!(copy.findings(&["--source", "red/red=red"]), ["deny KZ004 red/deploy/kustomization.yaml 1"]);
}

#[test]
fn ignores_sources_of_other_branches() {
    let copy = monorepo();
    let source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: old, namespace: flux-system}\n\
                  spec: {interval: 1m, url: https://github.com/example/fleet, ref: {branch: archive}}\n---\n\
                  apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
                  metadata: {name: old, namespace: flux-system}\n\
                  spec: {interval: 1m, prune: true, path: ./gone, sourceRef: {kind: GitRepository, name: old}}\n";
    copy.write("clusters/staging/old.yaml", source);
    assert_eq!(copy.findings(&[]), [""; 0]);
    assert!(copy.check(&[]).ends_with("; 1 Kustomization builds from 1 other repository\n"));
}

#[test]
fn skips_files_that_no_artifact_contains() {
    let copy = monorepo();
    copy.write("clusters/staging/.sops.yaml", "creation_rules: []\n");
    copy.write("clusters/staging/notes.yaml", "no: object\n");
    let findings = copy.findings(&[]);
    assert_eq!(findings[0], "deny KZ013 clusters/staging/notes.yaml 1");
    assert!(findings.iter().skip(1).all(|finding| finding.starts_with("audit KZ040")), "{findings:?}");
    // If a source has its own patterns, the default patterns do not apply.
    copy.write("clusters/staging/.sourceignore", "notes.yaml\n");
    assert_eq!(copy.findings(&[])[0], "deny KZ013 clusters/staging/.sops.yaml 1");
    copy.write("clusters/staging/.sourceignore", "notes.yaml\n.sops.yaml\n");
    assert_eq!(copy.findings(&[]), [""; 0]);
}

#[test]
fn reports_unreadable_remotes_once_and_judges_all_roots() {
    let copy = monorepo();
    fs::remove_dir_all(copy.0.path().join(".git")).unwrap();
    copy.write(".git", "gitdir: ../gone/.git/worktrees/x\n");
    let text = copy.check(&[]);
    assert_eq!(text.matches("note: the remotes of the checkout are unknown").count(), 1, "{text}");
    assert_eq!(copy.roots(&[]).len(), 4);
}

#[test]
fn treats_submodules_that_are_not_checked_out_as_unknown() {
    let copy = monorepo();
    copy.write(".gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = https://example.org/lib\n");
    fs::create_dir(copy.0.path().join("lib")).unwrap();
    copy.replace("apps/base/web/kustomization.yaml", "- deployment.yaml", "- ../../../lib/web");
    assert_eq!(copy.roots(&[])[..2], ["flux accept clusters/production", "flux accept clusters/staging"]);
    assert_eq!(copy.roots(&[])[2..], ["flux unknown apps/production", "flux unknown apps/staging"]);
    let text = copy.check(&[]);
    assert!(text.contains("unknown: 2 × lib is a submodule, which is not checked out\n"), "{text}");
}

#[test]
fn handles_kustomizations_that_contain_each_other() {
    let copy = monorepo();
    let apps = fs::read_to_string(copy.0.path().join("clusters/staging/apps.yaml")).unwrap();
    copy.write("clusters/staging/apps.yaml", &apps.replace("./apps/staging", "./clusters/loop"));
    copy.write(
        "clusters/loop/back.yaml",
        &apps.replace("name: apps", "name: back").replace("./apps/staging", "./clusters/staging"),
    );
    assert_eq!(copy.roots(&[]).iter().filter(|root| root.starts_with("flux accept clusters/")).count(), 4);
}

const KUSTOMIZATION: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: old, namespace: \
                             flux-system}\nspec: {path: ./apps/old, sourceRef: {kind: GitRepository, name: flux-system}}\n";

#[test]
fn does_not_deny_files_that_nothing_builds() {
    let copy = monorepo();
    copy.write("archive/old/ks.yaml", KUSTOMIZATION);
    copy.write("archive/old/app/kustomization.yaml", "resources: [gone.yaml]\n");
    let found =
        ["audit KZ004 archive/old/ks.yaml 4".to_owned(), "audit KZ004 archive/old/app/kustomization.yaml 1".to_owned()];
    assert_eq!(copy.findings(&[]), found);
    let text = copy.check(&[]);
    assert!(text.ends_with(": 0 denied, 0 warnings; 2 findings in unused files (--verbose lists them)\n"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(copy.check(&["--verbose"]).contains("archive/old/app/kustomization.yaml:1"));
    // A root that is applied contains the Kustomization.
    copy.write("clusters/production/old.yaml", KUSTOMIZATION);
    assert_eq!(copy.findings(&[])[0], "deny KZ004 clusters/production/old.yaml 4");
}

#[test]
fn judges_every_root_if_objects_build_only_a_few() {
    let copy = monorepo();
    for name in ["a", "b", "c", "d", "e"] {
        copy.write(&format!("catalog/{name}/kustomization.yaml"), "resources: [gone.yaml]\n");
    }
    assert_eq!(copy.findings(&[]).iter().filter(|finding| finding.starts_with("deny KZ004 catalog/")).count(), 5);
}

/// Returns an empty repository. It has no objects from which `check` could detect the tool that builds the roots.
fn repository_without_builder() -> Checkout {
    let copy = Checkout(tempfile::tempdir().unwrap());
    copy.write(".git/HEAD", "ref: refs/heads/main\n");
    copy
}

#[test]
fn treats_files_that_are_written_before_the_build_as_unknown() {
    let copy = repository_without_builder();
    copy.write("app/kustomization.yaml", "secretGenerator:\n- name: s\n  files: [password=secret.txt]\n");
    copy.write("crd/kustomization.yaml", "resources: [bases/, generated.yaml]\n");
    assert_eq!(copy.roots(&[]), ["kubectl reject app", "kubectl reject crd"]);
    copy.write(".gitignore", "secret.txt\n/crd/bases/\n");
    copy.write("Makefile", "manifests:\n\tgenerate > crd/generated.yaml\n");
    assert_eq!(copy.roots(&[]), ["kubectl unknown app", "kubectl unknown crd"]);
    let report = copy.report(&[]);
    let reasons: Vec<_> =
        report["roots"].as_array().unwrap().iter().flat_map(|root| root["reasons"].as_array()).collect();
    let reasons = format!("{reasons:?}");
    assert!(reasons.contains(".gitignore excludes it from the repository"), "{reasons}");
    assert!(reasons.contains("Makefile:2 writes a file with this name"), "{reasons}");
    let expected = ["kubectl reject app", "kubectl reject crd"];
    assert_eq!(copy.roots(&["--profile", "kubectl"]), expected);
    assert_eq!(copy.roots(&["--root", "app", "--root", "crd"]), expected);
    copy.write("app/kustomization.yaml", "resources: [missing.yaml]\n");
    assert_eq!(copy.roots(&[]), ["kubectl reject app", "kubectl unknown crd"]);
    copy.write("app/kustomization.yaml", "resources:\n- {{ name }}\n");
    assert_eq!(copy.roots(&[]), ["kubectl unknown app", "kubectl unknown crd"], "a template");
    assert_eq!(copy.roots(&["--profile", "kubectl"]), expected);
}

/// A kustomization file with another name may be a template that users copy and edit before they build it. An example
/// is `kustomization.template.yaml` in the repository sourcegraph/deploy-sourcegraph-k8s.
#[test]
fn judges_a_kustomization_file_of_another_name_only_if_it_is_given() {
    let copy = repository_without_builder();
    let template = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n";
    copy.write("docs/kustomization.template.yaml", template);
    assert_eq!(copy.findings(&[]), Vec::<String>::new());
    let given = copy.run(&["check", "docs/kustomization.template.yaml"]);
    assert!(given.contains("error[KZ050]"), "{given}");
}

#[test]
fn builds_with_the_options_that_scripts_use() {
    let copy = repository_without_builder();
    copy.write("app/kustomization.yaml", "resources: [../shared.yaml]\n");
    copy.write("shared.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\n");
    copy.write("chart/kustomization.yaml", "helmCharts: [{name: a, repo: https://example.org/charts}]\n");
    assert_eq!(copy.roots(&[]), ["kubectl reject app", "kubectl reject chart"]);
    copy.write("hack/build.sh", "kustomize build --enable-helm --load-restrictor LoadRestrictionsNone $1\n");
    assert_eq!(copy.roots(&[]), ["kubectl accept app", "kubectl unknown chart"]);
    assert!(copy.check(&["--verbose"]).contains("app is checked with the kustomize options in hack/build.sh:1"));
    assert_eq!(copy.roots(&["--load-restrictor", "root-only"])[0], "kubectl reject app");
    assert_eq!(copy.roots(&["--profile", "kubectl"])[0], "kubectl reject app");
}

#[test]
fn does_not_report_files_that_scripts_mention_as_forgotten() {
    let copy = repository_without_builder();
    copy.write("app/kustomization.yaml", "namePrefix: a-\nresources: [a.yaml]\n");
    for name in ["a", "b"] {
        copy.write(&format!("app/{name}.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n");
    }
    copy.replace("app/b.yaml", "name: b", "name: other");
    assert_eq!(copy.findings(&[]), ["warn KZ026 app/kustomization.yaml 2"]);
    copy.write("Makefile", "deploy:\n\tkubectl apply -f app/b.yaml\n");
    assert_eq!(copy.findings(&[]), [""; 0]);
}

#[test]
fn does_not_report_patches_of_files_that_bootstrap_fills_in() {
    let copy = monorepo();
    copy.write("clusters/staging/flux-system/gotk-components.yaml", "# filled in by flux bootstrap\n");
    let path = "clusters/staging/flux-system/kustomization.yaml";
    copy.write(
        path,
        "resources: [gotk-components.yaml, gotk-sync.yaml]\npatches:\n- target: {kind: Deployment, name: b}\n  \
         patch: |-\n    - {op: remove, path: /spec/replicas}\n",
    );
    assert_eq!(copy.findings(&[]), [format!("audit KZ025 {path} 3")]);
    copy.replace(path, "gotk-components.yaml, ", "");
    assert_eq!(copy.findings(&[])[0], format!("warn KZ025 {path} 3"));
}

#[test]
fn counts_kustomizations_that_build_from_external_artifacts_separately() {
    let copy = team_repositories();
    let file = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: made, namespace: red}\n\
                spec: {path: ., sourceRef: {kind: ExternalArtifact, name: made}}\n";
    copy.write("made.yaml", file);
    let text = copy.check(&["--verbose"]);
    assert!(text.contains(
        "; 2 Kustomizations build from 2 other repositories; 1 Kustomization builds from 1 ExternalArtifact\n"
    ));
    assert!(text.contains("Kustomization red/made builds from ExternalArtifact red/made\n"), "{text}");
    let text = copy.run(&["explain", "repository"]);
    assert!(text.contains("red/made  from ExternalArtifact red/made"), "{text}");
}

#[test]
fn groups_findings_of_the_same_text() {
    let copy = monorepo();
    for name in ["a", "b", "c", "d", "e"] {
        copy.write(&format!("tools/{name}/kustomization.yaml"), "resources: [gone.yaml]\n");
    }
    let text = copy.check(&[]);
    assert_eq!(text.matches("error[KZ004]").count(), 1, "{text}");
    assert!(!text.contains("help"), "help that differs between folders is not shown: {text}");
    for name in ["a", "b", "c", "d", "e"] {
        copy.write(&format!("tools/{name}/kustomization.yaml"), "resources: [x.yaml]\nnameprefix: a-\n");
        copy.write(&format!("tools/{name}/x.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n");
    }
    let text = copy.check(&[]);
    assert!(
        text.contains("also at tools/b/kustomization.yaml:2:1, tools/c/kustomization.yaml:2:1 and 2 more"),
        "{text}"
    );
    assert_eq!(copy.check(&["--verbose"]).matches("tools/").count(), 5);
}

#[test]
fn reports_missing_objects_only_if_the_files_are_complete() {
    let copy = Checkout(tempfile::tempdir().unwrap());
    copy.write(
        "a.yaml",
        "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Installation\nmetadata: {name: a, namespace: n}\n\
                          spec: {context: other}\n",
    );
    assert_eq!(copy.findings(&[]), [""; 0]);
    assert_eq!(copy.findings(&["--complete"]), ["warn OW005 a.yaml 4"]);
    // Landscaper creates the Context `default` in every namespace.
    copy.replace("a.yaml", "other", "default");
    assert_eq!(copy.findings(&["--complete"]), [""; 0]);
}

#[test]
fn explains_what_builds_each_root() {
    let copy = monorepo();
    copy.write("unused/kustomization.yaml", "resources: []\nnamePrefix: x-\n");
    copy.write("apps/forgotten.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n");
    copy.write("ci/values.yaml", "replicas: 2\n");
    let expected = "\
cluster clusters/production/flux-system
└─ flux-system/flux-system  clusters/production
   └─ flux-system/apps      apps/production

cluster clusters/staging/flux-system
└─ flux-system/flux-system  clusters/staging
   └─ flux-system/apps      apps/staging

not part of any build:
  root       unused
  file       apps/forgotten.yaml
";
    assert_eq!(copy.run(&["explain", "repository"]), expected);
    let explained: Value = serde_json::from_str(&copy.run(&["explain", "repository", "-o", "json"])).unwrap();
    assert_eq!(explained["clusters"][1]["kustomizations"][1]["renderedBy"], "flux-system/flux-system");
    for (format, part) in
        [("dot", "n0_0 -> n0_1"), ("mermaid", "n1_0 --> n1_1"), ("svg", ">flux-system/apps: apps/staging<")]
    {
        assert!(copy.run(&["explain", "repository", "-o", format]).contains(part), "{format}");
    }
}

#[test]
fn explains_external_sources_and_dependencies() {
    let copy = team_repositories();
    copy.replace("tenants/blue.yaml", "path: ./deploy", "path: ./deploy\n  dependsOn: [{name: red, namespace: red}]");
    let text = copy.run(&["explain", "repository"]);
    assert!(text.contains("└─ blue/blue          from github.com/example/blue  after red/red\n"), "{text}");
    assert!(text.contains("  github.com/example/red  1 Kustomization\n"), "{text}");
}

/// Checks that Portcullis finds the folders that Applications and ApplicationSets name, and builds them as Argo CD
/// does. Also checks that Portcullis rejects such a folder if a file in its list `resources` does not exist.
#[test]
fn judges_roots_of_argo_cd_as_it_builds_them() {
    let copy = Checkout::of("tests/repositories/argo-cd", "https://github.com/example/apps.git");
    assert_eq!(copy.roots(&[]), ["apps/api", "apps/web", "platform/dns"].map(|root| format!("argocd accept {root}")));
    let expected = "\
Argo CD
  Application argocd/dns      platform/dns
  ApplicationSet argocd/apps  apps/api, apps/web
";
    assert_eq!(copy.run(&["explain", "repository"]), expected);
    copy.replace("platform/dns/kustomization.yaml", "dns.yaml", "gone.yaml");
    let report = copy.report(&[]);
    let rejected = report["roots"].as_array().unwrap().iter().find(|root| root["verdict"] == "reject").unwrap();
    assert_eq!((&rejected["profile"], &rejected["owners"][0]), (&"argocd".into(), &"Application argocd/dns".into()));
}

fn argo_cd() -> Checkout {
    Checkout::of("tests/repositories/argo-cd", "https://github.com/example/apps.git")
}

#[test]
fn applies_the_kustomize_options_of_argo_cd() {
    let copy = argo_cd();
    let with = |options: &str| {
        let copy = argo_cd();
        copy.replace(
            "argocd/dns.yaml",
            "    path: platform/dns",
            &format!("    path: platform/dns\n    kustomize:\n{options}"),
        );
        copy.findings(&[])
    };
    assert_eq!(
        with("      namePrefix: a-\n      images: ['a:1']\n      replicas: [{name: a, count: 2}]\n").len(),
        1,
        "`replicas` names an object that does not exist"
    );
    assert_eq!(with("      components: [../gone]\n"), ["deny KZ004 argocd/dns.yaml 13"]);
    assert_eq!(with("      components: [../gone]\n      ignoreMissingComponents: true\n"), [""; 0]);
    assert_eq!(with("      images: [nothing]\n"), ["deny KZ031 argocd/dns.yaml 13"]);
    let patches = "      patches:\n        - target: {kind: ConfigMap}\n          patch: '[{\"op\": \"remove\", \"path\": \"/x\"}]'\n";
    assert_eq!(with(patches), ["deny KZ014 argocd/dns.yaml 14"]);
    // A file in the folder that overrides the options of the Application.
    copy.write("platform/dns/.argocd-source-dns.yaml", "kustomize: {components: [../gone]}\n");
    assert_eq!(copy.findings(&[])[0].split(' ').take(3).collect::<Vec<_>>(), ["deny", "KZ004", "argocd/dns.yaml"]);
}

#[test]
fn judges_applications_as_components_of_argo_cd_render_them() {
    for entry in ["../part", "../p*t"] {
        let copy = argo_cd();
        copy.replace(
            "argocd/dns.yaml",
            "    path: platform/dns",
            &format!("    path: platform/dns\n    kustomize: {{components: [\"{entry}\"]}}"),
        );
        copy.write(
            "platform/part/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [child.yaml]\npatches:\n- target: \
             {kind: Application}\n  patch: '[{\"op\": \"replace\", \"path\": \"/spec/source/path\", \"value\": \"platform/other\"}]'\n",
        );
        copy.write(
            "platform/part/child.yaml",
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: child, namespace: argocd}\nspec:\n  source:\n    \
             repoURL: https://github.com/example/apps\n    path: platform/raw\n  destination: {namespace: a}\n",
        );
        copy.write("platform/other/kustomization.yaml", "resources: [gone.yaml]\n");
        let roots = copy.roots(&[]);
        assert!(roots.contains(&"argocd reject platform/other".to_owned()), "{entry}: {roots:?}");
    }
}

#[test]
fn judges_applications_as_their_root_renders_them() {
    let copy = argo_cd();
    copy.write(
        "argocd/kustomization.yaml",
        "resources: [apps.yaml, dns.yaml]\npatches:\n- target: {kind: Application}\n  patch: |-\n    - {op: replace, path: \
         /spec/source/path, value: platform/other}\n",
    );
    copy.write("platform/other/kustomization.yaml", "resources: [gone.yaml]\n");
    let roots = copy.roots(&[]);
    assert!(roots.contains(&"argocd reject platform/other".to_owned()), "{roots:?}");
    assert!(roots.contains(&"kubectl accept platform/dns".to_owned()), "{roots:?}");
    // An Application that renders other Applications.
    copy.write(
        "root.yaml",
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root, namespace: argocd}\nspec:\n  sources:\n  - \
         repoURL: https://github.com/example/apps\n    path: argocd\n    kustomize: {patches: [{target: {kind: Application}, patch: \
         '[{\"op\": \"replace\", \"path\": \"/spec/source/path\", \"value\": \"platform/dns\"}]'}]}\n",
    );
    let roots = copy.roots(&[]);
    assert!(roots.contains(&"argocd accept platform/dns".to_owned()), "{roots:?}");
    assert!(roots.contains(&"argocd accept argocd".to_owned()), "{roots:?}");
    assert!(roots.contains(&"kubectl reject platform/other".to_owned()), "{roots:?}");
}

#[test]
fn judges_folders_of_application_sets_with_lists() {
    let copy = argo_cd();
    copy.replace("argocd/apps.yaml", "    - git:", "    - list:\n        elements: [{name: shop}]\n    - git:");
    copy.replace("argocd/apps.yaml", "path: \"{{.path.path}}\"", "path: \"{{.path.path}}{{.name}}\"");
    assert!(!copy.roots(&[]).contains(&"argocd accept shop".to_owned()));
    copy.replace("argocd/apps.yaml", "path: \"{{.path.path}}{{.name}}\"", "path: apps/{{.name}}");
    copy.write("apps/shop/kustomization.yaml", "resources: [gone.yaml]\n");
    assert!(copy.roots(&[]).contains(&"argocd reject apps/shop".to_owned()));
}

#[test]
fn judges_roots_of_fleet_and_sveltos() {
    let copy = Checkout::of("tests/repositories/fleet-and-sveltos", "https://github.com/example/clusters");
    assert_eq!(
        copy.roots(&[]),
        ["fleet accept web/base", "fleet accept web/overlays/production", "sveltos accept addons/dns"]
    );
    let expected = "\
Fleet and Sveltos
  Bundle web             web/overlays/production, web/base
  ClusterProfile addons  addons/dns
";
    assert_eq!(copy.run(&["explain", "repository"]), expected);
    copy.replace("web/base/kustomization.yaml", "config.yaml", "gone.yaml");
    assert_eq!(copy.findings(&[]), ["deny KZ004 web/base/kustomization.yaml 2"]);
}

#[test]
fn init_writes_detected_settings_once() {
    let copy = team_repositories();
    let paths = ["portcullis.yaml", ".pre-commit-config.yaml", ".github/workflows/portcullis.yaml"];
    let shown = copy.run(&["init", "--dry-run"]);
    assert!(
        paths.iter().all(|path| shown.contains(&format!("writes {path}:\n")) && !copy.0.path().join(path).exists())
    );
    let expected: String = paths.iter().map(|path| format!("writes {path}\n")).collect();
    assert_eq!(copy.run(&["init"]), expected);
    let read = |path: &str| fs::read_to_string(copy.0.path().join(path)).unwrap();
    assert!(read(paths[0]).contains("  sources:\n    flux-system/flux-system: .\n"), "{}", read(paths[0]));
    assert!(read(paths[2]).contains("- uses: "), "{}", read(paths[2]));
    let again: String = paths.iter().map(|path| format!("{path} exists and needs no change\n")).collect();
    assert_eq!(copy.run(&["init"]), again);
    assert!(
        copy.check(&[]).contains("0 denied, 0 warnings"),
        "the configuration is valid and is not judged as a manifest"
    );
}

#[test]
fn init_supports_gitlab_and_keeps_existing_files() {
    let copy = Checkout::of("examples/gitops", "https://gitlab.example.org/team/fleet.git");
    copy.write(".pre-commit-config.yaml", "repos:\n- repo: https://example.org/a\n  rev: v1\n  hooks: [{id: a}]\n");
    copy.write(".gitlab-ci.yml", "test: {script: [make test]}\n");
    let text = copy.run(&["init"]);
    assert!(text.contains("appends a hook to .pre-commit-config.yaml\n"), "{text}");
    assert!(text.contains(".gitlab-ci.yml exists and is not changed; add this:\n\n    portcullis:\n"), "{text}");
    let hooks = fs::read_to_string(copy.0.path().join(".pre-commit-config.yaml")).unwrap();
    assert!(
        hooks.contains("  hooks: [{id: a}]\n- repo: https://") && hooks.contains("\n    - id: portcullis\n"),
        "{hooks}"
    );
}

/// If the configuration declares a folder complete, objects that are missing in the folder are treated as nonexistent.
#[test]
fn the_configuration_says_which_folders_are_complete() {
    let copy = team_repositories();
    copy.replace("clusters/main/tenants.yaml", "sourceRef:", "dependsOn: [{name: gone}]\n  sourceRef:");
    assert!(copy.findings(&[]).is_empty(), "{:?}", copy.findings(&[]));
    copy.write("portcullis.yaml", "check: {complete: [clusters]}\n");
    assert!(copy.findings(&[]).is_empty(), "the whole repository is not complete");
    copy.write("portcullis.yaml", "check: {complete: [.]}\n");
    assert!(copy.findings(&[]).iter().any(|finding| finding.starts_with("warn KZ043")), "{:?}", copy.findings(&[]));
    copy.write("portcullis.yaml", "check: {sources: {fleet: .}}\n");
    let run = Command::new(env!("CARGO_BIN_EXE_portcullis")).args(["check", "."]).current_dir(copy.0.path()).output();
    let stderr = String::from_utf8(run.unwrap().stderr).unwrap();
    assert!(stderr.contains("portcullis.yaml:1:8: \"fleet\" is not NAMESPACE/NAME"), "{stderr}");
}
