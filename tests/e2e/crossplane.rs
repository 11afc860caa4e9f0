//! Tests of composition environments, as a user of kubectl.
//!
//! Crossplane does not run. The tests create the CRD that Crossplane would create from the CompositeResourceDefinition.

use std::fs;
use std::process::Command;
use std::sync::{OnceLock, PoisonError};

use serde_json::{Value, json};

use crate::Case;
use crate::context::Context;
use crate::controller_manager::{Options, RELEASE_LEASE_LOCK};
use crate::kubectl::Output;
use crate::sentences::{accepts, eventually, patches, rejects, warns};
use crate::user::User;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("crossplane::the_example_in_current_syntax_is_accepted", the_example_in_current_syntax_is_accepted),
    ("crossplane::suggests_current_syntax_for_the_first_design", suggests_current_syntax_for_the_first_design),
    (
        "crossplane::each_rule_about_a_composition_alone_denies_and_accepts",
        each_rule_about_a_composition_alone_denies_and_accepts,
    ),
    ("crossplane::functions_inputs_are_judged", functions_inputs_are_judged),
    ("crossplane::warns_about_missing_objects", warns_about_missing_objects),
    ("crossplane::a_composite_gets_references_and_patches", a_composite_gets_references_and_patches),
    ("crossplane::a_composite_of_a_function_pipeline_gets_patches", a_composite_of_a_function_pipeline_gets_patches),
    ("crossplane::a_composite_refers_only_to_selected_configs", a_composite_refers_only_to_selected_configs),
    ("crossplane::warns_about_patches_without_a_value", warns_about_patches_without_a_value),
    ("crossplane::denies_deletion_of_an_environment_config_in_use", denies_deletion_of_an_environment_config_in_use),
    (
        "crossplane::the_registration_is_updated_when_definitions_change",
        the_registration_is_updated_when_definitions_change,
    ),
    ("crossplane::an_environment_is_explained_from_the_cluster", an_environment_is_explained_from_the_cluster),
    ("crossplane::both_versions_of_environment_configs_are_judged", both_versions_of_environment_configs_are_judged),
];

const DEFINITION: &str = include_str!("../../examples/crossplane/definition.yaml");
const CONFIGS: &str = include_str!("../../examples/crossplane/environment-configs.yaml");
const COMPOSITION: &str = include_str!("../../examples/crossplane/composition.yaml");
const COMPOSITE: &str = include_str!("../../examples/crossplane/composite.yaml");
const FIRST_DESIGN: &str = include_str!("../../examples/crossplane/first-design.yaml");

/// The CRD that Crossplane up to 1.17 creates from the CompositeResourceDefinition `DEFINITION`, with the fields that
/// these tests need.
const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: xexamples.demo.org}
spec:
  group: demo.org
  scope: Cluster
  names: {kind: XExample, plural: xexamples, singular: xexample, listKind: XExampleList}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                parameters: {type: object, properties: {stage: {type: string}}}
                widgets: {type: integer}
                region: {type: string}
                compositionRef: {type: object, required: [name], properties: {name: {type: string}}}
                environmentConfigRefs:
                  type: array
                  items:
                    type: object
                    required: [apiVersion, kind]
                    properties: {apiVersion: {type: string}, kind: {type: string}, name: {type: string}}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

pub fn kubectl(ctx: &Context, args: &[&str]) -> Output {
    ctx.cluster.kubectl().args(args).run()
}

/// Creates the CompositeResourceDefinition, the CRD of its composites, and the webhooks for these composites, once for
/// all tests. Waits until the webhooks change composites at admission.
pub fn prepare_composites(ctx: &Context) {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(|| {
        let apply = ["apply", "--server-side", "-f", "-"];
        // The rights come first, because a denied watch is retried only after a delay.
        apply_registration(ctx);
        ctx.cluster.kubectl().args(apply).stdin(format!("{DEFINITION}---\n{CRD}")).run().expect_success();
        ctx.cluster.wait_for_crds();
        let probe = composition("probe", "environmentConfigs: [{ref: {name: probe}}]\n");
        let config = environment_config("v1beta1", "probe", "", "{region: probe}");
        // Portcullis detects from the references of a stored composite that native environments are enabled.
        let reference = "{apiVersion: apiextensions.crossplane.io/v1alpha1, kind: EnvironmentConfig, name: probe}";
        let seen = composite("seen", "probe", &format!("  environmentConfigRefs: [{reference}]\n"));
        ctx.cluster.kubectl().args(apply).stdin(format!("{probe}---\n{config}---\n{seen}")).run().expect_success();
        eventually(|| {
            let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
            let answer = ctx.cluster.kubectl().args(create).stdin(composite("probe", "probe", "")).run();
            answer.stdout.contains("environmentConfigRefs").then_some(())
        });
    });
}

