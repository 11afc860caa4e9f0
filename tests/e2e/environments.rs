//! Tests of the rules about environments, with kubectl and the API server. For each rule, the test sends a request that
//! the API server must deny or warn about, and a request that it must accept.

use std::collections::BTreeSet;

use portcullis::gate::Registry;

use crate::Case;
use crate::context::Context;
use crate::crossplane::{composite, composition, environment_config, kubectl, patch, pipeline, prepare_composites};
use crate::kubectl::Output;
use crate::sentences::{accepts, eventually, eventually_or_show, warns};

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("environments::each_rule_reports_and_accepts", each_rule_reports_and_accepts),
    ("environments::a_breaking_change_names_the_composite_and_the_patch", reports_breaking_changes),
    ("environments::reads_a_schema_from_a_config_map", reads_a_schema_from_a_config_map),
];

/// The expected response of the API server to a request that violates a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Denial,
    Warning,
}

use Expected::{Denial, Warning};

/// The kubectl command that is run for an object.
enum Action {
    Apply,
    Delete,
}

/// A test case for a rule. The action on the object `wrong` violates the rule, and the action on the object `right`
/// does not.
struct RuleCase {
    rule: &'static str,
    expected: Expected,
    action: Action,
    wrong: String,
    right: String,
}

fn apply_case(rule: &'static str, expected: Expected, wrong: String, right: String) -> RuleCase {
    RuleCase { rule, expected, action: Action::Apply, wrong, right }
}

impl RuleCase {
    fn run(&self, ctx: &Context, yaml: &str) -> Output {
        let verb = if matches!(self.action, Action::Apply) { "apply" } else { "delete" };
        ctx.cluster.kubectl().args([verb, "--dry-run=server", "-f", "-"]).stdin(yaml).run()
    }

    /// Checks that the action on the object `wrong` has the expected result and a finding of the rule, and that the
    /// action on the object `right` succeeds without a warning. Retries until the catalog contains all stored objects.
    fn check(&self, ctx: &Context) {
        eventually_or_show(|| {
            let answer = self.run(ctx, &self.wrong);
            let (is_denied, is_named) = (!answer.status.success(), answer.stderr.contains(self.rule));
            let is_expected = is_named && is_denied == (self.expected == Denial);
            is_expected.then_some(()).ok_or_else(|| format!("{}: {}\n{answer}", self.rule, self.wrong))
        });
        let right = eventually(|| Some(self.run(ctx, &self.right)).filter(|answer| answer.status.success()));
        assert!(!right.stderr.contains("Warning:"), "{}: {}\n{right}", self.rule, self.right);
    }
}

const STAGE: &str = "matchLabels: [{key: stage, valueFromFieldPath: spec.parameters.stage}]";

fn selector(fields: &str) -> String {
    format!("environmentConfigs:\n  - {{type: Selector, selector: {{{fields}}}}}\n")
}

/// Returns the content of the field `environment` of a Composition. It selects all EnvironmentConfigs whose label
/// `ways` has the value `label`, and sorts them by `data.priority`.
fn by_priority(label: &str) -> String {
    let labels = format!("matchLabels: [{{key: ways, type: Value, value: {label}}}]");
    selector(&format!("mode: Multiple, sortByFieldPath: data.priority, {labels}"))
}

/// Returns a Composition whose field `environment` has the content `environment`. The tests apply this Composition only
/// in dry runs.
fn dry_run_composition(environment: &str) -> String {
    composition("ways-tried", environment)
}

