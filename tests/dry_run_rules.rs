//! Tests of the DR rules, in addition to the tests of the examples on the documentation pages of these rules. They
//! cover templates of Executions, errors that already existed before an update, DryRunConfigurations that do not match
//! the exports of existing DeployItems, and switches between dry runs and real runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::io::Write;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cases::{Case, objects};
use flate2::Compression;
use flate2::write::GzEncoder;
use portcullis::admission::{Finding, Level, Operation, Phase};
use portcullis::catalog::{Catalog, LiveReader, LiveReading, Reference};
use portcullis::gate::{Gate, Policy, Registry};
use serde_json::{Value, json};

const CONFIGURATION: &str = "
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DryRunConfiguration
metadata: {name: fragments, namespace: ns}
spec:
  exports:
    - {apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: example}, secrets: [{name: test-secret}]}
    - {apiVersion: v1, kind: Secret, metadata: {name: test-secret, namespace: example}, data: {token: dG9rZW4=}}
";

fn configuration() -> Value {
    objects(CONFIGURATION).remove(0)
}

fn export(path: &str, kind: &str, name: &str) -> Value {
    let from = json!({"apiVersion": "v1", "kind": kind, "name": name, "namespace": "example"});
    json!({"key": "key", "jsonPath": path, "fromResource": from})
}

fn config(exports: Value) -> Value {
    json!({"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
           "exports": {"exports": exports}})
}

fn object(kind: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind, "spec": spec,
        "metadata": {"name": "object", "namespace": "ns", "annotations": {
            "landscaper.gardener.cloud/dry-run": "true", "landscaper.gardener.cloud/dry-run-configuration": "fragments",
        }},
    })
}

fn item(exports: Value) -> Value {
    object("DeployItem", json!({"type": "landscaper.gardener.cloud/kubernetes-manifest", "config": config(exports)}))
}

fn templates(exports: Value) -> Value {
    json!([{"name": "first", "type": "t", "config": {}}, {"name": "second", "type": "t", "config": config(exports)}])
}

/// Returns templates in the compressed format of Landscaper.
fn compressed(templates: &Value) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(templates.to_string().as_bytes()).unwrap();
    STANDARD.encode(encoder.finish().unwrap())
}

fn found(case: &Case) -> Vec<Finding> {
    case.decide(Phase::Validate).findings
}

fn create(object: Value) -> Case {
    Case::new(Operation::Create, object).stored(vec![configuration()])
}

/// Returns rule, level and field of every finding.
fn summaries(case: &Case) -> Vec<String> {
    found(case).iter().map(|f| format!("{} {} {}", f.rule, f.level, f.field)).collect()
}

#[test]
fn templates_of_executions_are_judged_plain_and_compressed() {
    let exports = json!([export(".data.wrong", "Secret", "test-secret"), export(".data", "Secret", "missing")]);
    let plain = create(object("Execution", json!({"deployItems": templates(exports.clone())})));
    let place = "spec.deployItems[1].config.exports.exports";
    assert_eq!(
        summaries(&plain),
        [
            format!("DR004 deny {place}[0].jsonPath"),
            format!("DR005 deny {place}[1].fromResource"),
            format!("DR008 warn {place}[1].key"),
        ]
    );
    let compressed = create(object("Execution", json!({"deployItemsCompressed": compressed(&templates(exports))})));
    assert!(summaries(&compressed).contains(&"DR004 deny spec.deployItemsCompressed".to_owned()));
    let message = &found(&compressed)[0].message;
    assert_eq!(
        message,
        "template \"second\", config.exports.exports[0].jsonPath: wrong is not found at character 7 of the path \
         \".data.wrong\", on Secret example/test-secret (v1) in DryRunConfiguration \"fragments\""
    );
}

#[test]
fn an_object_that_the_value_names_needs_a_fragment_too() {
    let mut export_with_reference = export(".secrets[0]", "ServiceAccount", "sa");
    export_with_reference["fromObjectRef"] = json!({"apiVersion": "v1", "kind": "Secret", "jsonPath": ".data.token"});
    assert_eq!(found(&create(item(json!([export_with_reference])))), []);
    export_with_reference["fromObjectRef"]["kind"] = json!("ConfigMap");
    let findings = found(&create(item(json!([export_with_reference]))));
    assert!(findings[0].message.contains("no fragment of ConfigMap example/test-secret (v1)"), "{findings:?}");
    export_with_reference["jsonPath"] = json!(".secrets");
    assert_eq!(
        summaries(&create(item(json!([export_with_reference])))),
        ["DR004 deny spec.config.exports.exports[0].jsonPath"]
    );
}

