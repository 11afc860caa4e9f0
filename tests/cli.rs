//! Tests of the commands, run as a user runs them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use cases::repository;
use serde_json::{Value, json};

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}:\n{}", self.stdout))
    }
}

fn portcullis(args: &[&str]) -> Run {
    with_input(args, "")
}

fn with_input(args: &[&str], input: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(args)
        .current_dir(repository())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary is there");
    // An error means that the command has ended without reading its input.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    Run { code: output.status.code().expect("it exits"), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const BAD: &str = "# one
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata: {name: default}
---
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
overwrites:
  - source:
      componentName: a
    substitution:
      repositoryContext: example.org/x
";
const WARNED: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata: {name: my-overwrites}
overwrites: [{source: {componentName: a}, substitution: {}}]
";

#[test]
fn check_underlines_errors() {
    let run = with_input(&["check", "-"], BAD);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let expected = "\
error[OW001]: expected an object, found a string: Landscaper cannot decode this, and fails every Installation that uses it
  --> -:14:26
   |
14 |       repositoryContext: example.org/x
   |                          ^^^^^^^^^^^^^
   |
   = help: write an object, such as {type: ociRegistry, baseUrl: …}

checked 2 objects in 1 file: 1 denied, 0 warnings
";
    assert_eq!(run.stdout, expected);
}

#[test]
fn check_returns_documented_exit_codes() {
    assert_eq!(portcullis(&["check", "examples/landscaper"]).code, 0);
    assert_eq!(with_input(&["check", "-"], WARNED).code, 0);
    assert_eq!(with_input(&["check", "--strict", "-"], WARNED).code, 1);
    assert_eq!(with_input(&["check", "-"], "a: [").code, 2);
    assert_eq!(portcullis(&["check", "no-such-file.yaml"]).code, 2);
    assert_eq!(portcullis(&["check"]).code, 2);
    let empty = portcullis(&["check", "src"]);
    assert_eq!(empty.code, 2);
    assert!(empty.stderr.contains("src: no .yaml, .yml or .json file found"), "{}", empty.stderr);
    // Documents that can be parsed are judged even if another document cannot.
    let run = with_input(&["check", "-"], &format!("{BAD}---\na: [\n"));
    assert_eq!(run.code, 2);
    assert!(run.stdout.contains("OW001") && run.stdout.contains("1 unreadable"), "{}", run.stdout);
}

#[test]
fn check_writes_json() {
    let run = with_input(&["check", "--output", "json", "-"], BAD);
    let finding = &run.json()["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["level"], &finding["file"], &finding["line"], &finding["column"]),
        (&json!("OW001"), &json!("deny"), &json!("-"), &json!(14), &json!(26))
    );
    assert_eq!(finding["path"], "overwrites[0].substitution.repositoryContext");
    assert_eq!((&finding["found"], &finding["allowed"]), (&json!("\"example.org/x\""), &json!("an object")));
}

#[test]
fn check_writes_sarif() {
    let run = with_input(&["check", "--output", "sarif", "-"], BAD);
    let sarif = run.json();
    assert_eq!(sarif["version"], "2.1.0");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("OW001"), &json!("error")));
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 14);
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().expect("the rules are described");
    assert!(rules.iter().any(|rule| rule["id"] == "OW001"));
}

#[test]
fn check_annotates_on_github() {
    let run = with_input(&["check", "--output", "github", "-"], BAD);
    let expected = "::error file=-,line=14,col=26,title=OW001::OW001 overwrites[0].substitution.repositoryContext: ";
    assert!(run.stdout.starts_with(expected) && run.stdout.contains("%0Ahelp: write an object"), "{}", run.stdout);
}

#[test]
fn check_reads_json_and_lists_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Context", "metadata": {"name": "a"},
         "repositoryContext": 7}]});
    std::fs::create_dir(folder.path().join("below")).unwrap();
    let file = write(folder.path(), "below/list.json", &format!("{list:#}"));
    write(folder.path(), "values.yaml", "replicas: 3\n");
    write(folder.path(), "notes.txt", "not read: [\n");
    write(folder.path(), ".gitignore", "ignored.yaml\n");
    write(folder.path(), "ignored.yaml", "not read: [\n");
    let run = portcullis(&["check", "-o", "json", &folder.path().display().to_string()]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    let found = run.json();
    assert_eq!((&found["findings"][0]["file"], &found["objects"]), (&json!(file), &json!(1)));
    assert_eq!(found["findings"][0]["path"], "repositoryContext");
}

