//! Tests of `portcullis conformance deployer`. A correct deployer must pass. A deployer that violates a requirement
//! must fail.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::Case;
use crate::cleanup::Process;
use crate::context::Context;
use crate::controller_manager::Options;
use crate::user::User;

/// The tests of this file. Most of them test deployers in namespaces whose names begin with `kit-`. In these
/// namespaces, the configuration of the server (`config.yaml`) does not deny writes that violate the deployer contract.
pub const CASES: &[Case] = &[
    ("conformance::a_correct_deployer_passes", a_correct_deployer_passes),
    ("conformance::reports_finishing_in_the_wrong_order", |ctx| reports_violation(ctx, "order", "DP001")),
    ("conformance::reports_finishing_another_job", |ctx| reports_violation(ctx, "job", "DP002")),
    ("conformance::reports_changing_a_result", |ctx| reports_violation(ctx, "result", "DP003")),
    ("conformance::reports_starting_without_a_time", |ctx| reports_violation(ctx, "pickup", "DP004")),
    ("conformance::reports_working_on_other_types", |ctx| reports_violation(ctx, "type", "DP010")),
    ("conformance::a_deployer_that_does_nothing_fails", a_deployer_that_does_nothing_fails),
    ("conformance::reports_what_cannot_be_tested", reports_what_cannot_be_tested),
    ("conformance::the_dry_run_deployer_passes", the_dry_run_deployer_passes),
    ("conformance::denies_writes_of_a_broken_deployer", denies_writes_of_a_broken_deployer),
];

const TYPE: &str = "example.org/config-map";
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/deployer");

/// Builds the example deployer once, and returns the path of its binary. The binary is in the folder `examples` beside
/// the portcullis binary.
fn build_deployer() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let build = ["build", "--locked", "--quiet", "--example", "deployer"];
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let output = Command::new(env!("CARGO")).args(build).args(["--manifest-path", manifest]).output();
        let output = output.expect("cargo can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let binary = Path::new(env!("CARGO_BIN_EXE_portcullis"));
        binary.parent().expect("the path has a parent folder").join("examples/deployer")
    })
}

/// Starts the example deployer in a namespace. `violation` is the requirement that the deployer violates, if any. The
/// process is killed when the returned value is dropped.
fn start_deployer(ctx: &Context, ns: &str, violation: Option<&str>) -> io::Result<Process> {
    let mut command = Command::new(build_deployer());
    command.args(["--namespace", ns, "--zone", "ours", "--kubeconfig"]).arg(ctx.cluster.kubeconfig(User::Admin));
    command.args(violation.map(|violation| format!("--break={violation}")));
    Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
}

fn run_conformance(ctx: &Context, ns: &str, more: &[&str]) -> Output {
    let config = format!("{EXAMPLES}/config.yaml");
    run_conformance_with(ctx, ns, &[&["--type", TYPE, "--config", &config], more].concat())
}

fn run_conformance_with(ctx: &Context, ns: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["conformance", "deployer", "--namespace", ns, "--kubeconfig"]);
    command.arg(ctx.cluster.kubeconfig(User::Admin)).args(more).output().expect("portcullis runs")
}

fn parse_report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Returns the names of the requirements in `report` whose verdict is `verdict`.
fn requirements_with_verdict(report: &Value, verdict: &str) -> Vec<String> {
    let requirements = report["requirements"].as_array().expect("the requirements are a list").iter();
    let requirements = requirements.filter(|requirement| requirement["verdict"] == verdict);
    requirements
        .map(|requirement| requirement["name"].as_str().expect("the requirement has a name").to_owned())
        .collect()
}

fn create_targets(ctx: &Context, ns: &str) {
    for zone in ["ours", "theirs"] {
        let target = format!(
            "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Target\nmetadata: {{name: {zone}, labels: {{zone: \
             {zone}}}}}\nspec: {{type: landscaper.gardener.cloud/kubernetes-cluster}}\n"
        );
        ctx.cluster.kubectl().args(["apply", "--namespace", ns, "-f", "-"]).stdin(target).run().expect_success();
    }
}