/// Applies the webhook configurations and RBAC objects that `portcullis manifests --definitions` writes. The webhooks
/// get the same CA and port as the webhooks that are already registered.
fn apply_registration(ctx: &Context) {
    let get = ["get", "validatingwebhookconfiguration", "portcullis", "-o", "json"];
    let registered: Value =
        serde_json::from_str(&kubectl(ctx, &get).expect_success().stdout).expect("kubectl writes JSON");
    let client = &registered["webhooks"][0]["clientConfig"];
    let ca = client["caBundle"].as_str().expect("the clientConfig has a CA bundle");
    let folder = ctx.cluster.folder().join("composites");
    fs::create_dir_all(&folder).expect("the cluster's folder can be written to");
    let (definitions, authority) = (folder.join("definition.yaml"), folder.join("ca.crt"));
    fs::write(&definitions, DEFINITION).expect("the file can be written");
    let pem = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, ca).expect("a CA is base64");
    fs::write(&authority, pem).expect("the file can be written");
    let mut manifests = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    manifests.arg("manifests").arg("--out").arg(&folder).arg("--definitions").arg(&definitions);
    assert!(manifests.arg("--ca-bundle").arg(&authority).status().expect("portcullis runs").success());
    for file in ["rbac-composites.yaml", "mutating-composites.yaml", "validating-composites.yaml"] {
        let text = fs::read_to_string(folder.join(file)).expect("the file can be read");
        let text = text.replace("port: 443", &format!("port: {}", client["service"]["port"]));
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        ctx.cluster.kubectl().args(apply).stdin(text).run().expect_success();
    }
}

pub fn environment_config(version: &str, name: &str, labels: &str, data: &str) -> String {
    format!(
        "apiVersion: apiextensions.crossplane.io/{version}\nkind: EnvironmentConfig\nmetadata: {{name: {name}, labels: \
         {{{labels}}}}}\ndata: {data}\n"
    )
}

pub fn composition(name: &str, environment: &str) -> String {
    let indented: String = environment.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {{name: {name}}}\nspec:\n  \
         compositeTypeRef: {{apiVersion: demo.org/v1alpha1, kind: XExample}}\n  resources: []\n  environment:\n{indented}"
    )
}

pub fn patch(patch: &str) -> String {
    format!("patches:\n  - {patch}\n")
}

pub fn pipeline(name: &str, configs: &str, resources: &str) -> String {
    format!(
        "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {{name: {name}}}\nspec:\n  \
         compositeTypeRef: {{apiVersion: demo.org/v1alpha1, kind: XExample}}\n  mode: Pipeline\n  pipeline:\n    - step: \
         environment\n      functionRef: {{name: function-environment-configs}}\n      input:\n        apiVersion: \
         environmentconfigs.fn.crossplane.io/v1beta1\n        kind: Input\n        spec: {configs}\n    - step: \
         resources\n      functionRef: {{name: function-patch-and-transform}}\n      input:\n        apiVersion: \
         pt.fn.crossplane.io/v1beta1\n        kind: Resources\n        {resources}\n"
    )
}

pub fn composite(name: &str, composition: &str, spec: &str) -> String {
    format!(
        "apiVersion: demo.org/v1alpha1\nkind: XExample\nmetadata: {{name: {name}}}\nspec:\n  compositionRef: {{name: \
         {composition}}}\n{spec}"
    )
}