/// If the option `--manifests` names the existing objects of the cluster, `check` treats the checked files as changes
/// of these objects.
#[test]
fn check_uses_existing_objects() {
    let folder = tempfile::tempdir().unwrap();
    let change = std::fs::read_to_string(repository().join("examples/landscaper/overwrites.yaml")).unwrap();
    let change = write(folder.path(), "change.yaml", &change.replace("my-own-echo-server", "another"));
    let run = portcullis(&["check", "--manifests", "examples/landscaper", &change]);
    assert!(run.stdout.contains("OW007") && run.stdout.contains("another component: server"), "{}", run.stdout);
}

#[test]
fn check_applies_the_configuration_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = write(folder.path(), "portcullis.yaml", "rules: {OW: audit}\n");
    assert_eq!(with_input(&["check", "--config", &config, "-"], BAD).code, 0);
    let wrong = write(folder.path(), "wrong.yaml", "rules:\n  OW1: audit\n");
    let run = with_input(&["check", "--config", &wrong, "-"], BAD);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("wrong.yaml:2:") && run.stderr.contains("did you mean \"OW\"?"), "{}", run.stderr);
}

fn review(file: &str) -> String {
    std::fs::read_to_string(repository().join("examples/reviews").join(file)).unwrap()
}

#[test]
fn review_prints_the_answer() {
    let refused = with_input(&["review"], &review("refused.json"));
    assert_eq!((refused.code, &refused.json()["response"]["allowed"]), (0, &json!(false)));
    let args = ["review", "--manifests", "examples/landscaper"];
    let patched = with_input(&args, &review("patched.json")).json();
    assert_eq!(patched["response"]["patchType"], "JSONPatch");
    assert_eq!(patched["response"]["warnings"].as_array().map(Vec::len), Some(2));
    let validated = with_input(&[&args[..], &["--webhook", "validate"]].concat(), &review("patched.json")).json();
    assert!(validated["response"].get("patch").is_none());
    let empty = with_input(&["review"], &review("patched.json")).json();
    assert!(empty["response"].get("patch").is_none());
    let nothing = with_input(&["review"], "{}");
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("request.uid"), "{}", nothing.stderr);
}

#[test]
fn explain_shows_how_overwrites_apply() {
    let args = ["explain", "overwrites", "--manifests", "examples/landscaper"];
    let text = portcullis(&args).stdout;
    for line in [
        "Installation my-namespace/server",
        "overwrites[0]  applied: sets repositoryContext to example.org/my-own-registry/components, componentName to",
        "overwrites[1]  rejected: componentName was already set by overwrites[0]",
        "    github.com/gardener/landscaper/echo-server -> my-own-echo-server",
        "    Version has not been overwritten",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let reported = portcullis(&[&args[..], &["--output", "json"]].concat()).json();
    assert_eq!(reported[0]["entries"][1]["outcome"], "rejected");
    assert_eq!(reported[0]["result"]["componentName"], "my-own-echo-server");
    assert_eq!(reported[0]["condition"]["reason"], "FoundOverwrite");
    let missing = portcullis(&[&args[..], &["no-such-installation"]].concat());
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("no-such-installation"), "{}", missing.stderr);
}

#[test]
fn explain_shows_the_computation_of_an_environment() {
    let args = ["explain", "environment", "--manifests", "examples/environment"];
    let text = portcullis(&args).stdout;
    for line in [
        "XBucket archive",
        "environmentConfigs[1] Selector stage=prod (Single)",
        "      + prod",
        "      - dev: its label stage is \"dev\"",
        "      tier = \"large\"    from EnvironmentConfig prod",
        "          replaces \"small\" of EnvironmentConfig defaults",
        "      transforms[0] string = \"ann\"",
        "        combined = \"ann-large\"",
        "        {\"op\":\"add\",\"path\":\"/spec/region\",\"value\":\"eu-1\"}",
        "  spec.environmentConfigRefs: defaults, prod",
        "XQueue orders",
        "the format does not fit the values",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let reported = portcullis(&[&args[..], &["orders", "--output", "json"]].concat()).json();
    assert_eq!(reported[0]["environment"]["tier"], "large");
    assert_eq!(reported[0]["steps"][1]["resources"][0]["patches"][0]["mistakes"][0], "%!d(float64=3) replicas");
    assert_eq!(reported[0]["patch"][0]["path"], "/spec/region");
    let drawing = portcullis(&[&args[..], &["archive", "--output", "svg"]].concat()).stdout;
    assert!(drawing.starts_with("<svg ") && drawing.contains("EnvironmentConfig prod"), "{drawing}");
    assert!(drawing.contains("line-through"), "replaced values are struck through: {drawing}");
    let several = portcullis(&[&args[..], &["--output", "svg"]].concat());
    assert_eq!((several.code, several.stdout.as_str()), (2, ""), "--output svg needs exactly one composite");
    let missing = portcullis(&[&args[..], &["no-such-composite"]].concat());
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("no-such-composite"), "{}", missing.stderr);
}

