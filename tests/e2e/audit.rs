//! Tests of audits by `portcullis audit` and by the controller manager. Both create, update and delete policy reports,
//! and move them to another API group.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::Case;
use crate::artifacts::packed;
use crate::context::Context;
use crate::controller_manager::{Options, RELEASE_LEASE_LOCK};
use crate::delivery::{self, CORRECT_TREE, WRONG_TREE, kustomization, set_source};
use crate::delivery_crds;
use crate::push::{Packing, Pusher, v2};
use crate::registry::{Options as RegistryOptions, Registry};
use crate::sentences::{accepts, eventually, warns};
use crate::user::User;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("audit::reports_stored_violations_until_they_are_fixed", reports_stored_violations_until_they_are_fixed),
    ("audit::the_controller_manager_audits_with_the_rights_of_its_service_account", the_controller_manager_audits),
    ("audit::a_broken_tree_is_added_to_the_policy_report", a_broken_tree_is_added_to_the_policy_report),
    ("audit::reports_overwrites_that_match_no_component", reports_overwrites_that_match_no_component),
];

/// A lock for tests that install or delete the CRDs of policy reports, because these CRDs affect the whole cluster.
static REPORT_CRDS_LOCK: Mutex<()> = Mutex::new(());

/// The name prefix of the namespaces in which these tests create DryRunConfigurations. In namespaces with this prefix,
/// the rules about dry runs record findings, but deny no requests.
const NAMESPACE_PREFIX: &str = "kit-audit";

/// Returns a DryRunConfiguration as YAML. Its Secret has no namespace, which violates rule DR002. By default, DR002
/// denies the object; in the namespaces of these tests, it only records a finding.
fn configuration_without_namespace(name: &str) -> String {
    configuration(name, "{name: a}")
}

fn configuration(name: &str, metadata: &str) -> String {
    format!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: DryRunConfiguration\nmetadata: {{name: {name}}}\nspec:\n  \
         exports:\n    - apiVersion: v1\n      kind: Secret\n      metadata: {metadata}\n      data: {{token: dG9rZW4=}}\n"
    )
}

/// Runs `portcullis audit`. Returns its exit code, standard output and standard error.
fn audit(ctx: &Context, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.arg("audit").arg("--kubeconfig").arg(ctx.cluster.kubeconfig(User::Admin)).args(arguments);
    let output = command.output().expect("portcullis runs");
    let text = |bytes| String::from_utf8(bytes).expect("portcullis writes UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn install_report_crds(ctx: &Context, group: &str) {
    let folder = delivery_crds::report_crds().expect("the CRDs can be downloaded");
    let files = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be listed").path());
    let files: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().contains(&format!("/{group}_"))).collect();
    assert_eq!(files.len(), 2, "the folder must contain two CRDs of {group}");
    for file in files {
        ctx.cluster.kubectl().args(["apply", "--server-side", "-f", &file.to_string_lossy()]).run().expect_success();
    }
    ctx.cluster.wait_for_crds();
}

fn uninstall_openreports(ctx: &Context) {
    let crds = ["reports.openreports.io", "clusterreports.openreports.io"];
    let delete = ["delete", "crd", "--ignore-not-found", crds[0], crds[1]];
    ctx.cluster.kubectl().args(delete).run().expect_success();
    let served = || ctx.cluster.kubectl().args(["get", "--raw", "/apis/openreports.io/v1alpha1"]).run();
    eventually(|| (!served().status.success()).then_some(()));
}

/// Returns the policy report that portcullis wrote for a namespace. `None` if there is no report. `resource` is the
/// resource type of the report, such as `policyreports.wgpolicyk8s.io`.
fn report(ctx: &Context, resource: &str, namespace: &str) -> Option<Value> {
    let get = ["get", resource, "portcullis-audit", "--namespace", namespace, "--output", "json", "--ignore-not-found"];
    serde_json::from_str(&ctx.cluster.kubectl().args(get).run().expect_success().stdout).ok()
}