fn cases_without_lookups() -> Vec<RuleCase> {
    let read = |path: &str| patch(&format!("{{fromFieldPath: '{path}', toFieldPath: b}}"));
    let format = |text: &str| {
        let format = format!("transforms: [{{type: string, string: {{type: Format, fmt: '{text}'}}}}]");
        patch(&format!("{{fromFieldPath: spec.region, toFieldPath: b, {format}}}"))
    };
    let bounds = |min: i8| selector(&format!("mode: Multiple, minMatch: {min}, maxMatch: 2, {STAGE}"));
    let to = |target: &str| patch(&format!("{{type: ToCompositeFieldPath, fromFieldPath: a, toFieldPath: {target}}}"));
    let input = |bound: &str| {
        let selector = format!("{{type: Selector, selector: {{mode: Multiple, {bound}: 1, {STAGE}}}}}");
        let resources = "resources: [{name: one, base: {apiVersion: v1, kind: ConfigMap}}]";
        pipeline("ways-tried", &format!("{{environmentConfigs: [{selector}]}}"), resources)
    };
    vec![
        apply_case("EN001", Denial, dry_run_composition(&selector("")), dry_run_composition(&selector(STAGE))),
        apply_case(
            "EN002",
            Denial,
            dry_run_composition(&read("spec.list[0")),
            dry_run_composition(&read("spec.region")),
        ),
        apply_case("EN003", Denial, dry_run_composition(&format("%s-%s")), dry_run_composition(&format("%s-"))),
        apply_case(
            "EN004",
            Denial,
            dry_run_composition(&selector("matchLabels: [{key: 'a b', valueFromFieldPath: spec.region}]")),
            dry_run_composition(&selector(STAGE)),
        ),
        apply_case("EN005", Denial, dry_run_composition(&bounds(-1)), dry_run_composition(&bounds(1))),
        apply_case(
            "EN007",
            Warning,
            dry_run_composition("defaultData: {kind: mine}\n"),
            dry_run_composition("defaultData: {sort: mine}\n"),
        ),
        apply_case("EN009", Warning, dry_run_composition(&to("status.a")), dry_run_composition(&to("spec.region"))),
        apply_case("EN012", Warning, input("maxMatches"), input("maxMatch")),
        apply_case(
            "EN013",
            Warning,
            dry_run_composition(&read("spec.zone")),
            dry_run_composition(&read("spec.region")),
        ),
    ]
}

/// Returns the test cases of rules that look up objects in the cluster.
fn cases_with_lookups() -> Vec<RuleCase> {
    let refer = |name: &str| dry_run_composition(&format!("environmentConfigs: [{{ref: {{name: {name}}}}}]\n"));
    let sorted = |label: &str| dry_run_composition(&by_priority(label));
    let read = |path: &str| {
        let patch = patch(&format!("{{type: ToCompositeFieldPath, fromFieldPath: {path}, toFieldPath: spec.region}}"));
        let schema = "annotations: {portcullis.dev/environment-schema: '{\"properties\": {\"region\": {\"type\": \"string\"}}}'}";
        dry_run_composition(&patch)
            .replace("metadata: {name: ways-tried}", &format!("metadata: {{name: ways-tried, {schema}}}"))
    };
    let selected =
        |stage: &str| composite("ways-selected", "ways-selecting", &format!("  parameters: {{stage: {stage}}}\n"));
    let order = |composition: &str| composite("ways-ordered", composition, "");
    let finds = |composition: &str| composite("ways-finds", composition, "");
    let refers = |name: &str| {
        let reference =
            format!("{{apiVersion: apiextensions.crossplane.io/v1alpha1, kind: EnvironmentConfig, name: {name}}}");
        composite("ways-refers", "ways-right", &format!("  environmentConfigRefs: [{reference}]\n"))
    };
    let config = |name: &str| environment_config("v1beta1", name, "", "{region: eu-1}");
    vec![
        apply_case("EN006", Warning, refer("ways-bse"), refer("ways-base")),
        apply_case("EN006", Warning, selected("none"), selected("gold")),
        apply_case("EN005", Warning, sorted("mixed"), sorted("sorted")),
        apply_case("EN005", Warning, order("ways-mixed"), order("ways-sorted")),
        apply_case("EN008", Warning, read("regoin"), read("region")),
        apply_case("EN008", Warning, finds("ways-wrong"), finds("ways-right")),
        apply_case("EN011", Warning, refers("ways-unused"), refers("ways-base")),
        RuleCase {
            rule: "EN010",
            expected: Denial,
            action: Action::Delete,
            wrong: config("ways-base"),
            right: config("ways-unused"),
        },
    ]
}

