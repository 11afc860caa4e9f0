//! Tests of the rules that replace Landscaper's webhook server. `config.yaml` enables these rules in namespaces that
//! begin with `ls-`.

use crate::Case;
use crate::context::Context;
use crate::sentences::{accepts, rejects};

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("validation::rules_that_are_off_report_nothing", rules_that_are_off_report_nothing),
    ("validation::an_installation_is_judged", an_installation_is_judged),
    ("validation::a_deploy_item_is_judged", a_deploy_item_is_judged),
    ("validation::an_execution_is_judged", an_execution_is_judged),
    ("validation::a_target_is_judged", a_target_is_judged),
    ("validation::landscapers_label_skips_validation", landscapers_label_skips_validation),
];

const CONTEXT: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Context\nmetadata: {name: default}\n";
const BLUEPRINT: &str = "blueprint: {ref: {resourceName: blueprint}}";
const CONFLICTING_TARGET: &str =
    "{type: landscaper.gardener.cloud/kubernetes-cluster, config: {kubeconfig: x}, secretRef: {name: s}}";

fn object(kind: &str, name: &str, spec: &str) -> String {
    labelled(kind, name, "{}", spec)
}

fn labelled(kind: &str, name: &str, labels: &str, spec: &str) -> String {
    format!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}, labels: \
         {labels}}}\nspec: {spec}\n"
    )
}

fn create_namespace(ctx: &Context) -> String {
    let ns = ctx.cluster.namespace("ls");
    accepts(ctx, &ns, CONTEXT);
    ns
}

fn rules_that_are_off_report_nothing(ctx: &Context) {
    let ns = ctx.cluster.namespace("off");
    accepts(ctx, &ns, &object("Target", "target", CONFLICTING_TARGET));
}

fn an_installation_is_judged(ctx: &Context) {
    let ns = create_namespace(ctx);
    accepts(ctx, &ns, &object("Installation", "installation", &format!("{{{BLUEPRINT}}}")));
    let spec = "{imports: {data: [{name: a}], targets: [{name: a, target: t}]}, exports: {data: [{name: b, dataRef: ''}]}, \
                automaticReconcile: {failedReconcile: {cronSpec: x}}, blueprint: {}}";
    let expected = [
        "LS002 metadata.name: \"a.b\"",
        "LS003 spec.blueprint: none of ref, inline is set",
        "LS004 spec.imports.data[0]: none of dataRef, secretRef, configMapRef is set",
        "LS004 spec.imports.targets[0]: duplicate name \"a\"",
        "LS005 spec.exports.data[0].dataRef: dataRef is missing",
        "LS006 spec.automaticReconcile.failedReconcile.cronSpec: \"x\" is not a schedule: it has 1 fields, not five",
        "help: write",
    ];
    rejects(ctx, &ns, &object("Installation", "a.b", spec), &expected);
}

fn a_deploy_item_is_judged(ctx: &Context) {
    let ns = create_namespace(ctx);
    let item = |spec: &str| object("DeployItem", "item", spec);
    let expected = ["LS007 spec.target.namespace: namespace is missing", "LS001 spec.timeout: \"5x\" is a string"];
    let spec = "{type: landscaper.gardener.cloud/mock, timeout: 5x, target: {name: t}}";
    rejects(ctx, &ns, &item(spec), &expected);
    let exports = "{type: landscaper.gardener.cloud/mock, config: {apiVersion: example.org/v1, kind: Configuration, exports: {exports: [{key: a}]}}}";
    rejects(ctx, &ns, &item(exports), &["LS011 spec.config.exports.exports[0].jsonPath"]);
}

fn an_execution_is_judged(ctx: &Context) {
    let ns = create_namespace(ctx);
    let config = "config: {apiVersion: example.org/v1, kind: Configuration}";
    let spec = format!(
        "{{deployItems: [{{name: a, type: t, {config}, dependsOn: [b]}}, {{name: b, type: '', {config}, dependsOn: [a, c]}}]}}"
    );
    let expected = [
        "LS008 spec.deployItems[1].type: template \"b\": type is missing",
        "LS009 spec.deployItems: circular dependency: a → b → a",
        "LS009 spec.deployItems[1]: template \"b\": it depends on \"c\", which does not exist",
    ];
    rejects(ctx, &ns, &object("Execution", "execution", &spec), &expected);
}

fn a_target_is_judged(ctx: &Context) {
    let ns = create_namespace(ctx);
    rejects(
        ctx,
        &ns,
        &object("Target", "target", CONFLICTING_TARGET),
        &["LS010 spec: config and secretRef are mutually exclusive"],
    );
}

fn landscapers_label_skips_validation(ctx: &Context) {
    let ns = create_namespace(ctx);
    let label = "{validation.landscaper.gardener.cloud/skip-validation: 'true'}";
    accepts(ctx, &ns, &labelled("Target", "target", label, CONFLICTING_TARGET));
    rejects(ctx, &ns, &object("Target", "target", CONFLICTING_TARGET), &["LS010"]);
}