#[test]
fn warns_about_errors_that_an_update_does_not_change() {
    let wrong = item(json!([export(".data.wrong", "Secret", "test-secret")]));
    let mut touched = wrong.clone();
    touched["metadata"]["annotations"]["landscaper.gardener.cloud/reconcile-time"] = json!("now");
    let case = create(touched).update(wrong);
    assert_eq!(summaries(&case), ["DR004 warn spec.config.exports.exports[0].jsonPath"]);
    let case = create(item(json!([export("{.data}", "Secret", "test-secret")]))).update(item(json!([])));
    assert_eq!(summaries(&case), ["DR008 deny spec.config.exports.exports[0].jsonPath"]);
}

#[test]
fn warns_about_configurations_that_do_not_fit() {
    let exports = json!([export(".data.wrong", "Secret", "test-secret"), export(".data", "Secret", "missing")]);
    let case = Case::new(Operation::Create, configuration()).stored(vec![item(exports)]);
    assert_eq!(summaries(&case), ["DR004 warn spec.exports[1]", "DR005 warn spec.exports"]);
}

#[test]
fn helm_exports_without_a_resource_are_left_to_the_deployer() {
    let config = json!({"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
                        "exports": {"exports": [{"key": "a", "jsonPath": "Values.a"}]}});
    assert_eq!(found(&create(object("DeployItem", json!({"type": "t", "config": config.clone()})))), []);
    let mut old = config;
    let mut from = export(".data.token", "Secret", "test-secret");
    from["fromResource"].as_object_mut().unwrap().remove("namespace");
    old["exportsFromManifests"] = json!([from]);
    let levels = summaries(&create(object("DeployItem", json!({"type": "t", "config": old}))));
    assert!(
        levels.contains(&"DR008 deny spec.config.exportsFromManifests[0].fromResource.namespace".to_owned()),
        "{levels:?}"
    );
}