/// Returns the field `note` of each Event in `namespace` whose reason is `reason`.
fn events(ctx: &Context, namespace: &str, reason: &str) -> Vec<String> {
    let get = ["get", "events.events.k8s.io", "--namespace", namespace, "--output", "json"];
    let listed: Value = serde_json::from_str(&ctx.cluster.kubectl().args(get).run().expect_success().stdout)
        .expect("kubectl writes JSON");
    let events = listed["items"].as_array().into_iter().flatten().filter(|event| event["reason"] == reason);
    events.filter_map(|event| event["note"].as_str().map(str::to_owned)).collect()
}

fn delete(ctx: &Context, namespace: &str, name: &str) {
    let delete = ["delete", "dryrunconfiguration", name, "--namespace", namespace];
    ctx.cluster.kubectl().args(delete).run().expect_success();
}

fn reports_stored_violations_until_they_are_fixed(ctx: &Context) {
    let _lock = REPORT_CRDS_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let ns = ctx.cluster.namespace(NAMESPACE_PREFIX);
    let arguments = ["--namespace", &ns, "--report"];
    uninstall_openreports(ctx);
    install_report_crds(ctx, "wgpolicyk8s.io");
    accepts(ctx, &ns, &configuration_without_namespace("one"));
    let foreign_report =
        "apiVersion: wgpolicyk8s.io/v1alpha2\nkind: PolicyReport\nmetadata: {name: others}\nsummary: {fail: 1}\n";
    accepts(ctx, &ns, foreign_report);

    let (code, stdout, stderr) = audit(ctx, &arguments);
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains(&format!("denied     DR002      {ns} DryRunConfiguration one: ")), "{stdout}");
    assert!(stderr.contains("1 created, 0 changed, 0 deleted, 0 unchanged"), "{stderr}");
    let first = report(ctx, "policyreports.wgpolicyk8s.io", &ns).expect("the report exists");
    assert_eq!(first["metadata"]["labels"]["app.kubernetes.io/managed-by"], "portcullis");
    let result = &first["results"][0];
    let reported = [("policy", "DR002"), ("result", "fail"), ("severity", "high"), ("source", "portcullis")];
    assert!(reported.iter().all(|(key, value)| result[key] == *value), "{result}");
    assert_eq!((&result["resources"][0]["name"], &first["summary"]["fail"]), (&json!("one"), &json!(1)));
    assert_eq!(result["properties"]["version"], env!("CARGO_PKG_VERSION"));

    // An unchanged report is not written again.
    let (_, stdout, stderr) = audit(ctx, &arguments);
    assert!(stderr.contains("0 created, 0 changed, 0 deleted, 1 unchanged"), "{stderr}");
    assert!(stdout.contains("As before:\n") && !stdout.contains("New since"), "{stdout}");
    let again = report(ctx, "policyreports.wgpolicyk8s.io", &ns).expect("the report exists");
    assert_eq!(again["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);

    // New findings are listed separately, and existing findings keep their timestamps.
    accepts(ctx, &ns, &configuration_without_namespace("two"));
    let (_, stdout, stderr) = audit(ctx, &arguments);
    let new = stdout.split("As before:").next().expect("the output is not empty");
    assert!(new.contains("New since the reports of") && new.contains("Configuration two"), "{stdout}");
    assert!(!new.contains("Configuration one"), "{stdout}");
    assert!(stderr.contains("0 created, 1 changed, 0 deleted"), "{stderr}");
    let both = report(ctx, "policyreports.wgpolicyk8s.io", &ns).expect("the report exists");
    let finding_of_one = both["results"]
        .as_array()
        .expect("the report has results")
        .iter()
        .find(|one| one["resources"] == result["resources"]);
    assert_eq!(finding_of_one.map(|one| &one["timestamp"]), Some(&result["timestamp"]));

    // When the API group openreports.io is available, the report moves to it.
    install_report_crds(ctx, "openreports.io");
    let (_, _, stderr) = audit(ctx, &arguments);
    assert!(stderr.contains("1 created, 0 changed, 1 deleted"), "{stderr}");
    assert_eq!(report(ctx, "policyreports.wgpolicyk8s.io", &ns), None);
    let moved = report(ctx, "reports.openreports.io", &ns).expect("the report exists");
    assert_eq!((&moved["source"], &moved["summary"]["fail"]), (&json!("portcullis"), &json!(2)));

    // A report without findings is deleted. A report of another owner is not deleted.
    delete(ctx, &ns, "one");
    accepts(ctx, &ns, &configuration("two", "{name: a, namespace: b}"));
    let (code, stdout, stderr) = audit(ctx, &arguments);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("0 created, 0 changed, 1 deleted"), "{stderr}");
    assert_eq!(report(ctx, "reports.openreports.io", &ns), None);
    let get = ["get", "policyreports.wgpolicyk8s.io", "others", "--namespace", &ns];
    ctx.cluster.kubectl().args(get).run().expect_success();
}