#[test]
fn explain_accepts_an_example_composite_and_shows_its_failure() {
    let folder = tempfile::tempdir().unwrap();
    let example = folder.path().join("example.yaml");
    let composite = "{apiVersion: example.org/v1, kind: XBucket, metadata: {name: new}, spec: {stage: nowhere}}";
    std::fs::write(&example, composite).unwrap();
    let args =
        ["explain", "environment", "--manifests", "examples/environment", "--composition", "buckets", "--example"];
    let reported = portcullis(&[&args[..], &[example.to_str().unwrap()]].concat());
    assert_eq!(reported.code, 1, "{}", reported.stdout);
    assert!(
        reported.stdout.contains("only 1 EnvironmentConfig can be selected in Single mode, found: 0"),
        "{}",
        reported.stdout
    );
    assert!(reported.stdout.contains("- prod: its label stage is \"prod\""), "{}", reported.stdout);
}

#[test]
fn explain_shows_every_export_of_a_dry_run_or_its_problem() {
    let page = std::fs::read_to_string(repository().join("examples/dry-run/README.md")).unwrap();
    let reported = portcullis(&["explain", "dry-run", "--manifests", "examples/dry-run"]);
    assert_eq!(reported.code, 0, "{}", reported.stderr);
    assert!(
        page.contains(&reported.stdout),
        "examples/dry-run/README.md shows something else than\n{}",
        reported.stdout
    );
    let without = ["examples/dry-run/installation.yaml", "--manifests", "examples/dry-run/execution.yaml"];
    let args = [&["explain", "dry-run", "--manifests"][..], &without].concat();
    let reported = portcullis(&args).stdout;
    assert!(reported.contains("test-dry-run, which does not exist"), "{reported}");
    assert!(
        reported.contains("    - apiVersion: \"v1\"\n      data:\n        token: \"to be filled in\"\n"),
        "{reported}"
    );
    let reported = portcullis(&[&args[..], &["--output", "json"]].concat()).json();
    assert_eq!(reported[0]["missingFragments"][0]["metadata"]["name"], "test-secret");
    assert!(reported[0]["objects"][0]["exports"][0]["problem"].as_str().unwrap().contains("no fragment"));
}