#[test]
fn warns_about_unknown_kinds() {
    let fragment = |api_version: &str, kind: &str| {
        let mut configuration = configuration();
        configuration["spec"]["exports"] =
            json!([{"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}]);
        summaries(&Case::new(Operation::Create, configuration))
    };
    assert_eq!(fragment("example.org/v1", "Thing"), ["DR002 warn spec.exports[0].metadata.namespace"]);
    assert_eq!(fragment("apps/v1", "Deployment"), ["DR002 deny spec.exports[0].metadata.namespace"]);
    assert_eq!(fragment("v1", "Namespace"), [""; 0]);
}

#[test]
fn a_switch_to_a_real_run_waits_for_the_job() {
    let mut running = object("Installation", json!({}));
    running["status"] = json!({"jobID": "b", "jobIDFinished": "a"});
    let mut real = running.clone();
    real["metadata"]["annotations"] = json!({});
    let rules = |old: &Value| -> Vec<&str> {
        found(&create(real.clone()).update(old.clone()))
            .iter()
            .map(|f| f.rule)
            .filter(|rule| *rule == "DR009")
            .collect()
    };
    assert_eq!(rules(&running), ["DR009"]);
    running["status"]["jobIDFinished"] = json!("b");
    assert_eq!(rules(&running), [""; 0]);
}

/// Regression test for issue 18: a root could be switched to dry run while deployers were processing objects below it.
#[test]
fn a_switch_waits_for_the_run_in_both_directions() {
    let annotations = |is_dry_run: bool| json!({"landscaper.gardener.cloud/dry-run": is_dry_run.to_string()});
    let judged = |to_dry_run: bool, root_runs: bool, item_status: Option<Value>| -> Vec<String> {
        let mut old = object("Installation", json!({}));
        old["metadata"]["annotations"] = annotations(!to_dry_run);
        let finished = if root_runs { "a" } else { "b" };
        old["status"] = json!({"jobID": "b", "jobIDFinished": finished});
        let mut new = old.clone();
        new["metadata"]["annotations"] = annotations(to_dry_run);
        let below = item_status.map(|status| {
            let mut item = item(json!([]));
            item["metadata"]["annotations"] = annotations(!to_dry_run);
            item["metadata"]["ownerReferences"] = json!([{"apiVersion": "landscaper.gardener.cloud/v1alpha1",
                "kind": "Installation", "name": old["metadata"]["name"], "controller": true}]);
            item["status"] = status;
            item
        });
        let findings = found(&create(new).update(old).stored(below.into_iter().collect()));
        findings.into_iter().filter(|found| found.rule == "DR009").map(|found| found.message).collect()
    };
    let open = || Some(json!({"phase": "", "jobID": "b", "jobIDFinished": "a"}));
    let done = || {
        let deployer = json!({"name": "portcullis.dev/dry-run"});
        Some(json!({"phase": "Succeeded", "jobID": "b", "jobIDFinished": "b", "deployer": deployer}))
    };
    assert_eq!(
        judged(true, true, None),
        ["its real run is under way: deployers complete the jobs that they have started"]
    );
    assert_eq!(
        judged(false, true, None),
        ["its dry run is under way: DeployItems that it has not processed would be deployed"]
    );
    assert_eq!(
        judged(true, false, open()),
        ["DeployItem \"object\" is being deployed: its deployer does not stop the job"]
    );
    assert_eq!(
        judged(false, false, open()),
        ["the dry run of DeployItem \"object\" is under way: it would be deployed"]
    );
    assert_eq!([judged(true, false, done()), judged(false, false, done())], [[""; 0], [""; 0]]);
}

/// Checks that DR009 allows another dry run of a root Installation if its DeployItem was processed only in a dry run.
/// The DeployItem has no dry-run annotation any more. So the rule reads `status.deployer`, the last deployer of the
/// DeployItem. If this is a real deployer, DR009 reports a finding.
#[test]
fn allows_another_dry_run_of_undeployed_items() {
    let root = |dry_run: &str| {
        let mut root = object("Installation", json!({}));
        root["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/dry-run": dry_run});
        root
    };
    let judged = |deployer: &str| {
        let mut item = item(json!([]));
        item["metadata"]["annotations"] = json!({});
        item["metadata"]["ownerReferences"] = json!([{"apiVersion": "landscaper.gardener.cloud/v1alpha1",
            "kind": "Installation", "name": root("true")["metadata"]["name"], "controller": true}]);
        item["status"] = json!({"phase": "Succeeded", "deployer": {"name": deployer, "identity": "a", "version": ""}});
        let findings = found(&create(root("true")).update(root("false")).stored(vec![item]));
        findings.iter().filter(|finding| finding.rule == "DR009").count()
    };
    assert_eq!((judged("helm.deployer.landscaper.gardener.cloud"), judged("portcullis.dev/dry-run")), (1, 0));
}

/// Returns level and message of the findings of DR012 about `object`. `configuration` is the text of a configuration
/// file.
fn dr012_findings(configuration: &str, object: Value) -> Vec<(Level, String)> {
    let policy = portcullis::config::parse(configuration, "portcullis.yaml", &Registry::standard()).unwrap();
    let findings = Case::new(Operation::Create, object).policy(policy).decide(Phase::Validate).findings;
    findings.into_iter().filter(|found| found.rule == "DR012").map(|found| (found.level, found.message)).collect()
}

fn deployers(entry: &str) -> String {
    format!(
        "deployers: {{identities: [{{users: [helm-deployer], types: [landscaper.gardener.cloud/helm], {entry}}}]}}\n"
    )
}

/// Regression test for issue 18: with mode `annotate`, real deployers deployed objects in dry runs.
#[test]
fn a_dry_run_that_a_known_deployer_would_deploy_is_denied() {
    let root = || {
        let mut root = object("Installation", json!({}));
        root["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/dry-run": "true"});
        root
    };
    let helm = || object("DeployItem", json!({"type": "landscaper.gardener.cloud/helm", "target": {"name": "fenced"}}));
    let denied = |configuration: &str| {
        [root(), helm()]
            .map(|object| dr012_findings(configuration, object).iter().any(|(level, _)| *level == Level::Deny))
    };
    assert_eq!(denied(""), [false, false], "no deployer is known");
    for off_or_annotate in ["", "mutators: {dry-run: annotate}\n", "mutators: {dry-run: off}\n"] {
        assert_eq!(denied(&format!("{off_or_annotate}{}", deployers(""))), [true, true], "{off_or_annotate}");
    }
    assert_eq!(denied(&format!("dryRun: {{}}\nmutators: {{dry-run: annotate}}\n{}", deployers(""))), [true, true]);
    for routes in ["dryRun: {}\n", "mutators: {dry-run: apply}\n"] {
        assert_eq!(denied(&format!("{routes}{}", deployers(""))), [false, false], "{routes}");
    }
    assert_eq!(denied(&deployers("honoursDryRun: true")), [false, false]);
    assert_eq!(
        denied(&format!("rules: {{DR012: warn}}\n{}", deployers(""))),
        [false, false],
        "the configured level is warn"
    );
    let selector = deployers("targetSelectors: [{targets: [{name: real, namespace: ns}]}]");
    assert_eq!(denied(&selector), [false, false], "the deployer may not select the Target");
    assert_eq!(dr012_findings(&selector, helm())[0].0, Level::Warn, "the Target is not known");
}

/// Regression test for issue 18: DeployItems of types that no deployer processes in a dry run were routed to the
/// dry-run deployer without a warning.
#[test]
fn a_type_that_nobody_processes_in_a_dry_run_is_denied_where_items_are_routed() {
    let mock = |place: &str| format!("{place}landscaper.gardener.cloud/mock");
    let item = || object("DeployItem", json!({"type": mock("")}));
    let [(level, message)] = &dr012_findings("dryRun: {}\n", item())[..] else { panic!("one finding") };
    assert!(
        *level == Level::Deny && message.contains("does not process \"landscaper.gardener.cloud/mock\""),
        "{message}"
    );
    assert_eq!(dr012_findings(&format!("dryRun: {{types: [{}]}}\n", mock("")), item()), []);
    let templates = json!([{"name": "a", "type": "landscaper.gardener.cloud/helm", "config": {}},
                           {"name": "b", "type": mock(""), "config": {}}, {"name": "c", "type": mock(""), "config": {}}]);
    for spec in [json!({"deployItems": templates}), json!({"deployItemsCompressed": compressed(&templates)})] {
        let [(level, message)] = &dr012_findings("dryRun: {}\n", object("Execution", spec))[..] else {
            panic!("one finding")
        };
        assert!(*level == Level::Deny && message.starts_with("template \"b\": "), "{message}");
    }
    let with_honours_dry_run =
        "deployers: {identities: [{users: [m], types: [landscaper.gardener.cloud/mock], honoursDryRun: true}]}";
    assert_eq!(dr012_findings(&format!("dryRun: {{}}\n{with_honours_dry_run}\n"), item()), []);
}

/// A live reader that finds one object, which the catalog does not contain yet. If the reader contains `None`, each
/// read fails.
struct LiveObject(Option<Value>);

impl LiveReader for LiveObject {
    fn read<'a>(&'a self, reference: &'a Reference) -> LiveReading<'a> {
        let found = self.0.clone().filter(|object| object["metadata"]["name"] == reference.name.as_str());
        Box::pin(async move {
            if self.0.is_some() { Ok(found.map(|object| object.to_string())) } else { Err("silence".to_owned()) }
        })
    }
}

#[test]
fn denies_only_with_a_live_read() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let levels = |reader: LiveObject, object: &Value| -> Vec<Level> {
        let registry = Registry::standard();
        let mut catalog = Catalog::of(registry.kinds(), Vec::new());
        catalog.set_live_reader(Arc::new(reader));
        let gate = Gate::new(registry, Policy::default(), Arc::new(catalog));
        let request = create(object.clone()).request();
        let findings = runtime.block_on(gate.decide(Phase::Validate, &request)).findings;
        findings.into_iter().map(|finding| finding.level).collect()
    };
    let right = item(json!([export(".data.token", "Secret", "test-secret")]));
    let wrong = item(json!([export(".data.wrong", "Secret", "test-secret")]));
    assert_eq!(levels(LiveObject(Some(configuration())), &right), []);
    assert_eq!(levels(LiveObject(Some(configuration())), &wrong), [Level::Deny]);
    assert_eq!(levels(LiveObject(Some(json!({"metadata": {"name": "other"}}))), &right), [Level::Deny]);
    assert_eq!(levels(LiveObject(None), &right), [Level::Warn]);
}