fn a_correct_deployer_passes(ctx: &Context) {
    let ns = ctx.cluster.namespace("kit");
    create_targets(ctx, &ns);
    let _deployer = start_deployer(ctx, &ns, None).expect("the deployer starts");
    let failing = format!("{EXAMPLES}/failing.yaml");
    let all = ["--failing-config", &failing, "--target", "ours", "--foreign-target", "theirs", "--quiet", "1s"];
    let output = run_conformance(ctx, &ns, &[&all[..], &["--output", "json"]].concat());
    let report = parse_report(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(
        requirements_with_verdict(&report, "met").len(),
        report["requirements"].as_array().map_or(0, Vec::len),
        "{report:#}"
    );
    assert!(
        report["scenarios"]
            .as_array()
            .expect("the scenarios are a list")
            .iter()
            .all(|scenario| scenario["ran"] == true)
    );
    let remaining = ctx.cluster.kubectl().args(["get", "deployitems", "--namespace", &ns, "-o", "name"]).run();
    assert_eq!(remaining.stdout, "", "the conformance test must delete its DeployItems");
    let kept = ctx.cluster.kubectl().args(["get", "configmaps", "--namespace", &ns, "-o", "name"]).run().stdout;
    assert_eq!(
        kept.lines().filter(|name| name.contains("conformance-")).count(),
        1,
        "only one DeployItem is deleted without uninstalling it: {kept}"
    );
}

fn reports_violation(ctx: &Context, violation: &str, rule: &str) {
    let ns = ctx.cluster.namespace("kit");
    let _deployer = start_deployer(ctx, &ns, Some(violation)).expect("the deployer starts");
    let output = run_conformance(ctx, &ns, &["--timeout", "3s", "--quiet", "1s", "--output", "json"]);
    let report = parse_report(&output);
    assert_eq!(output.status.code(), Some(1), "{report:#}");
    let rules: Vec<_> =
        requirements_with_verdict(&report, "violated").into_iter().filter(|name| name.starts_with("DP")).collect();
    assert_eq!(rules, [rule], "{report:#}");
    let requirements = report["requirements"].as_array().expect("the requirements are a list");
    let evidence = &requirements
        .iter()
        .find(|requirement| requirement["name"] == rule)
        .expect("the report contains the requirement")["evidence"][0];
    assert!(
        evidence["write"]["after"].as_str().is_some_and(|after| after.contains("jobID \"conformance-job-")),
        "{evidence}"
    );
}

fn a_deployer_that_does_nothing_fails(ctx: &Context) {
    let ns = ctx.cluster.namespace("kit");
    let output = run_conformance(ctx, &ns, &["--timeout", "1s", "--quiet", "1s"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    for words in [
        "violated    finishes: ",
        "was not finished within 1s",
        "failure: skipped: set --failing-config",
        "not tested  DP001",
        "it still exists after 1s",
        "requirements were violated.",
    ] {
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
    }
}

fn reports_what_cannot_be_tested(ctx: &Context) {
    let output = run_conformance(ctx, "not-there", &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("creating a DeployItem"), "{output:?}");
    assert_eq!(run_conformance(ctx, "default", &["--timeout", "soon"]).status.code(), Some(2));
}

/// Checks that the dry-run deployer of the controller manager meets all requirements, like any other deployer.
fn the_dry_run_deployer_passes(ctx: &Context) {
    const DRY_RUN: &str = "landscaper.gardener.cloud/dry-run=true";
    const CONFIGURATION: &str = "landscaper.gardener.cloud/dry-run-configuration=test-dry-run";
    let ns = ctx.cluster.namespace("kit");
    let fragments = include_str!("../../examples/dry-run/configuration.yaml").replace("cu-example", &ns);
    ctx.cluster.kubectl().args(["apply", "-f", "-"]).stdin(fragments).run().expect_success();
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let write = |path: &str| {
        let file = folder.path().join(format!("{}.yaml", path.replace('.', "")));
        let resource = "{apiVersion: v1, kind: Secret, name: test-secret, namespace: example}";
        let text = format!(
            "apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\nkind: ProviderConfiguration\nexports: \
             {{exports: [{{key: test-token, jsonPath: {path}, fromResource: {resource}}}]}}\n"
        );
        std::fs::write(&file, text).expect("the file can be written");
        file.display().to_string()
    };
    let (right, wrong) = (write(".data.token"), write(".data.wrong"));
    let _manager = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    let item =
        ["--type", "landscaper.gardener.cloud/kubernetes-manifest", "--config", &right, "--failing-config", &wrong];
    let annotations = ["--annotation", DRY_RUN, "--annotation", CONFIGURATION, "--quiet", "1s", "--output", "json"];
    let output = run_conformance_with(ctx, &ns, &[&item[..], &annotations].concat());
    let report = parse_report(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(
        requirements_with_verdict(&report, "met").len(),
        report["requirements"].as_array().map_or(0, Vec::len),
        "{report:#}"
    );
}

/// Checks that a broken deployer cannot store an invalid status in a namespace where the rules deny it.
fn denies_writes_of_a_broken_deployer(ctx: &Context) {
    let ns = ctx.cluster.namespace("guarded");
    let _deployer = start_deployer(ctx, &ns, Some("order")).expect("the deployer starts");
    let output = run_conformance(ctx, &ns, &["--timeout", "2s", "--quiet", "1s", "--output", "json"]);
    let report = parse_report(&output);
    assert!(!requirements_with_verdict(&report, "violated").contains(&"DP001".to_owned()), "{report:#}");
    assert!(requirements_with_verdict(&report, "violated").contains(&"finishes".to_owned()), "{report:#}");
}