#[test]
fn prints_the_deployer_contract_in_four_formats() {
    let reported = |output: &str| portcullis(&["explain", "deployer", "--output", output]).stdout;
    assert!(reported("text").contains("\ntriggered: Landscaper has requested a job"));
    assert!(reported("markdown").contains("| new | triggered | Landscaper | trigger |"));
    assert!(reported("mermaid").starts_with("flowchart LR\n"));
    let drawing = reported("svg");
    assert!(drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n") && drawing.contains("prevented by DP001"));
}

#[test]
fn validates_the_arguments_of_a_conformance_test() {
    let missing = portcullis(&["conformance", "deployer", "--type", "t", "--config", "nowhere.yaml"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("nowhere.yaml"), "{}", missing.stderr);
    assert_eq!(portcullis(&["conformance", "deployer", "--type", "t", "--quiet", "0s"]).code, 2);
    assert_eq!(portcullis(&["conformance", "deployer", "--type", "t", "--annotation", "a"]).code, 2);
    assert_eq!(portcullis(&["conformance", "deployer"]).code, 2);
}

#[test]
fn lists_rules_in_three_formats() {
    assert!(portcullis(&["rules"]).stdout.contains("\nOW001  undecodable"));
    let listed = portcullis(&["rules", "--output", "json"]).json();
    assert_eq!(listed["rules"][0]["id"], "DP001");
    assert!(portcullis(&["rules", "--output", "markdown"]).stdout.contains("| [OW001](OW001.md) |"));
    assert!(portcullis(&["rules", "ow006"]).stdout.starts_with("# OW006"));
    assert_eq!(portcullis(&["rules", "OW999"]).code, 2);
}

#[test]
fn manifests_are_written_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    assert_eq!(portcullis(&["manifests", "--check", "--out", &out]).code, 1);
    assert_eq!(portcullis(&["manifests", "--out", &out]).code, 0);
    assert_eq!(portcullis(&["manifests", "--check", "--out", &out]).code, 0);
    assert_eq!(portcullis(&["manifests", "--out", &out, "--url", "http://x"]).code, 2);
}

#[test]
fn the_configuration_in_the_manifests_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let arguments = ["manifests", "--image", "registry.example/portcullis:1", "--out", &out];
    assert_eq!(portcullis(&arguments).code, 0);
    let [configuration, server] =
        ["3-server/configuration.yaml", "3-server/server.yaml"].map(|file| folder.path().join(file));
    let changed = std::fs::read_to_string(&configuration).unwrap().replace("{}", "dryRun: {}");
    std::fs::write(&configuration, &changed).unwrap();
    assert_eq!(portcullis(&[&arguments[..], &["--check"]].concat()).code, 0);
    std::fs::write(&server, "").unwrap();
    let again = portcullis(&arguments);
    assert!(again.code == 0 && again.stderr.contains("configuration.yaml: kept, because"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(&configuration).unwrap(), changed);
    assert_ne!(std::fs::read_to_string(&server).unwrap(), "");
    std::fs::write(&server, "").unwrap();
    let moved = portcullis(&[&arguments[..], &["--namespace", "other"]].concat());
    let problem = "not the ConfigMap portcullis in the namespace other";
    assert!(moved.code == 2 && moved.stderr.contains(problem), "{}", moved.stderr);
    assert_eq!(std::fs::read_to_string(&server).unwrap(), "", "nothing is written");
    std::fs::remove_file(&configuration).unwrap();
    assert_eq!(portcullis(&[&arguments[..], &["--check"]].concat()).code, 1);
    assert_eq!(portcullis(&arguments).stderr, "");
    assert!(configuration.exists());
}

#[test]
fn manifests_are_written_for_the_families_that_are_on() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    assert_eq!(portcullis(&["manifests", "--out", &out, "--families", "KZ"]).code, 0);
    let text = std::fs::read_to_string(folder.path().join("validating.yaml")).unwrap();
    assert!(text.contains("kustomize.toolkit.fluxcd.io") && !text.contains("landscaper"), "{text}");
    let text = std::fs::read_to_string(folder.path().join("mutating.yaml")).unwrap();
    assert!(text.contains("source.toolkit.fluxcd.io") && !text.contains("landscaper"), "{text}");
    let mut manager: Vec<_> =
        std::fs::read_dir(folder.path().join("companion")).unwrap().map(|file| file.unwrap().file_name()).collect();
    manager.sort();
    assert_eq!(manager, ["audit.yaml", "flux-trees.yaml", "rbac.yaml"], "the audit does not depend on the families");
    let other = tempfile::tempdir().unwrap();
    let without_mutators = other.path().display().to_string();
    assert_eq!(portcullis(&["manifests", "--out", &without_mutators, "--families", "LS"]).code, 0);
    assert!(!other.path().join("mutating.yaml").exists());
    let wrong = portcullis(&["manifests", "--out", &out, "--families", "KZ,XY"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("[possible values: DP, DR, EN, GD, KZ, LS, OW]"), "{}", wrong.stderr);
}

#[test]
fn reconcile_reports_controllers_of_disabled_families() {
    let run = |args: &[&str]| {
        let cluster = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(cluster.path(), KUBECONFIG).unwrap();
        let kubeconfig = cluster.path().display().to_string();
        portcullis(&[&["reconcile", "--admin-listen", "127.0.0.1:0", "--kubeconfig", &kubeconfig][..], args].concat())
    };
    let off = run(&["--families", "DR,KZ", "--overwrite-trees"]);
    assert_eq!(off.code, 2);
    assert!(
        off.stderr.contains("--overwrite-trees belongs to the family OW, which is not in --families DR,KZ; add OW"),
        "{}",
        off.stderr
    );
    let nothing = run(&["--families", "LS"]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("enables no controller"), "{}", nothing.stderr);
}

/// The chart passes the configuration file to `reconcile` even without `--audit`, if the configuration has
/// `artifactHosts`.
#[test]
fn reconcile_reads_its_configuration_without_the_audit() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (kubeconfig, config) = (write("kubeconfig", KUBECONFIG), write("config.yaml", "artifactHosts: [http://a/b]\n"));
    let listen = ["--admin-listen", "127.0.0.1:0"];
    let run = portcullis(&[&["reconcile", "--kubeconfig", &kubeconfig, "--config", &config][..], &listen].concat());
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("config.yaml:1") && run.stderr.contains("http://a/b"), "{}", run.stderr);
}

/// A kubeconfig whose cluster is never contacted.
const KUBECONFIG: &str = "apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
";