/// Creates the objects that the cases of [`cases_with_lookups`] need.
fn create_objects(ctx: &Context) {
    prepare_composites(ctx);
    let from = |path: &str| {
        let patch = patch(&format!("{{type: ToCompositeFieldPath, fromFieldPath: {path}, toFieldPath: spec.region}}"));
        format!("environmentConfigs: [{{ref: {{name: ways-base}}}}]\n{patch}")
    };
    let objects = [
        environment_config("v1beta1", "ways-base", "", "{region: eu-1}"),
        environment_config("v1beta1", "ways-unused", "", "{region: eu-1}"),
        environment_config("v1beta1", "ways-gold", "stage: gold", "{region: eu-1}"),
        environment_config("v1beta1", "ways-one", "ways: sorted", "{priority: 1}"),
        environment_config("v1beta1", "ways-two", "ways: sorted", "{priority: 2}"),
        environment_config("v1beta1", "ways-text", "ways: mixed", "{priority: high}"),
        environment_config("v1beta1", "ways-number", "ways: mixed", "{priority: 2}"),
        composition("ways-right", &from("region")),
        composition("ways-wrong", &from("regoin")),
        composition("ways-selecting", &selector(STAGE)),
        composition("ways-mixed", &by_priority("mixed")),
        composition("ways-sorted", &by_priority("sorted")),
        composite("ways-user", "ways-right", ""),
    ];
    let apply = ["apply", "--server-side", "-f", "-"];
    ctx.cluster.kubectl().args(apply).stdin(objects.join("---\n")).run().expect_success();
}

fn each_rule_reports_and_accepts(ctx: &Context) {
    create_objects(ctx);
    let all: Vec<RuleCase> = cases_without_lookups().into_iter().chain(cases_with_lookups()).collect();
    let registered: BTreeSet<_> = Registry::standard().rules().iter().map(|rule| rule.info.id).collect();
    let registered: BTreeSet<_> = registered.into_iter().filter(|id| id.starts_with("EN")).collect();
    assert_eq!(all.iter().map(|case| case.rule).collect::<BTreeSet<_>>(), registered, "each rule must have a case");
    all.iter().for_each(|case| case.check(ctx));
}

fn reports_breaking_changes(ctx: &Context) {
    prepare_composites(ctx);
    let config = |data: &str| environment_config("v1beta1", "changing", "", data);
    accepts(ctx, "default", &config("{region: eu-1}"));
    let reading = patch("{type: ToCompositeFieldPath, fromFieldPath: region, toFieldPath: spec.region}");
    let environment = format!("environmentConfigs: [{{ref: {{name: changing}}}}]\n{reading}");
    ctx.cluster
        .kubectl()
        .args(["apply", "-f", "-"])
        .stdin(composition("changing", &environment))
        .run()
        .expect_success();
    ctx.cluster.kubectl().args(["apply", "-f", "-"]).stdin(composite("changed", "changing", "")).run().expect_success();
    let words = "with this data XExample \"changed\" breaks: Composition \"changing\", spec.environment.patches[0]";
    eventually(|| {
        let apply = ["apply", "--dry-run=server", "-f", "-"];
        let answer = ctx.cluster.kubectl().args(apply).stdin(config("{regions: [eu-1]}")).run().stderr;
        answer.contains(words).then_some(())
    });
    accepts(ctx, "default", &config("{region: eu-2}"));
    warns(ctx, "default", &config("{regions: [eu-1]}"), &["EN010 data", words]);
}

fn reads_a_schema_from_a_config_map(ctx: &Context) {
    for namespace in ["portcullis-system", "default"] {
        let create = ["create", "configmap", "environments", "--namespace", namespace];
        let literal = "--from-literal=shop.json={\"properties\": {\"region\": {\"type\": \"string\"}}}";
        kubectl(ctx, &[&create[..], &[literal]].concat()).expect_success();
    }
    let declaring = |namespace: &str, path: &str| {
        let from =
            format!("annotations: {{portcullis.dev/environment-schema-from: {namespace}/environments/shop.json}}");
        let patch = patch(&format!("{{type: ToCompositeFieldPath, fromFieldPath: {path}, toFieldPath: spec.region}}"));
        composition("declaring", &patch)
            .replace("metadata: {name: declaring}", &format!("metadata: {{name: declaring, {from}}}"))
    };
    accepts(ctx, "default", &declaring("portcullis-system", "region"));
    let words =
        ["EN008 spec.environment.patches[0].fromFieldPath", "schema has no such field; the environment has region"];
    warns(ctx, "default", &declaring("portcullis-system", "regoin"), &words);
    let words =
        ["EN008 metadata.annotations", "which portcullis cannot read: its ServiceAccount needs permission to get it"];
    warns(ctx, "default", &declaring("default", "region"), &words);
}