fn the_example_in_current_syntax_is_accepted(ctx: &Context) {
    prepare_composites(ctx);
    accepts(ctx, "default", CONFIGS);
    eventually(|| {
        let apply = ["apply", "--dry-run=server", "-f", "-"];
        let answer = ctx.cluster.kubectl().args(apply).stdin(COMPOSITION).run().expect_success();
        (!answer.stderr.contains("Warning:")).then_some(())
    });
    accepts(ctx, "default", COMPOSITION);
    let reference =
        |name| json!({"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "EnvironmentConfig", "name": name});
    eventually(|| {
        let create = ["apply", "--dry-run=server", "-o", "json", "-f", "-"];
        let answer = ctx.cluster.kubectl().args(create).stdin(COMPOSITE).run();
        answer.stdout.contains("environmentConfigRefs").then_some(())
    });
    patches(
        ctx,
        "default",
        COMPOSITE,
        &[
            ("/spec/environmentConfigRefs", json!([reference("example-environment"), reference("label-environment")])),
            ("/spec/region", json!("eu-2")),
            ("/spec/widgets", json!(3)),
            (
                "/metadata/annotations/portcullis.dev~1environment-patches",
                json!(r#"{"settings":[{"op":"add","path":"/data","value":{"color":"green","name":"eu-2-3"}}]}"#),
            ),
        ],
    );
}

fn suggests_current_syntax_for_the_first_design(ctx: &Context) {
    rejects(
        ctx,
        "default",
        FIRST_DESIGN,
        &[
            "Warning: EN001 spec.environment.environmentConfigs[0].reference: Unknown field",
            "write ref: {\"name\":\"example-environment\"}",
            "Warning: EN001 spec.environment.environmentConfigs[1].selector",
            "EN004 spec.environment.environmentConfigs[1].selector[0].matchLabels[1].value: Invalid value",
            "valueFromFieldPath",
            "Warning: EN009 spec.environment.patches[1].type",
        ],
    );
    let value = "\n              - type: Value\n                key: my-label\n                value: metadata.labels[my-label]";
    warns(
        ctx,
        "default",
        &FIRST_DESIGN.replace(value, ""),
        &["EN001", "Crossplane calls it ref", "write type: ToCompositeFieldPath"],
    );
}

fn each_rule_about_a_composition_alone_denies_and_accepts(ctx: &Context) {
    let selector = |fields: &str| format!("environmentConfigs:\n  - {{type: Selector, selector: {{{fields}}}}}\n");
    let stage = "matchLabels: [{key: stage, valueFromFieldPath: spec.parameters.stage}]";
    let pairs = [
        ("EN001", selector(""), selector(stage)),
        (
            "EN002",
            patch("{fromFieldPath: 'spec.list[0', toFieldPath: b}"),
            patch("{fromFieldPath: spec.region, toFieldPath: b}"),
        ),
        (
            "EN002",
            patch("{fromFieldPath: spec.region, toFieldPath: 'b[1025]'}"),
            patch("{fromFieldPath: spec.region, toFieldPath: 'b[1024]'}"),
        ),
        (
            "EN003",
            patch("{fromFieldPath: spec.region, transforms: [{type: string, string: {type: Format, fmt: '%s-%s'}}]}"),
            patch("{fromFieldPath: spec.region, transforms: [{type: string, string: {type: Format, fmt: '%s-'}}]}"),
        ),
        (
            "EN003",
            patch(
                "{fromFieldPath: spec.region, transforms: [{type: string, string: {type: Regexp, regexp: {match: a, group: -1}}}]}",
            ),
            patch(
                "{fromFieldPath: spec.region, transforms: [{type: string, string: {type: Regexp, regexp: {match: (a), group: 1}}}]}",
            ),
        ),
        ("EN004", selector("matchLabels: [{key: 'a b', valueFromFieldPath: spec.region}]"), selector(stage)),
        (
            "EN005",
            selector(&format!("mode: Multiple, minMatch: -1, maxMatch: 1, {stage}")),
            selector(&format!("mode: Multiple, minMatch: 1, maxMatch: 2, {stage}")),
        ),
    ];
    for (at, (rule, wrong, right)) in pairs.iter().enumerate() {
        let name = format!("text-{at}");
        rejects(ctx, "default", &composition(&name, wrong), &[rule, "spec.environment."]);
        accepts(ctx, "default", &composition(&name, right));
    }
    let status = patch("{type: ToCompositeFieldPath, fromFieldPath: a, toFieldPath: status.a}");
    warns(ctx, "default", &composition("text-status", &status), &["EN009", "status"]);
    let kind = "defaultData: {kind: mine}\n";
    warns(ctx, "default", &composition("text-kind", kind), &["EN007", "spec.environment.defaultData.kind"]);
}

fn functions_inputs_are_judged(ctx: &Context) {
    let resources_without_patches = "resources: [{name: one, base: {apiVersion: v1, kind: ConfigMap}}]";
    rejects(
        ctx,
        "default",
        &pipeline("fn-nil", "{environmentConfigs: [{type: Selector}, {}]}", resources_without_patches),
        &[
            "EN001 spec.pipeline[0].input.spec.environmentConfigs[0].selector: Required value",
            "EN001 spec.pipeline[0].input.spec.environmentConfigs[1].ref: Required value",
        ],
    );
    let selector = "matchLabels: [{key: stage, valueFromFieldPath: spec.parameters.stage}]";
    let misplaced = format!(
        "{{environmentConfigs: [{{type: Selector, maxMatch: 1, selector: {{mode: Multiple, maxMatches: 1, {selector}}}}}]}}"
    );
    warns(
        ctx,
        "default",
        &pipeline("fn-odd", &misplaced, resources_without_patches),
        &["EN009", "selector.maxMatch", "EN012", "write maxMatch"],
    );
    let format = "{fromFieldPath: spec.widgets, toFieldPath: n, transforms: [{type: string, string: {type: Format, fmt: '%d'}}]}";
    let resources = format!("environment: {{patches: [{format}]}}\n        resources: []");
    rejects(ctx, "default", &pipeline("fn-fmt", "{environmentConfigs: []}", &resources), &["EN003", "%!d(float64="]);
    let valid =
        format!("{{environmentConfigs: [{{type: Selector, selector: {{mode: Multiple, maxMatch: 1, {selector}}}}}]}}");
    accepts(ctx, "default", &pipeline("fn-right", &valid, resources_without_patches));
}

fn warns_about_missing_objects(ctx: &Context) {
    accepts(ctx, "default", &environment_config("v1beta1", "there-blue", "colour: blue", "{}"));
    let reference = |name: &str| composition("there", &format!("environmentConfigs: [{{ref: {{name: {name}}}}}]\n"));
    eventually(|| {
        let apply = ["apply", "--dry-run=server", "-f", "-"];
        let answer = ctx.cluster.kubectl().args(apply).stdin(reference("there-blu")).run().expect_success();
        answer.stderr.contains("similar names: there-blue").then_some(())
    });
    warns(ctx, "default", &reference("there-blu"), &["EN006", "EnvironmentConfig \"there-blu\" not found"]);
    accepts(ctx, "default", &reference("there-blue"));
    let selector =
        "environmentConfigs: [{type: Selector, selector: {matchLabels: [{type: Value, key: colour, value: bleu}]}}]\n";
    warns(ctx, "default", &composition("there-by-label", selector), &["EN006", "existing values of colour: blue"]);
}

fn a_composite_gets_references_and_patches(ctx: &Context) {
    prepare_composites(ctx);
    accepts(ctx, "default", &environment_config("v1beta1", "carried", "", "{region: eu-7}"));
    let environment = "environmentConfigs: [{ref: {name: carried}}]\npatches:\n  - {type: ToCompositeFieldPath, fromFieldPath: region, toFieldPath: spec.region}\n";
    accepts(ctx, "default", &composition("carries", environment));
    let yaml = composite("carries", "carries", "  widgets: 1\n");
    let expected = [
        ("/spec/environmentConfigRefs/0/name", json!("carried")),
        ("/spec/region", json!("eu-7")),
        ("/status", Value::Null),
    ];
    eventually(|| {
        let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        ctx.cluster.kubectl().args(create).stdin(&yaml).run().stdout.contains("eu-7").then_some(())
    });
    patches(ctx, "default", &yaml, &expected);
    // A second application changes nothing.
    let version = || kubectl(ctx, &["get", "xexample", "carries", "-o", "jsonpath={.metadata.resourceVersion}"]).stdout;
    let before = version();
    patches(ctx, "default", &yaml, &expected);
    assert_eq!(version(), before, "the composite must not be written again");
}

fn a_composite_of_a_function_pipeline_gets_patches(ctx: &Context) {
    prepare_composites(ctx);
    accepts(ctx, "default", &environment_config("v1beta1", "functional", "", "{region: us-1}"));
    let resources = "resources: [{name: settings, base: {apiVersion: v1, kind: ConfigMap}, patches: [{type: FromEnvironmentFieldPath, fromFieldPath: region, toFieldPath: data.region}]}]";
    accepts(
        ctx,
        "default",
        &pipeline("functional", "{environmentConfigs: [{type: Reference, ref: {name: functional}}]}", resources),
    );
    let yaml = composite("functional", "functional", "");
    eventually(|| {
        let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        ctx.cluster.kubectl().args(create).stdin(&yaml).run().stdout.contains("us-1").then_some(())
    });
    let patch = r#"{"settings":[{"op":"add","path":"/data","value":{"region":"us-1"}}]}"#;
    patches(
        ctx,
        "default",
        &yaml,
        &[
            ("/metadata/annotations/portcullis.dev~1environment-patches", json!(patch)),
            ("/spec/environmentConfigRefs", Value::Null),
        ],
    );
}

fn a_composite_refers_only_to_selected_configs(ctx: &Context) {
    prepare_composites(ctx);
    for name in ["allowed", "secret"] {
        accepts(ctx, "default", &environment_config("v1beta1", name, "", "{a: b}"));
    }
    accepts(ctx, "default", &composition("selecting", "environmentConfigs: [{ref: {name: allowed}}]\n"));
    let with = |name: &str| {
        let reference =
            format!("{{apiVersion: apiextensions.crossplane.io/v1alpha1, kind: EnvironmentConfig, name: {name}}}");
        composite("refers", "selecting", &format!("  environmentConfigRefs: [{reference}]\n"))
    };
    eventually(|| {
        let create = ["create", "--dry-run=server", "-f", "-"];
        ctx.cluster.kubectl().args(create).stdin(with("secret")).run().stderr.contains("EN011").then_some(())
    });
    warns(
        ctx,
        "default",
        &with("secret"),
        &["EN011 spec.environmentConfigRefs[0].name", "does not select EnvironmentConfig \"secret\""],
    );
    accepts(ctx, "default", &with("allowed"));
}

fn warns_about_patches_without_a_value(ctx: &Context) {
    prepare_composites(ctx);
    accepts(ctx, "default", &environment_config("v1beta1", "shapes-a", "", "{network: {vpc: a}}"));
    accepts(ctx, "default", &environment_config("v1beta1", "shapes-b", "", "{network: flat}"));
    let sources = |names: &str| {
        format!(
            "environmentConfigs: [{names}]\n{}",
            patch("{type: ToCompositeFieldPath, fromFieldPath: network.vcp, toFieldPath: spec.region}")
        )
    };
    accepts(ctx, "default", &composition("misspelled", &sources("{ref: {name: shapes-a}}")));
    let both = sources("{ref: {name: shapes-a}}, {ref: {name: shapes-b}}");
    warns(ctx, "default", &composition("conflicting", &both), &["EN008", "network: not an object"]);
    for (composition, rule, words) in
        [("misspelled", "EN008", "network has vpc"), ("conflicting", "EN007", "which replaces it")]
    {
        eventually(|| {
            let create = ["create", "--dry-run=server", "-f", "-"];
            let answer = ctx.cluster.kubectl().args(create).stdin(composite("finds", composition, "")).run().stderr;
            (answer.contains(rule) && answer.contains(words)).then_some(())
        });
    }
}

fn denies_deletion_of_an_environment_config_in_use(ctx: &Context) {
    prepare_composites(ctx);
    accepts(ctx, "default", &environment_config("v1beta1", "used", "tier: gold", "{a: b}"));
    let selector = "environmentConfigs: [{type: Selector, selector: {matchLabels: [{key: tier, valueFromFieldPath: spec.parameters.stage}]}}]\n";
    accepts(ctx, "default", &composition("user", selector));
    accepts(ctx, "default", &composite("used-by", "user", "  parameters: {stage: gold}\n"));
    let delete = ["delete", "environmentconfig", "used"];
    let dry_run: Vec<_> = delete.iter().copied().chain(["--dry-run=server"]).collect();
    let denial = eventually(|| {
        let answer = kubectl(ctx, &dry_run);
        (!answer.status.success()).then_some(answer.stderr)
    });
    assert!(denial.contains("EN010") && denial.contains("XExample \"used-by\""), "{denial}");
    assert!(!kubectl(ctx, &delete).status.success());
    // The composite refers to the EnvironmentConfig by name, so a change of its labels is accepted. For a Composition
    // that selects an EnvironmentConfig by its labels, such a change causes a warning.
    accepts(ctx, "default", &environment_config("v1beta1", "used", "tier: silver", "{a: b}"));
    let label = |tier: &str| environment_config("v1beta1", "labelled", &format!("tier: {tier}"), "{a: b}");
    accepts(ctx, "default", &label("copper"));
    let selector =
        "environmentConfigs: [{type: Selector, selector: {matchLabels: [{type: Value, key: tier, value: copper}]}}]\n";
    ctx.cluster.kubectl().args(["apply", "-f", "-"]).stdin(composition("labels", selector)).run().expect_success();
    eventually(|| {
        let apply = ["apply", "--dry-run=server", "-f", "-"];
        let answer = ctx.cluster.kubectl().args(apply).stdin(label("tin")).run().stderr;
        answer.contains("with these labels Composition \"labels\" breaks").then_some(())
    });
    warns(ctx, "default", &label("tin"), &["EN010", "with these labels Composition \"labels\" breaks"]);
    kubectl(ctx, &["delete", "xexample", "used-by"]).expect_success();
    eventually(|| kubectl(ctx, &delete).status.success().then_some(()));
}

fn the_registration_is_updated_when_definitions_change(ctx: &Context) {
    prepare_composites(ctx);
    let ns = ctx.cluster.namespace("composites");
    // The controller manager runs with its own rights, which are restricted to the webhook configurations for
    // composites.
    let _lock = RELEASE_LEASE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let options = Options { arguments: &["--composites"], ..Options::new(&ctx.cluster, &ns) };
    let _manager = options.start(&ctx.cluster);
    let other = DEFINITION
        .replace("xexamples.demo.org", "xothers.demo.org")
        .replace("XExample", "XOther")
        .replace("xexamples", "xothers");
    accepts(ctx, "default", &other);
    let resources = || {
        let path = "jsonpath={.webhooks[*].rules[*].resources}";
        kubectl(ctx, &["get", "mutatingwebhookconfiguration", "portcullis-composites", "-o", path]).stdout
    };
    eventually(|| (resources() == r#"["xexamples","xothers"]"#).then_some(()));
    kubectl(ctx, &["label", "xrd", "xothers.demo.org", "portcullis.dev/composites-"]).expect_success();
    eventually(|| (resources() == r#"["xexamples"]"#).then_some(()));
}

fn both_versions_of_environment_configs_are_judged(ctx: &Context) {
    for version in ["v1alpha1", "v1beta1"] {
        let name = format!("version-{version}");
        warns(ctx, "default", &environment_config(version, &name, "", "{kind: mine}"), &["EN007", "data.kind"]);
        accepts(ctx, "default", &environment_config(version, &name, "", "{sort: mine}"));
        kubectl(ctx, &["delete", "environmentconfig", &name]).expect_success();
    }
}

fn an_environment_is_explained_from_the_cluster(ctx: &Context) {
    prepare_composites(ctx);
    accepts(ctx, "default", &environment_config("v1beta1", "shown-a", "", "{region: eu-1, size: 1}"));
    accepts(ctx, "default", &environment_config("v1beta1", "shown-b", "", "{region: eu-2}"));
    let environment = "environmentConfigs: [{ref: {name: shown-a}}, {ref: {name: shown-b}}]\npatches:\n  - {type: \
                       ToCompositeFieldPath, fromFieldPath: region, toFieldPath: spec.region}\n";
    ctx.cluster.kubectl().args(["apply", "-f", "-"]).stdin(composition("shown", environment)).run().expect_success();
    ctx.cluster.kubectl().args(["apply", "-f", "-"]).stdin(composite("shown", "shown", "")).run().expect_success();
    let explain = |output: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.args(["explain", "environment", "shown", "--output", output, "--kubeconfig"]);
        let answer = command.arg(ctx.cluster.kubeconfig(User::Admin)).output().expect("portcullis runs");
        assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
        String::from_utf8(answer.stdout).expect("portcullis writes UTF-8")
    };
    let reported: Value = serde_json::from_str(&explain("json")).expect("portcullis writes JSON");
    let reported = &reported[0];
    assert_eq!((&reported["composition"], &reported["failure"]), (&json!("shown"), &Value::Null), "{reported}");
    assert_eq!(reported["environment"]["region"], "eu-2");
    let keys = reported["steps"][0]["merged"]["keys"].as_array().expect("keys are a list");
    let region = keys.iter().find(|key| key["path"] == "region").expect("the environment has a region");
    assert!(region["from"].as_str().is_some_and(|from| from.contains("shown-b")), "{region}");
    assert_eq!(region["replaced"][0]["value"], "eu-1", "{region}");
    assert_eq!(reported["steps"][1]["patches"][0]["ending"], "written", "{reported}");
    let drawing = explain("svg");
    assert!(drawing.starts_with("<svg ") && drawing.contains("shown-a") && drawing.contains("shown-b"), "{drawing}");
    let text = explain("text");
    assert!(["shown-a", "shown-b", "eu-2"].iter().all(|word| text.contains(word)), "{text}");
}