#[test]
fn certs_reuses_an_existing_ca() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    assert_eq!(portcullis(&["certs", "--out", &out, "--host", "example.org"]).code, 0);
    let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (ca, leaf) = (read("ca.crt"), read("tls.crt"));
    assert_eq!(portcullis(&["certs", "--out", &out, "--host", "example.org"]).code, 0);
    assert_eq!(read("ca.crt"), ca);
    assert_ne!(read("tls.crt"), leaf);
}

#[test]
fn completions_are_written() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(portcullis(&["completions", shell]).stdout.contains("portcullis"), "{shell}");
    }
}

#[test]
fn check_and_audit_judge_trees_in_config_maps() {
    let (wrong, right) = ("examples/getting-started/wrong.yaml", "examples/getting-started/right.yaml");
    let run = portcullis(&["check", wrong]);
    assert!(run.code == 1 && run.stdout.contains("error[KZ001]"), "{} {}", run.stdout, run.stderr);
    // The level is `warn`, because an update of the stored object gets a warning if it does not change the tree.
    let run = portcullis(&["audit", "--manifests", wrong]);
    assert!(run.code == 0 && run.stdout.contains("warned     KZ001"), "{} {}", run.stdout, run.stderr);
    for command in [["check"].as_slice(), &["audit", "--strict", "--manifests"]] {
        let run = portcullis(&[command, &[right]].concat());
        assert_eq!(run.code, 0, "{command:?}: {} {}", run.stdout, run.stderr);
    }
}

#[test]
fn check_judges_the_fields_of_objects_that_point_at_trees() {
    let flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: a}\n\
                spec: {components: [\"https://example.org/c\"], prune: true, interval: 1m, path: ./apps, \
                sourceRef: {kind: GitRepository, name: apps}}\n";
    let run = with_input(&["check", "-"], flux);
    assert!(run.code == 1 && run.stdout.contains("KZ011"), "{} {}", run.stdout, run.stderr);
}

#[test]
fn check_config_reports_every_unknown_name_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = write(folder.path(), "portcullis.yaml", "ruls: {}\nrules:\n  OW999: warn\n  KZ: lod\n");
    let run = portcullis(&["check-config", &wrong]);
    let expected = format!(
        "{wrong}:1:1: unknown key \"ruls\"; did you mean \"rules\"?\n\
         {wrong}:3:10: unknown rule or family \"OW999\"; OW has rules from OW001 to OW011; `portcullis rules` lists them\n\
         {wrong}:4:7: unknown value \"lod\"; use one of: off, audit, warn, deny\n"
    );
    assert_eq!((run.code, run.stdout.as_str(), run.stderr), (1, "", expected));
    let right = with_input(&["check-config", "-"], "rules: {OW: warn}\n");
    assert_eq!((right.code, right.stdout.as_str()), (0, "<stdin>: valid\n"), "{}", right.stderr);
    assert_eq!(portcullis(&["check-config", "no-such-file.yaml"]).code, 2);
}

#[test]
fn check_config_reports_arguments_that_a_server_does_not_have() {
    let check = |command: &[&str]| with_input(&[&["check-config", "-", "--"][..], command].concat(), "");
    let right = check(&["serve", "--families=KZ,OW", "--shadow"]);
    assert_eq!(right.code, 0, "{}", right.stderr);
    for wrong in [&["serve", "--max-inflight=5"][..], &["serve", "--families=XX"], &["serv"]] {
        let run = check(wrong);
        assert_eq!(run.code, 1, "{wrong:?}: {}", run.stderr);
        assert!(run.stderr.starts_with(&format!("arguments of {}: error: ", wrong[0])), "{}", run.stderr);
    }
}

/// A hook of the chart runs `portcullis verify` after an installation or upgrade. `verify` must report an invalid
/// configuration even if it cannot reach the cluster.
#[test]
fn verify_checks_the_configuration_before_it_asks_the_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = write(folder.path(), "portcullis.yaml", "rules: {OW999: warn}\n");
    let run = portcullis(&["verify", "--kubeconfig", "/nowhere", "--config", &wrong]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("unknown rule or family \"OW999\""), "{}", run.stderr);
}

#[test]
fn version_reports_build_information() {
    let reported = portcullis(&["version", "--output", "json"]).json();
    assert_eq!(reported["version"], env!("CARGO_PKG_VERSION"));
    assert!(reported["target"].as_str().unwrap().starts_with(std::env::consts::ARCH), "{reported}");
    assert_eq!(reported["features"] == json!(["otlp"]), cfg!(feature = "otlp"), "{reported}");
    assert!(
        reported.as_object().unwrap().contains_key("commit"),
        "`commit` is missing (a development build has null): {reported}"
    );
    assert_eq!(portcullis(&["version"]).stdout.trim(), reported["kustomize"]);
}
