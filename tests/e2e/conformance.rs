//! Tests of `portcullis conformance deployer`. A correct deployer passes. Each of the other deployers violates one
//! requirement, and fails.

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

/// The tests of this file. In namespaces that begin with `kit-`, `config.yaml` does not deny writes that violate the
/// deployer contract.
pub const CASES: &[Case] = &[
    ("conformance::a_correct_deployer_passes", a_correct_deployer_passes),
    ("conformance::finishing_in_the_wrong_order_is_seen", |ctx| is_caught(ctx, "order", "DP001")),
    ("conformance::finishing_another_job_is_seen", |ctx| is_caught(ctx, "job", "DP002")),
    ("conformance::changing_a_result_is_seen", |ctx| is_caught(ctx, "result", "DP003")),
    ("conformance::beginning_without_a_time_is_seen", |ctx| is_caught(ctx, "pickup", "DP004")),
    ("conformance::working_on_other_types_is_seen", |ctx| is_caught(ctx, "type", "DP010")),
    ("conformance::a_deployer_that_does_nothing_fails", a_deployer_that_does_nothing_fails),
    ("conformance::reports_what_cannot_be_tested", reports_what_cannot_be_tested),
    ("conformance::the_deployer_of_dry_runs_passes", the_deployer_of_dry_runs_passes),
    ("conformance::a_broken_deployer_is_refused", a_broken_deployer_is_refused),
];

const TYPE: &str = "example.org/config-map";
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/deployer");

/// Builds the example deployer once, and returns the path of its binary. The binary is in the folder `examples` beside
/// the portcullis binary.
fn deployer() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let build = ["build", "--locked", "--quiet", "--example", "deployer"];
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let output = Command::new(env!("CARGO")).args(build).args(["--manifest-path", manifest]).output();
        let output = output.expect("cargo is what runs us");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let binary = Path::new(env!("CARGO_BIN_EXE_portcullis"));
        binary.parent().expect("it is in a folder").join("examples/deployer")
    })
}

/// Starts the example deployer in a namespace. `broken` is the requirement that it violates. The process is killed when
/// the returned value is dropped.
fn run(ctx: &Context, ns: &str, broken: Option<&str>) -> io::Result<Process> {
    let mut command = Command::new(deployer());
    command.args(["--namespace", ns, "--zone", "ours", "--kubeconfig"]).arg(ctx.cluster.kubeconfig(User::Admin));
    command.args(broken.map(|broken| format!("--break={broken}")));
    Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
}

fn kit(ctx: &Context, ns: &str, more: &[&str]) -> Output {
    let config = format!("{EXAMPLES}/config.yaml");
    kit_for(ctx, ns, &[&["--type", TYPE, "--config", &config], more].concat())
}

fn kit_for(ctx: &Context, ns: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["conformance", "deployer", "--namespace", ns, "--kubeconfig"]);
    command.arg(ctx.cluster.kubeconfig(User::Admin)).args(more).output().expect("it is built")
}