fn the_controller_manager_audits(ctx: &Context) {
    let (_reports, _lease) =
        (REPORT_CRDS_LOCK.lock().unwrap_or_else(PoisonError::into_inner), RELEASE_LEASE_LOCK.lock());
    let ns = ctx.cluster.namespace(NAMESPACE_PREFIX);
    install_report_crds(ctx, "openreports.io");
    accepts(ctx, &ns, &configuration_without_namespace("one"));
    let options = Options { arguments: &["--audit=1s"], ..Options::new(&ctx.cluster, &ns) };
    let manager = options.start(&ctx.cluster);
    let written = eventually(|| report(ctx, "reports.openreports.io", &ns));
    assert_eq!(written["results"][0]["policy"], "DR002", "{}", manager.log());
    let metric_name = "portcullis_audit_findings{rule=\"DR002\",outcome=\"fail\"} ";
    assert_eq!(eventually(|| manager.metric(metric_name)), 1.0);
    assert!(manager.metric("portcullis_audit_last_run_timestamp_seconds ").is_some_and(|at| at > 0.0));
    // All kinds of Landscaper are audited. Rights on the kinds of composites are granted separately, so the log may say
    // that these kinds are not audited.
    let is_unaudited_landscaper_kind =
        |line: &str| line.contains("not audited") && line.contains(".landscaper.gardener.cloud");
    assert!(!manager.log().lines().any(is_unaudited_landscaper_kind), "{}", manager.log());
    delete(ctx, &ns, "one");
    eventually(|| report(ctx, "reports.openreports.io", &ns).is_none().then_some(()));
    manager.terminate();
}

/// Checks that the controller manager reports a revision that does not build (issue 18, Flux 6). It must add the
/// findings to the policy report at once, without waiting for the next audit. The report must be the same as the report
/// of an audit.
fn a_broken_tree_is_added_to_the_policy_report(ctx: &Context) {
    let (_reports, _lease) =
        (REPORT_CRDS_LOCK.lock().unwrap_or_else(PoisonError::into_inner), RELEASE_LEASE_LOCK.lock());
    let ns = ctx.cluster.namespace("lenient");
    install_report_crds(ctx, "openreports.io");
    let publish = |revision: &str, files: [(&str, &str); 3]| {
        set_source(ctx, &ns, "apps", &ctx.artifacts.artifact(&packed(files), revision));
    };
    publish("main@sha1:1", CORRECT_TREE);
    accepts(ctx, &ns, &kustomization("apps", "apps", "./apps", &[]).to_string());
    // A second Kustomization has a finding that does not depend on the revision.
    let mut waiting = kustomization("waiting", "apps", "./apps", &[]);
    waiting["spec"]["dependsOn"] = json!([{"name": "none"}]);
    waiting["spec"]["namePrefix"] = json!("waiting-");
    warns(ctx, &ns, &waiting.to_string(), &["KZ043"]);
    let config = ctx.cluster.folder().join("audit-trees.yaml");
    fs::write(&config, delivery::configuration(&ctx.artifacts.host())).expect("the file can be written");
    let config = config.display().to_string();
    let arguments = ["--audit=24h", "--config", &config];
    let manager = Options { arguments: &arguments, ..Options::new(&ctx.cluster, &ns) }.start(&ctx.cluster);
    let audits = || manager.metric("portcullis_audit_runs_total{result=\"done\"} ");
    eventually(|| audits().filter(|runs| *runs > 0.0));
    let broken = |count: usize| {
        let results = report(ctx, "reports.openreports.io", &ns)?["results"].as_array()?.clone();
        let broken: Vec<_> = results.into_iter().filter(|result| result["policy"] == "KZ001").collect();
        (broken.len() == count).then_some(broken)
    };
    publish("main@sha1:2", WRONG_TREE);
    let results = eventually(|| broken(2));
    for result in results {
        assert_eq!(result["resources"][0]["kind"], "Kustomization", "{result}");
        let message = result["message"].to_string();
        assert!(message.contains("../components/ldap") && message.contains("main@sha1:2"), "{message}");
    }
    let (_, stdout, stderr) = audit(ctx, &["--namespace", &ns, "--report", "--config", &config]);
    assert!(stderr.contains("0 created, 0 changed, 0 deleted, 1 unchanged"), "{stdout}{stderr}\n{}", manager.log());
    // A second broken revision shortly after the first one gets a separate Event.
    let [root, settings, component] = WRONG_TREE;
    let again = format!("{}# again\n", root.1);
    publish("main@sha1:3", [(root.0, &again), settings, component]);
    for revision in ["main@sha1:2", "main@sha1:3"] {
        eventually(|| events(ctx, &ns, "BrokenRevision").iter().any(|note| note.contains(revision)).then_some(()));
    }
    publish("main@sha1:4", CORRECT_TREE);
    eventually(|| broken(0));
    assert_eq!(audits(), Some(1.0), "the cluster is audited once a day\n{}", manager.log());
    manager.terminate();
}

/// Checks that an audit reports an entry of ComponentVersionOverwrites that matches no component. Before the audit, the
/// controller manager writes an annotation to the Installation. The annotation says which entries match a component of
/// its component tree.
fn reports_overwrites_that_match_no_component(ctx: &Context) {
    let ns = ctx.cluster.namespace("audit");
    let registry = Registry::start(&RegistryOptions::default());
    let pusher = Pusher::new(&registry.url(), None, None);
    pusher.component("components", &v2("example.org/server", "v2.0.0", &[]), Packing::Archive);
    let header = |kind: &str, name: &str| {
        format!("apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\n")
    };
    let entry = |name: &str| format!("  - source: {{componentName: {name}}}\n    substitution: {{version: v2.0.0}}\n");
    let entries = entry("example.org/server") + &entry("example.org/left-long-ago");
    accepts(ctx, &ns, &format!("{}overwrites:\n{entries}", header("ComponentVersionOverwrites", "mine")));
    let repository = "repositoryContext: {type: ociRegistry, baseUrl: example.org/components}\n";
    accepts(ctx, &ns, &format!("{}{repository}componentVersionOverwrites: mine\n", header("Context", "default")));
    let reference = "{ref: {componentName: example.org/server, version: v1.0.0}}";
    let spec = format!(
        "spec: {{context: default, blueprint: {{ref: {{resourceName: b}}}}, componentDescriptor: {reference}}}\n"
    );
    warns(ctx, &ns, &format!("{}{spec}", header("Installation", "server")), &["component overwritten"]);
    let mirror = format!("example.org={}", registry.url());
    let arguments = ["--overwrite-trees", "--registry-mirror", &mirror];
    let manager = Options { arguments: &arguments, ..Options::new(&ctx.cluster, &ns) }.start(&ctx.cluster);
    eventually(|| {
        let (code, stdout, stderr) = audit(ctx, &["--namespace", &ns, "--rules", "OW009"]);
        assert_eq!(code, Some(0), "{stdout}{stderr}\n{}", manager.log());
        stdout.contains("recorded   OW009").then(|| {
            assert!(stdout.contains("overwrites[1].source: matches no component"), "{stdout}");
            assert!(!stdout.contains("overwrites[0]"), "{stdout}");
        })
    });
}