fn reported(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Returns the names of the requirements that have this verdict in a report.
fn with_verdict(report: &Value, verdict: &str) -> Vec<String> {
    let requirements = report["requirements"].as_array().expect("it is a list").iter();
    let requirements = requirements.filter(|requirement| requirement["verdict"] == verdict);
    requirements.map(|requirement| requirement["name"].as_str().expect("it has a name").to_owned()).collect()
}

fn targets(ctx: &Context, ns: &str) {
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
    targets(ctx, &ns);
    let _deployer = run(ctx, &ns, None).expect("it starts");
    let failing = format!("{EXAMPLES}/failing.yaml");
    let all = ["--failing-config", &failing, "--target", "ours", "--foreign-target", "theirs", "--quiet", "1s"];
    let output = kit(ctx, &ns, &[&all[..], &["--output", "json"]].concat());
    let report = reported(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(with_verdict(&report, "met").len(), report["requirements"].as_array().map_or(0, Vec::len), "{report:#}");
    assert!(report["scenarios"].as_array().expect("a list").iter().all(|scenario| scenario["ran"] == true));
    let left = ctx.cluster.kubectl().args(["get", "deployitems", "--namespace", &ns, "-o", "name"]).run();
    assert_eq!(left.stdout, "", "the kit clears away");
    let kept = ctx.cluster.kubectl().args(["get", "configmaps", "--namespace", &ns, "-o", "name"]).run().stdout;
    assert_eq!(
        kept.lines().filter(|name| name.contains("conformance-")).count(),
        1,
        "one was not to be uninstalled: {kept}"
    );
}

fn is_caught(ctx: &Context, broken: &str, rule: &str) {
    let ns = ctx.cluster.namespace("kit");
    let _deployer = run(ctx, &ns, Some(broken)).expect("it starts");
    let output = kit(ctx, &ns, &["--timeout", "3s", "--quiet", "1s", "--output", "json"]);
    let report = reported(&output);
    assert_eq!(output.status.code(), Some(1), "{report:#}");
    let rules: Vec<_> = with_verdict(&report, "violated").into_iter().filter(|name| name.starts_with("DP")).collect();
    assert_eq!(rules, [rule], "{report:#}");
    let requirements = report["requirements"].as_array().expect("a list");
    let evidence =
        &requirements.iter().find(|requirement| requirement["name"] == rule).expect("it is there")["evidence"][0];
    assert!(
        evidence["write"]["after"].as_str().is_some_and(|after| after.contains("jobID \"conformance-job-")),
        "{evidence}"
    );
}

fn a_deployer_that_does_nothing_fails(ctx: &Context) {
    let ns = ctx.cluster.namespace("kit");
    let output = kit(ctx, &ns, &["--timeout", "1s", "--quiet", "1s"]);
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
    let output = kit(ctx, "not-there", &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("creating a DeployItem"), "{output:?}");
    assert_eq!(kit(ctx, "default", &["--timeout", "soon"]).status.code(), Some(2));
}

/// Checks that the dry-run deployer of the controller manager meets all requirements, like any other deployer.
fn the_deployer_of_dry_runs_passes(ctx: &Context) {
    const DRY_RUN: &str = "landscaper.gardener.cloud/dry-run=true";
    const CONFIGURATION: &str = "landscaper.gardener.cloud/dry-run-configuration=test-dry-run";
    let ns = ctx.cluster.namespace("kit");
    let fragments = include_str!("../../examples/dry-run/configuration.yaml").replace("cu-example", &ns);
    ctx.cluster.kubectl().args(["apply", "-f", "-"]).stdin(fragments).run().expect_success();
    let folder = tempfile::tempdir().expect("there is room");
    let write = |path: &str| {
        let file = folder.path().join(format!("{}.yaml", path.replace('.', "")));
        let from = "{apiVersion: v1, kind: Secret, name: test-secret, namespace: example}";
        let text = format!(
            "apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2\nkind: ProviderConfiguration\nexports: \
             {{exports: [{{key: test-token, jsonPath: {path}, fromResource: {from}}}]}}\n"
        );
        std::fs::write(&file, text).expect("there is room");
        file.display().to_string()
    };
    let (right, wrong) = (write(".data.token"), write(".data.wrong"));
    let _companion = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    let item =
        ["--type", "landscaper.gardener.cloud/kubernetes-manifest", "--config", &right, "--failing-config", &wrong];
    let marks = ["--annotation", DRY_RUN, "--annotation", CONFIGURATION, "--quiet", "1s", "--output", "json"];
    let output = kit_for(ctx, &ns, &[&item[..], &marks].concat());
    let report = reported(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(with_verdict(&report, "met").len(), report["requirements"].as_array().map_or(0, Vec::len), "{report:#}");
}

/// Checks that a broken deployer cannot store an invalid status in a namespace where the rules deny it.
fn a_broken_deployer_is_refused(ctx: &Context) {
    let ns = ctx.cluster.namespace("guarded");
    let _deployer = run(ctx, &ns, Some("order")).expect("it starts");
    let output = kit(ctx, &ns, &["--timeout", "2s", "--quiet", "1s", "--output", "json"]);
    let report = reported(&output);
    assert!(!with_verdict(&report, "violated").contains(&"DP001".to_owned()), "{report:#}");
    assert!(with_verdict(&report, "violated").contains(&"finishes".to_owned()), "{report:#}");
}
