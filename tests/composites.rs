//! Tests of admission requests for composites, with native environments and with function pipelines. The tests check
//! which references and values Portcullis writes into the composites, and which findings it reports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::collections::HashSet;
use std::sync::Arc;

use cases::{Case, objects};
use futures::executor::block_on;
use portcullis::admission::{Finding, Operation, Phase};
use portcullis::catalog::Coverage;
use portcullis::config;
use portcullis::crossplane::impact::MAX_ASSESSED;
use portcullis::crossplane::structural::Structural;
use portcullis::gate::{Gate, Policy, Registry};
use portcullis::rule::Mode;
use proptest::prelude::*;
use serde_json::{Value, json};

const DEFINITION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xexamples.example.org, labels: {portcullis.dev/composites: \"true\"}}
spec:
  group: example.org
  names: {kind: XExample, plural: xexamples}
  versions: [{name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {
    type: object, properties: {stage: {type: string}, region: {type: string}, zone: {type: string}, subnet: {type: string},
    count: {type: integer}}}}}}}]
";

const CONFIGS: &str = "
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: base, resourceVersion: \"1\"}
data: {region: eu-1, network: {vpc: vpc-1}, size: 3}
---
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: prod, resourceVersion: \"2\", labels: {stage: prod}}
data: {network: {subnet: subnet-7}, region: eu-2}
";

const NATIVE: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: example, resourceVersion: \"9\"}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XExample}
  environment:
    environmentConfigs:
      - {type: Reference, ref: {name: base}}
      - type: Selector
        selector: {matchLabels: [{type: FromCompositeFieldPath, key: stage, valueFromFieldPath: spec.stage}]}
    patches:
      - {type: ToCompositeFieldPath, fromFieldPath: region, toFieldPath: spec.region}
      - {type: ToCompositeFieldPath, fromFieldPath: network.vpc, toFieldPath: \"metadata.labels[example.org/vpc]\"}
      - {type: ToCompositeFieldPath, fromFieldPath: region, toFieldPath: metadata.name}
      - {type: ToCompositeFieldPath, fromFieldPath: region, toFieldPath: status.region}
  resources:
    - name: bucket
      base: {apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: b}}}
      patches:
        - {type: FromEnvironmentFieldPath, fromFieldPath: network.subnet, toFieldPath: data.subnet}
        - {type: FromCompositeFieldPath, fromFieldPath: spec.stage, toFieldPath: data.stage}
";

const FUNCTION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: example, resourceVersion: \"9\"}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XExample}
  mode: Pipeline
  pipeline:
    - step: environment
      functionRef: {name: function-environment-configs}
      input:
        apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
        kind: Input
        spec:
          environmentConfigs:
            - {type: Reference, ref: {name: base}}
            - type: Selector
              selector: {matchLabels: [{type: FromCompositeFieldPath, key: stage, valueFromFieldPath: spec.stage}]}
    - step: resources
      functionRef: {name: function-patch-and-transform}
      input:
        apiVersion: pt.fn.crossplane.io/v1beta1
        kind: Resources
        environment:
          patches: [{type: ToCompositeFieldPath, fromFieldPath: region, toFieldPath: spec.region}]
        resources:
          - name: bucket
            base: {apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: b}}}
            patches: [{type: FromEnvironmentFieldPath, fromFieldPath: network.subnet, toFieldPath: data.subnet}]
    - step: ready
      functionRef: {name: function-auto-ready}
";

fn composite(spec: Value) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "XExample", "metadata": {"name": "mine"}, "spec": spec})
}

fn stored(composition: &str) -> Vec<Value> {
    [DEFINITION, CONFIGS, composition].iter().flat_map(|text| objects(text)).collect()
}

/// Returns a policy with which Portcullis writes values to composites of `xexamples.example.org`, both from native
/// environments and from functions.
fn writing_policy() -> Policy {
    let text = "environmentConfigs: {native: enabled, writesTo: [xexamples.example.org]}\n";
    config::parse(text, "test", &Registry::standard()).unwrap()
}

fn case(object: Value, composition: &str) -> Case {
    Case::new(Operation::Create, object).stored(stored(composition)).policy(writing_policy())
}

/// Returns the object of `case` after the patch of the mutators is applied.
fn mutated(case: &Case) -> Value {
    let mut object = case.object.clone();
    if let Some(patch) = case.decide(Phase::Mutate).patch {
        json_patch::patch(&mut object, &patch).unwrap();
    }
    object
}

fn annotation(object: &Value, name: &str) -> Value {
    let text = object["metadata"]["annotations"][format!("portcullis.dev/{name}")].as_str();
    text.map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

#[test]
fn writes_references_and_values_where_allowed() {
    let object = mutated(&case(composite(json!({"stage": "prod"})), NATIVE));
    let reference =
        |name| json!({"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "EnvironmentConfig", "name": name});
    let spec =
        json!({"stage": "prod", "region": "eu-2", "environmentConfigRefs": [reference("base"), reference("prod")]});
    assert_eq!(object["spec"], spec);
    assert_eq!(object["metadata"]["labels"], json!({"example.org/vpc": "vpc-1"}));
    assert_eq!((&object["metadata"]["name"], &object["status"]), (&json!("mine"), &Value::Null));
    assert_eq!(
        annotation(&object, "environment-patches"),
        json!({"bucket": [{"op": "add", "path": "/data", "value": {"subnet": "subnet-7"}}]})
    );
    assert_eq!(
        annotation(&object, "environment-source"),
        json!({"profile": "native-1.17", "composition": {"name": "example", "resourceVersion": "9"},
               "environmentConfigs": [{"name": "base", "resourceVersion": "1"}, {"name": "prod", "resourceVersion": "2"}]})
    );
}

/// Regression test for issue 18 (Crossplane, item 5): functions write values to the composite, but Crossplane applies
/// only the values in `status`. So Portcullis writes the other values only if the configuration allows it.
#[test]
fn writes_values_of_functions_only_if_configured() {
    let object = composite(json!({"stage": "prod", "region": "mine"}));
    let admit = |stored: Vec<Value>, policy| {
        mutated(&Case::new(Operation::Create, object.clone()).stored(stored).policy(policy))
    };
    let own = admit(stored(FUNCTION), Policy::default());
    assert_eq!(own["spec"], object["spec"]);
    assert_ne!(annotation(&own, "environment-patches"), Value::Null);
    assert_eq!(admit(stored(FUNCTION), writing_policy())["spec"]["region"], "eu-2");
    let chosen = DEFINITION.replace("labels:", "annotations: {portcullis.dev/environment-writes: \"true\"}, labels:");
    let stored: Vec<Value> = [&chosen, CONFIGS, FUNCTION].iter().flat_map(|text| objects(text)).collect();
    assert_eq!(admit(stored, Policy::default())["spec"]["region"], "eu-2");
}

/// Regression test for issue 18 (Crossplane, item 5): the cluster does not show whether Crossplane runs with the flag
/// `--enable-environment-configs`. Portcullis detects the flag by the references that Crossplane writes to composites.
#[test]
fn writes_native_environments_if_the_flag_is_detected() {
    let object = composite(json!({"stage": "prod"}));
    let admit = |stored: Vec<Value>, text: &str| {
        let policy = config::parse(text, "test", &Registry::standard()).unwrap();
        mutated(&Case::new(Operation::Create, object.clone()).stored(stored).policy(policy))
    };
    let not_detected = admit(stored(NATIVE), "");
    assert_eq!(not_detected["spec"], object["spec"]);
    assert_ne!(annotation(&not_detected, "environment-patches"), Value::Null);
    let mut detected = stored(NATIVE);
    let mut other = composite(json!({"stage": "prod", "environmentConfigRefs": [{"name": "base"}]}));
    other["metadata"]["name"] = json!("other");
    detected.push(other);
    assert_eq!(admit(detected.clone(), "")["spec"]["region"], "eu-2");
    assert_eq!(admit(detected, "environmentConfigs: {native: disabled}\n"), object);
    assert_eq!(admit(stored(NATIVE), "environmentConfigs: {native: enabled}\n")["spec"]["region"], "eu-2");
}

/// Regression test for issue 18 (Crossplane, item 1): the API server prunes a field that the schema lacks. If
/// Portcullis wrote such a field, every later request would change the composite again.
#[test]
fn fields_that_the_schema_prunes_are_never_written() {
    let pruned = NATIVE.replace("toFieldPath: spec.region", "toFieldPath: spec.settings.region");
    for operation in [Operation::Create, Operation::Update] {
        let object = composite(json!({"stage": "prod"}));
        let case = match operation {
            Operation::Create => case(object.clone(), &pruned),
            _ => case(object.clone(), &pruned).update(object.clone()),
        };
        let once = mutated(&case);
        assert_eq!(once["spec"].get("settings"), None, "{operation:?}");
        let kept = as_stored(&once, &objects(DEFINITION)[0]);
        assert_eq!(self::case(kept.clone(), &pruned).update(kept).decide(Phase::Mutate).patch, None);
    }
    let reported = found(&case(objects(&pruned).remove(0), &pruned));
    let expected = "EN013 warn EN013 spec.environment.patches[0].toFieldPath: the composite's schema lacks this field, so the API \
                    server drops the value; spec has";
    assert!(reported.iter().any(|line| line.starts_with(expected)), "{reported:?}");
    let reported = found(&case(composite(json!({"stage": "prod"})), &pruned));
    let expected = "EN013 warn EN013 Composition \"example\", spec.environment.patches[0]: it writes spec.settings.region, but the \
                    composite's schema lacks the field";
    assert!(reported.iter().any(|line| line.starts_with(expected)), "{reported:?}");
}

/// Regression test for issue 18 (Crossplane, item 1): a patch may read fields in `metadata` that the API server sets,
/// such as the resource version. Portcullis does not write their values into the composite, because they may change
/// with every request.
#[test]
fn does_not_write_metadata_that_the_api_server_sets() {
    let reading = NATIVE
        .replace("fromFieldPath: spec.stage, toFieldPath: data.stage", "fromFieldPath: metadata, toFieldPath: data.all")
        .replace(
            "- {type: ToCompositeFieldPath, fromFieldPath: region, toFieldPath: spec.region}",
            "- {type: FromCompositeFieldPath, fromFieldPath: metadata, toFieldPath: network.subnet}",
        );
    let once = mutated(&case(composite(json!({"stage": "prod"})), &reading));
    let kept = as_stored(&once, &objects(DEFINITION)[0]);
    assert_eq!(case(kept.clone(), &reading).update(kept).decide(Phase::Mutate).patch, None);
}

/// Regression test for issue 18 (Crossplane, item 6): if Portcullis wrote a value that the schema rejects, the
/// request would fail, although the author of the composite did not write the value.
#[test]
fn never_writes_values_that_the_schema_rejects() {
    let refused = [
        (
            "fromFieldPath: network, toFieldPath: spec.zone",
            "spec.zone: must be of type string: {\"subnet\":\"subnet-7\",\"vpc\":\"vpc-1\"}",
        ),
        ("fromFieldPath: region, toFieldPath: \"spec.zones[2]\"", "spec.zones[0]: must be of type string: null"),
        ("fromFieldPath: region, toFieldPath: spec.count", "spec.count: must be of type integer: \"eu-2\""),
        ("fromFieldPath: network, toFieldPath: metadata.labels.network", "is not a valid value of label network"),
    ];
    let definition =
        DEFINITION.replace("zone: {type: string}", "zone: {type: string}, zones: {type: array, items: {type: string}}");
    for (patch, why) in refused {
        let composition = NATIVE.replace("fromFieldPath: region, toFieldPath: spec.region", patch);
        let stored: Vec<Value> = [&definition, CONFIGS, &composition].iter().flat_map(|text| objects(text)).collect();
        let object = composite(json!({"stage": "prod"}));
        let case = Case::new(Operation::Create, object).stored(stored).policy(writing_policy());
        let written = mutated(&case);
        assert_eq!(written["spec"].as_object().unwrap().len(), 2, "{written}");
        assert_eq!(written["metadata"]["labels"], json!({"example.org/vpc": "vpc-1"}), "the rest is written");
        let reported = found(&case);
        let expected = "EN013 warn EN013 Composition \"example\", spec.environment.patches[0]: it writes ";
        assert!(reported.iter().any(|line| line.starts_with(expected) && line.contains(why)), "{reported:?}");
    }
}

/// Regression test for issue 18 (Crossplane, item 3): in mode Pipeline, Crossplane never stores the references of a
/// native environment, so it selects EnvironmentConfigs each time, even with the policy `IfNotPresent`.
#[test]
fn native_environments_in_mode_pipeline_have_no_references() {
    let pipeline = NATIVE.split("    patches:").next().unwrap().to_owned()
        + "  mode: Pipeline\n  pipeline: [{step: ready, functionRef: {name: function-auto-ready}}]\n";
    let object = composite(json!({"stage": "prod"}));
    assert_eq!(mutated(&case(object.clone(), &pipeline)), object);
}

/// Regression test for issue 18 (Crossplane, item 4): Portcullis writes an optional reference even if the
/// EnvironmentConfig is missing, and keeps the reference in later requests. As soon as the EnvironmentConfig exists,
/// Portcullis uses its data.
#[test]
fn keeps_optional_references_to_missing_objects() {
    let optional = NATIVE
        .replace(
            "    patches:\n      - {type: ToComp",
            "    policy: {resolution: Optional}\n    patches:\n      - {type: ToComp",
        )
        .replace(
            "{type: Reference, ref: {name: base}}",
            "{type: Reference, ref: {name: base}}\n      - {type: Reference, ref: {name: nope}}",
        );
    let names = |stored: Vec<Value>, object: Value| {
        let object = mutated(&Case::new(Operation::Create, object).stored(stored).policy(writing_policy()));
        let refs = object["spec"]["environmentConfigRefs"].as_array().unwrap().iter();
        (refs.map(|reference| reference["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), object)
    };
    let (first, object) = names(stored(&optional), composite(json!({"stage": "prod"})));
    assert_eq!(first, ["base", "nope", "prod"]);
    let mut later = stored(&optional);
    later.push(config("nope", json!({}), json!({"network": {"subnet": "late"}})));
    let (kept, object) = names(later, object);
    assert_eq!(kept, first);
    assert_eq!(annotation(&object, "environment-source")["environmentConfigs"].as_array().unwrap().len(), 3);
}

/// Returns a CompositionRevision of the Composition `example`, with the spec in the YAML text `composition`.
fn revision(name: &str, number: u64, channel: &str, composition: &str) -> Value {
    let composition = objects(composition).remove(0);
    let mut spec = composition["spec"].clone();
    spec["revision"] = json!(number);
    json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositionRevision", "spec": spec,
           "metadata": {"name": name, "resourceVersion": "5", "labels": {"crossplane.io/composition-name": "example", "channel": channel}}})
}

/// Returns a Composition as YAML, and the stored objects, which include the Composition and its three revisions. The
/// Composition and its newest revision do not refer to the EnvironmentConfig `base`; the two older revisions do.
fn revised() -> (String, Vec<Value>) {
    let current = NATIVE
        .replace("metadata: {name: example,", "metadata: {name: example, labels: {channel: next},")
        .replace("      - {type: Reference, ref: {name: base}}\n", "")
        .replace("fromFieldPath: network.vpc", "fromFieldPath: network.subnet");
    let old = NATIVE.replace("toFieldPath: spec.region", "toFieldPath: spec.zone");
    let mut stored = stored(&current);
    stored.push(revision("example-1", 1, "stable", NATIVE));
    stored.push(revision("example-2", 2, "stable", &old));
    stored.push(revision("example-3", 3, "next", &current));
    (current, stored)
}

/// Regression test for issue 18 (Crossplane, item 2): Portcullis must compute the environment from the
/// CompositionRevision that the composite uses.
#[test]
fn the_environment_is_that_of_the_revision() {
    let (_, stored) = revised();
    let admit = |spec: Value| {
        let object = composite(spec);
        mutated(&Case::new(Operation::Create, object).stored(stored.clone()).policy(writing_policy()))
    };
    let refs = |object: &Value| object["spec"]["environmentConfigRefs"].as_array().map(Vec::len);
    let reference = json!({"name": "example"});
    let newest = admit(json!({"stage": "prod", "compositionRef": reference}));
    assert_eq!((refs(&newest), &newest["spec"]["region"]), (Some(1), &json!("eu-2")));
    let pinned = json!({"stage": "prod", "compositionRef": reference, "compositionUpdatePolicy": "Manual",
                        "compositionRevisionRef": {"name": "example-1"}});
    let pinned = admit(pinned);
    assert_eq!((refs(&pinned), &pinned["spec"]["region"]), (Some(2), &json!("eu-2")));
    assert_eq!(
        annotation(&pinned, "environment-source")["compositionRevision"],
        json!({"name": "example-1", "resourceVersion": "5"})
    );
    let channel = |name: &str| {
        admit(
            json!({"stage": "prod", "compositionRef": reference, "compositionRevisionSelector": {"matchLabels": {"channel": name}}}),
        )
    };
    let stable = channel("stable");
    assert_eq!((refs(&stable), &stable["spec"]["zone"], stable["spec"].get("region")), (Some(2), &json!("eu-2"), None));
    assert_eq!(refs(&channel("next")), Some(1));
    assert_eq!(refs(&channel("none")), None, "no revision has this label");
    let ignored =
        json!({"stage": "prod", "compositionRef": reference, "compositionRevisionRef": {"name": "example-1"}});
    assert_eq!(refs(&admit(ignored)), Some(1), "under Automatic the reference is replaced");
    let missing = json!({"stage": "prod", "compositionRef": reference, "compositionUpdatePolicy": "Manual",
                         "compositionRevisionRef": {"name": "example-9"}});
    assert_eq!(refs(&admit(missing)), None);
}

/// Regression test for issue 18 (Crossplane, item 2): an EnvironmentConfig is in use only if a composite uses a
/// CompositionRevision that requires the EnvironmentConfig.
#[test]
fn users_of_an_environment_config_are_those_of_revisions() {
    let (_, mut stored) = revised();
    let pinned =
        composite(json!({"stage": "prod", "compositionRef": {"name": "example"}, "compositionUpdatePolicy": "Manual",
                                  "compositionRevisionRef": {"name": "example-1"}}));
    assert_eq!(deletion_findings("base", stored.clone()), Vec::<String>::new(), "no composite uses an old revision");
    stored.push(pinned.clone());
    assert_eq!(
        deletion_findings("base", stored.clone()),
        ["EN010 deny EN010 EnvironmentConfig \"base\" is required by XExample \"mine\""]
    );
    let reported = found(
        &Case::new(Operation::Create, pinned)
            .stored(stored.iter().filter(|one| one["metadata"]["name"] != "base").cloned().collect()),
    );
    assert!(
        reported
            .iter()
            .any(|line| line.starts_with("EN006 warn EN006 CompositionRevision \"example-1\", spec.environment")),
        "{reported:?}"
    );
    stored.pop();
    stored.push(composite(json!({"stage": "prod", "compositionRef": {"name": "example"}})));
    assert_eq!(deletion_findings("base", stored), Vec::<String>::new(), "the composite's revision does not need it");
}

#[test]
fn functions_have_no_references() {
    let object = mutated(&case(composite(json!({"stage": "prod"})), FUNCTION));
    assert_eq!(object["spec"], json!({"stage": "prod", "region": "eu-2"}));
    assert_eq!(
        annotation(&object, "environment-patches"),
        json!({"bucket": [{"op": "add", "path": "/data", "value": {"subnet": "subnet-7"}}]})
    );
    assert_eq!(annotation(&object, "environment-source")["profile"], "function");
}

#[test]
fn mutation_is_idempotent_in_both_phases() {
    for composition in [NATIVE, FUNCTION] {
        let once = mutated(&case(composite(json!({"stage": "prod"})), composition));
        assert_eq!(case(once, composition).decide(Phase::Mutate).patch, None);
    }
}

#[test]
fn leaves_growing_values_to_crossplane() {
    let growing = NATIVE.replace(
        "- {type: ToCompositeFieldPath, fromFieldPath: region, toFieldPath: spec.region}",
        "- {type: FromCompositeFieldPath, fromFieldPath: spec.count, toFieldPath: count, transforms: [{type: math, math: \
         {type: Multiply, multiply: 2}}]}\n      - {type: ToCompositeFieldPath, fromFieldPath: count, toFieldPath: spec.count}",
    );
    let case = case(composite(json!({"stage": "prod", "count": 1})), &growing);
    assert_eq!(mutated(&case)["spec"]["count"], 1);
    assert!(case.decide(Phase::Mutate).notices[0].contains("applying them twice gives a different result"));
}

#[test]
fn keeps_existing_references() {
    let refs =
        json!([{"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "EnvironmentConfig", "name": "base"}]);
    let object = composite(json!({"stage": "prod", "environmentConfigRefs": refs}));
    let object = mutated(&case(object, NATIVE));
    assert_eq!((&object["spec"]["environmentConfigRefs"], &object["spec"]["region"]), (&refs, &json!("eu-1")));
}

#[test]
fn writes_nothing_after_failures_or_with_unknown_values() {
    let failing = case(composite(json!({"stage": "missing"})), NATIVE);
    assert_eq!(failing.decide(Phase::Mutate).patch, None);
    let other = "    - step: other\n      functionRef: {name: function-of-ours}\n    - step: resources";
    let uncertain = FUNCTION.replace("    - step: resources", other);
    assert_eq!(case(composite(json!({"stage": "prod"})), &uncertain).decide(Phase::Mutate).patch, None);
}

#[test]
fn mode_annotate_does_not_change_the_composite() {
    let mut policy = writing_policy();
    policy.modes.insert("environments".to_owned(), Mode::Annotate);
    let object = mutated(&case(composite(json!({"stage": "prod"})), NATIVE).policy(policy));
    assert_eq!(object["spec"], json!({"stage": "prod"}));
    assert_ne!(annotation(&object, "environment-patches"), Value::Null);
}

#[test]
fn handles_only_composites_of_selected_definitions() {
    let unlabelled: Vec<Value> =
        [&DEFINITION.replace("\"true\"", "\"false\""), CONFIGS, NATIVE].iter().flat_map(|text| objects(text)).collect();
    let case = || Case::new(Operation::Create, composite(json!({"stage": "prod"}))).stored(unlabelled.clone());
    assert_eq!(case().decide(Phase::Mutate).patch, None);
    let policy = Policy { composites: HashSet::from(["xexamples.example.org".to_owned()]), ..Policy::default() };
    assert!(case().policy(policy).decide(Phase::Mutate).patch.is_some());
}

#[test]
fn selects_the_same_composition_as_crossplane() {
    let other = NATIVE
        .replace("metadata: {name: example,", "metadata: {name: other, labels: {kind: other},")
        .replace("toFieldPath: spec.region", "toFieldPath: spec.zone");
    let mut stored = stored(NATIVE);
    stored.extend(objects(&other));
    let region = |spec: Value| {
        let object =
            mutated(&Case::new(Operation::Create, composite(spec)).stored(stored.clone()).policy(writing_policy()));
        (object["spec"]["region"].clone(), object["spec"]["zone"].clone())
    };
    let (eu, none) = (json!("eu-2"), Value::Null);
    assert_eq!(region(json!({"stage": "prod"})), (none.clone(), none.clone()), "Crossplane takes one at random");
    assert_eq!(region(json!({"stage": "prod", "compositionRef": {"name": "example"}})), (eu.clone(), none.clone()));
    let selector = json!({"stage": "prod", "compositionSelector": {"matchLabels": {"kind": "other"}}});
    assert_eq!(region(selector), (none, eu));
}

/// Returns the findings of levels `warn` and `deny`.
fn found(case: &Case) -> Vec<String> {
    recorded(case).into_iter().filter(|line| !line.contains(" audit ")).collect()
}

fn recorded(case: &Case) -> Vec<String> {
    let line = |finding: &Finding| format!("{} {} {}", finding.rule, finding.level, finding.headline());
    case.decide(Phase::Validate).findings.iter().map(line).collect()
}

#[test]
fn warns_about_references_without_a_source() {
    let with =
        |name: &str| composite(json!({"stage": "prod", "environmentConfigRefs": [{"name": "base"}, {"name": name}]}));
    assert_eq!(found(&case(with("prod"), NATIVE)), Vec::<String>::new());
    let mut secret = stored(NATIVE);
    secret.extend(objects("apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig\nmetadata: {name: secret}\ndata: {}\n"));
    let case = Case::new(Operation::Create, with("secret")).stored(secret);
    let refused: Vec<_> = found(&case).into_iter().filter(|line| line.starts_with("EN011 ")).collect();
    assert!(
        refused.len() == 1 && refused[0].starts_with("EN011 warn EN011 spec.environmentConfigRefs[1].name"),
        "{refused:?}"
    );
    let kept = Case::new(Operation::Create, with("secret")).stored(case.stored.clone()).update(with("secret"));
    assert!(kept.decide(Phase::Validate).is_allowed());
}

fn deletion_findings(name: &str, stored: Vec<Value>) -> Vec<String> {
    let config =
        stored.iter().find(|object| object["metadata"]["name"] == name && object["kind"] == "EnvironmentConfig");
    found(&Case::new(Operation::Delete, config.unwrap().clone()).stored(stored))
}

#[test]
fn users_of_an_environment_config_are_named() {
    let mut stored = stored(NATIVE);
    assert_eq!(
        deletion_findings("base", stored.clone()),
        [
            "EN010 warn EN010 EnvironmentConfig \"base\" is selected by Composition \"example\", which no known composite uses"
        ]
    );
    let unknown: Vec<Value> =
        stored.iter().filter(|one| one["kind"] != "CompositeResourceDefinition").cloned().collect();
    assert_eq!(
        deletion_findings("base", unknown),
        ["EN010 deny EN010 EnvironmentConfig \"base\" is required by Composition \"example\""]
    );
    stored.push(composite(json!({"stage": "prod", "compositionRef": {"name": "example"}})));
    assert_eq!(
        deletion_findings("prod", stored.clone()),
        ["EN010 deny EN010 EnvironmentConfig \"prod\" is required by XExample \"mine\""]
    );
    let config = stored.iter().find(|object| object["metadata"]["name"] == "prod").unwrap().clone();
    let mut relabelled = config.clone();
    relabelled["metadata"]["labels"] = json!({"stage": "production"});
    let case = Case::new(Operation::Create, relabelled).stored(stored).update(config);
    assert_eq!(
        found(&case),
        [
            "EN010 warn EN010 metadata.labels: with these labels XExample \"mine\" breaks: cannot select environment: failed to \
          build reference at index 1: only 1 EnvironmentConfig can be selected in Single mode, found: 0"
        ]
    );
}

#[test]
fn warns_about_one_of_several_compositions() {
    let many = NATIVE.replace("selector: {matchLabels:", "selector: {mode: Multiple, minMatch: 1, matchLabels:");
    let mut stored = stored(&many);
    stored.push(composite(json!({"stage": "prod", "compositionRef": {"name": "example"}})));
    assert!(deletion_findings("prod", stored.clone())[0].starts_with("EN010 deny"));
    stored.extend(objects("apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig\nmetadata: {name: prod2, labels: {stage: prod}}\ndata: {}\n"));
    assert_eq!(
        deletion_findings("prod", stored),
        ["EN010 warn EN010 EnvironmentConfig \"prod\" is merged for XExample \"mine\"; its data will be missing there"]
    );
}

#[test]
fn reports_values_that_a_composite_cannot_get() {
    let found = found(&case(composite(json!({"stage": "prd"})), NATIVE));
    assert_eq!(
        found,
        [
            "EN006 warn EN006 Composition \"example\", spec.environment, environmentConfigs[1]: cannot select environment: failed \
          to build reference at index 1: only 1 EnvironmentConfig can be selected in Single mode, found: 0; existing values of stage: prod"
        ]
    );
    let misspelled = NATIVE.replace("fromFieldPath: network.subnet,", "fromFieldPath: network.sub-net,");
    let verdict = case(composite(json!({"stage": "prod"})), &misspelled).decide(Phase::Validate);
    let finding = verdict.findings.iter().find(|finding| finding.rule == "EN008").unwrap();
    assert_eq!(
        finding.headline(),
        "EN008 Composition \"example\", resource \"bucket\", patch of data.subnet: the environment has no such value, so the \
         patch is skipped: network.sub-net: no such field; network has subnet, vpc"
    );
}

#[test]
fn does_not_predict_one_of_more_than_100_compositions() {
    let labelled = NATIVE.replace("name: example, ", "name: example, labels: {site: a}, ");
    let selecting = composite(json!({"stage": "prd", "compositionSelector": {"matchLabels": {"site": "a"}}}));
    let with_others = |others: usize| {
        let mut stored = stored(&labelled);
        for at in 0..others {
            let mut other = objects(NATIVE).remove(0);
            other["metadata"]["name"] = json!(format!("other-{at:03}"));
            stored.push(other);
        }
        // The last composite by name has the label too.
        stored.last_mut().unwrap()["metadata"]["labels"] = json!({"site": "a"});
        found(&Case::new(Operation::Create, selecting.clone()).stored(stored).policy(writing_policy()))
    };
    assert_eq!((with_others(0).len(), with_others(99).len(), with_others(100).len()), (1, 0, 0));
}

#[test]
fn reports_values_lost_in_merging() {
    let texts = CONFIGS.replace("region: eu-2", "region: eu-2, size: large");
    let stored: Vec<Value> = [DEFINITION, &texts, NATIVE].iter().flat_map(|text| objects(text)).collect();
    let found = recorded(&Case::new(Operation::Create, composite(json!({"stage": "prod"}))).stored(stored));
    assert_eq!(
        found,
        [
            "EN007 audit EN007 EnvironmentConfig prod replaces region of EnvironmentConfig base in the environment",
            "EN007 warn EN007 size of the environment is a number in EnvironmentConfig base, but a string in EnvironmentConfig \
          prod, which replaces it"
        ]
    );
}

#[test]
fn judges_changed_data_for_its_users() {
    let mut stored = stored(NATIVE);
    stored.push(composite(json!({"stage": "prod", "compositionRef": {"name": "example"}})));
    let config = stored.iter().find(|object| object["metadata"]["name"] == "prod").unwrap().clone();
    let update = |data: Value| {
        let mut now = config.clone();
        now["data"] = data;
        found(&Case::new(Operation::Create, now).stored(stored.clone()).update(config.clone()))
    };
    assert_eq!(update(json!({"network": {"subnet": "subnet-8"}})), Vec::<String>::new());
    let broken = update(json!({"network": {"subnets": ["subnet-7"]}}));
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert!(broken[0].starts_with("EN010 warn EN010 data: with this data XExample \"mine\" breaks: "), "{broken:?}");
    assert!(broken[0].contains("network.subnet: no such field"), "{broken:?}");
}

fn config(name: &str, labels: Value, data: Value) -> Value {
    json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
           "metadata": {"name": name, "labels": labels}, "data": data})
}

/// Returns the findings about an update of the EnvironmentConfig `prod`.
fn update_findings(stored: &[Value], change: impl Fn(&mut Value)) -> Vec<String> {
    update_findings_under(Policy::default(), stored, change)
}

fn update_findings_under(policy: Policy, stored: &[Value], change: impl Fn(&mut Value)) -> Vec<String> {
    let config = stored.iter().find(|object| object["metadata"]["name"] == "prod").unwrap().clone();
    let mut now = config.clone();
    change(&mut now);
    found(&Case::new(Operation::Create, now).stored(stored.to_vec()).update(config).policy(policy))
}

fn stored_with_composite(composition: &str) -> Vec<Value> {
    let mut stored = stored(composition);
    stored.push(composite(json!({"stage": "prod", "compositionRef": {"name": "example"}})));
    stored
}

#[test]
fn names_the_patch_that_a_change_breaks() {
    let failing = NATIVE.replace(
        "fromFieldPath: network.vpc, toFieldPath: \"metadata.labels[example.org/vpc]\"",
        "fromFieldPath: network.subnet, toFieldPath: spec.subnet, policy: {fromFieldPath: Required}",
    );
    let broken = update_findings(&stored_with_composite(&failing), |config| config["data"] = json!({"region": "eu-2"}));
    assert_eq!(
        broken,
        ["EN010 warn EN010 data: with this data XExample \"mine\" breaks: Composition \"example\", \
             spec.environment.patches[1]: network.subnet: no such field"]
    );
}

#[test]
fn reports_a_second_matching_environment_config() {
    let second = || config("second", json!({"stage": "prod"}), json!({}));
    let created = Case::new(Operation::Create, second()).stored(stored_with_composite(NATIVE));
    let reported = found(&created);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].starts_with("EN010 warn EN010 with this EnvironmentConfig XExample \"mine\" breaks: "),
        "{reported:?}"
    );
    assert!(reported[0].contains("environmentConfigs[1]") || reported[0].contains("found: 2"), "{reported:?}");
    let mut stored = stored_with_composite(NATIVE);
    stored.push(config("second", json!({}), json!({})));
    let case = Case::new(Operation::Create, second()).stored(stored.clone()).update(stored.last().unwrap().clone());
    assert!(
        found(&case)[0].contains("metadata.labels: with these labels XExample \"mine\" breaks: "),
        "{:?}",
        found(&case)
    );
    let other = Case::new(Operation::Create, config("other", json!({"stage": "dev"}), json!({})))
        .stored(stored_with_composite(NATIVE));
    assert_eq!(found(&other), Vec::<String>::new());
}

#[test]
fn judges_unused_compositions_with_an_empty_composite() {
    let fixed = NATIVE.replace(
        "{type: FromCompositeFieldPath, key: stage, valueFromFieldPath: spec.stage}",
        "{type: Value, key: stage, value: prod}",
    );
    let reported = update_findings(&stored(&fixed), |config| config["data"] = json!({"region": "eu-2"}));
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("with this data Composition \"example\" breaks: "), "{reported:?}");
    assert!(reported[0].contains("resource \"bucket\", patch of data.subnet"), "{reported:?}");
    assert_eq!(update_findings(&stored(&fixed), |config| config["data"]["more"] = json!(1)), Vec::<String>::new());
}

#[test]
fn denies_breaking_changes_if_configured() {
    let policy = config::parse("environmentConfigs: {onChange: deny}\n", "test", &Registry::standard()).unwrap();
    let reported =
        update_findings_under(policy.clone(), &stored_with_composite(NATIVE), |config| config["data"] = json!({}));
    assert!(
        reported[0].starts_with("EN010 deny EN010 data: with this data XExample \"mine\" breaks: "),
        "{reported:?}"
    );
    let relabel = |config: &mut Value| config["metadata"]["labels"] = json!({"stage": "other"});
    assert!(
        update_findings_under(policy.clone(), &stored_with_composite(NATIVE), relabel)[0].starts_with("EN010 deny")
    );
    assert_eq!(
        update_findings_under(policy, &stored_with_composite(NATIVE), |config| config["data"]["more"] = json!(1)),
        Vec::<String>::new()
    );
    let off = config::parse("environmentConfigs: {onChange: off}\n", "test", &Registry::standard()).unwrap();
    assert_eq!(
        update_findings_under(off, &stored_with_composite(NATIVE), |config| config["data"] = json!({})),
        Vec::<String>::new()
    );
}

#[test]
fn reports_the_number_of_unjudged_composites() {
    let mut stored = stored(NATIVE);
    for at in 0..MAX_ASSESSED + 3 {
        let mut one = composite(json!({"stage": "prod", "compositionRef": {"name": "example"}}));
        one["metadata"]["name"] = json!(format!("mine-{at:03}"));
        stored.push(one);
    }
    let reported = update_findings(&stored, |config| config["data"] = json!({}));
    assert_eq!(reported.len(), 7, "{reported:?}");
    assert!(reported[5].contains("with this data 95 more objects break"), "{reported:?}");
    assert!(reported[6].contains("3 more composites use it and were not checked: the limit is 100"), "{reported:?}");
}

#[test]
fn reports_unsortable_selections() {
    let many = |matcher: &str| {
        NATIVE.replace(
            "selector: {matchLabels: [{type: FromCompositeFieldPath, key: stage, valueFromFieldPath: spec.stage}]}",
            &format!("selector: {{mode: Multiple, sortByFieldPath: data.priority, matchLabels: [{matcher}]}}"),
        )
    };
    let from = "{type: FromCompositeFieldPath, key: stage, valueFromFieldPath: spec.stage}";
    let fixed = "{type: Value, key: stage, value: prod}";
    let configs = |first: Value, second: Value| {
        [config("one", json!({"stage": "prod"}), first), config("two", json!({"stage": "prod"}), second)]
    };
    let reported = |composition: &str, configs: [Value; 2], is_composite: bool| {
        let mut stored: Vec<Value> = [DEFINITION, composition].iter().flat_map(|text| objects(text)).collect();
        stored.push(config("base", json!({}), json!({})));
        stored.extend(configs);
        let object = if is_composite { composite(json!({"stage": "prod"})) } else { objects(composition).remove(0) };
        let found = found(&Case::new(Operation::Create, object).stored(stored)).into_iter();
        found.filter(|line| line.starts_with("EN005") || line.starts_with("EN006")).collect::<Vec<_>>()
    };
    let (one, two, text, none) =
        (json!({"priority": 1}), json!({"priority": 2}), json!({"priority": "high"}), json!({}));
    for is_composite in [true, false] {
        assert_eq!(reported(&many(fixed), configs(one.clone(), two.clone()), is_composite), Vec::<String>::new());
        for wrong in [configs(one.clone(), text.clone()), configs(one.clone(), none.clone())] {
            let reported = reported(&many(fixed), wrong, is_composite);
            assert_eq!(reported.len(), 1, "{reported:?}");
            assert!(
                reported[0].starts_with("EN005 warn") && reported[0].contains("sort by another path"),
                "{reported:?}"
            );
        }
    }
    let wrong = reported(&many(from), configs(one, text), true);
    assert!(wrong.len() == 1 && wrong[0].contains("not matching types"), "{wrong:?}");
    let without_sort_key = reported(&many(fixed), configs(none.clone(), none), false);
    assert!(
        without_sort_key[0].contains("no matching EnvironmentConfig has data.priority, for example one, two"),
        "{without_sort_key:?}"
    );
}

/// Returns the CompositeResourceDefinition with a changed schema. The field `region` is immutable, and the schema also
/// declares the fields `a`, `b` and `c`.
fn definition_with_immutable_region() -> String {
    DEFINITION.replace(
        "region: {type: string}",
        "region: {type: string, x-kubernetes-validations: [{rule: self == oldSelf}]}, b: {type: integer}, c: {type: object, \
         properties: {a: {type: string}, c: {type: array, items: {type: integer}, default: [1]}}}, a: {type: object, \
         x-kubernetes-preserve-unknown-fields: true}",
    )
}

#[test]
fn keeps_immutable_fields() {
    let stored: Vec<Value> =
        [&definition_with_immutable_region(), CONFIGS, NATIVE].iter().flat_map(|text| objects(text)).collect();
    let created = Case::new(Operation::Create, composite(json!({"stage": "prod"})))
        .stored(stored.clone())
        .policy(writing_policy());
    assert_eq!(mutated(&created)["spec"]["region"], "eu-2");
    let with_region = composite(json!({"stage": "prod", "region": "eu-9"}));
    let before = composite(json!({"region": "eu-9"}));
    let update = Case::new(Operation::Create, with_region.clone()).stored(stored).update(before.clone());
    let kept = mutated(&update.policy(writing_policy()));
    assert_eq!(kept["spec"]["region"], "eu-9");
    assert_eq!(kept["metadata"]["labels"], json!({"example.org/vpc": "vpc-1"}), "the rest is written");
    let free = mutated(&case(with_region, NATIVE).update(before));
    assert_eq!(free["spec"]["region"], "eu-2", "without the immutability rule, the region is written");
}

/// Regression test for issue 18 (tests with real controllers). Sometimes Portcullis detects that native environments
/// are enabled only after a composite has been created. The next update is from Crossplane, which adds its finalizer.
/// This update does not increase the generation of the composite, unless Portcullis changes the spec. So Portcullis
/// must not change the spec in this update.
#[test]
fn updates_of_metadata_leave_the_spec_of_native_composites_alone() {
    let created = composite(json!({"stage": "prod"}));
    let mut finalized = created.clone();
    finalized["metadata"]["finalizers"] = json!(["composite.apiextensions.crossplane.io"]);
    let admitted = mutated(&case(finalized, NATIVE).update(created.clone()));
    assert_eq!(admitted["spec"], created["spec"]);
    assert!(admitted["metadata"]["annotations"]["portcullis.dev/environment-patches"].is_string(), "{admitted}");
    let mut selected = created.clone();
    selected["spec"]["compositionUpdatePolicy"] = "Automatic".into();
    let admitted = mutated(&case(selected, NATIVE).update(created));
    assert_eq!(admitted["spec"]["region"], "eu-2", "with the first change of the spec it is written");
}

fn data() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        (0i64..3).prop_map(Value::from),
        "[xy]{1,2}".prop_map(Value::from),
        Just(json!([1, 2]))
    ];
    let value = leaf.prop_recursive(2, 8, 3, |inner| {
        proptest::collection::btree_map("[a-c]", inner, 1..3).prop_map(|members| json!(members))
    });
    proptest::collection::btree_map("[a-c]", value, 1..4).prop_map(|members| json!(members))
}

fn patches() -> impl Strategy<Value = Vec<Value>> {
    let path = "[a-c]([.][a-c])?";
    let target = prop_oneof![
        path.prop_map(|path| format!("spec.{path}")),
        Just("spec.region".to_owned()),
        Just("metadata.labels.zone".to_owned()),
        Just("metadata.name".to_owned()),
        Just("metadata.annotations[portcullis.dev/environment-source]".to_owned()),
        Just("status.a".to_owned()),
        Just("apiVersion".to_owned()),
        Just("spec.environmentConfigRefs[0].name".to_owned()),
    ];
    let to = (path, target)
        .prop_map(|(from, to)| json!({"type": "ToCompositeFieldPath", "fromFieldPath": from, "toFieldPath": to}));
    let from = (path, path).prop_map(|(from, to)| json!({"type": "FromCompositeFieldPath", "fromFieldPath": format!("spec.{from}"), "toFieldPath": to}));
    proptest::collection::vec(prop_oneof![3 => to, 1 => from], 0..5)
}

fn generated(patches: &[Value], resource: &[String], is_native: bool) -> Value {
    let reference = json!([{"type": "Reference", "ref": {"name": "one"}}]);
    let resource: Vec<_> = resource
        .iter()
        .map(|path| json!({"type": "FromEnvironmentFieldPath", "fromFieldPath": path, "toFieldPath": format!("data.{path}")}))
        .collect();
    let resources = json!([{"name": "one", "base": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": {"own": 1}}}, "patches": resource}]);
    let mut spec = json!({"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XExample"}});
    if is_native {
        spec["environment"] = json!({"environmentConfigs": reference, "patches": patches});
        spec["resources"] = resources;
    } else {
        spec["mode"] = json!("Pipeline");
        spec["pipeline"] = json!([
            {"step": "a", "input": {"apiVersion": "environmentconfigs.fn.crossplane.io/v1beta1", "kind": "Input",
                "spec": {"environmentConfigs": reference}}},
            {"step": "b", "input": {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources",
                "environment": {"patches": patches}, "resources": resources}},
        ]);
    }
    json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "example"}, "spec": spec})
}

/// Returns an object without the fields that the mutator may change.
fn without_mutable_fields(object: &Value) -> Value {
    let mut rest = object.clone();
    let members = rest.as_object_mut().unwrap();
    members.remove("spec");
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("labels");
        metadata.remove("annotations");
    }
    rest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Checks the mutator with a composite whose Composition has random patches:
    ///
    /// - Mutation is idempotent.
    /// - The mutator changes only fields that it may change. In an update, it changes no immutable field.
    /// - The annotation `environment-patches` contains the patch that `engine_patch` returns for the composed resource.
    #[test]
    fn mutating_composites(
        data in data(), spec in data(), patches in patches(), resource in proptest::collection::vec("[a-c]([.][a-c])?", 0..3),
        is_native: bool, is_update: bool,
    ) {
        let composition = generated(&patches, &resource, is_native);
        let mut stored: Vec<Value> = objects(&definition_with_immutable_region());
        stored.extend([config("one", json!({}), data), composition.clone()]);
        let mut object = composite(spec);
        object["spec"]["region"] = json!("mine");
        object["status"] = json!({"a": "observed"});
        let admit = |object: &Value| {
            let case = Case::new(Operation::Create, object.clone()).stored(stored.clone()).policy(writing_policy());
            if is_update { case.update(object.clone()) } else { case }
        };
        let once = mutated(&admit(&object));
        let kept = as_stored(&once, &objects(&definition_with_immutable_region())[0]);
        prop_assert_eq!(admit(&kept).decide(Phase::Mutate).patch, None, "the stored object is patched again: {}", kept);
        prop_assert_eq!(without_mutable_fields(&once), without_mutable_fields(&object));
        if is_update {
            prop_assert_eq!(&once["spec"]["region"], &json!("mine"));
        }
        let given = once["spec"]["environmentConfigRefs"].as_array();
        prop_assert!(given.is_none_or(|refs| is_native && refs.len() == 1 && refs[0]["name"] == "one"), "{:?}", given);
        let annotated = annotation(&once, "environment-patches");
        let schema = Structural::of(&objects(&definition_with_immutable_region())[0], "v1").unwrap();
        prop_assert_eq!(annotated.get("one").cloned(), engine_patch(&composition, &schema.stored(&once), &stored));
    }
}

/// Checks that Portcullis writes a value below a field that is explicitly `null` in the request, such as `spec.a.a`
/// below `spec.a: null`. The API server drops the `null` when it stores the object. A later request must not change the
/// object again.
#[test]
fn fields_below_a_dropped_null_are_written_at_once() {
    let patch = json!({"type": "ToCompositeFieldPath", "fromFieldPath": "c", "toFieldPath": "spec.a.a"});
    let mut stored: Vec<Value> = objects(&definition_with_immutable_region());
    stored.extend([config("one", json!({}), json!({"c": null})), generated(&[patch], &[], false)]);
    let admit =
        |object: &Value| Case::new(Operation::Create, object.clone()).stored(stored.clone()).policy(writing_policy());
    let once = mutated(&admit(&composite(json!({"a": null, "region": "mine"}))));
    assert_eq!(once["spec"]["a"], json!({"a": null}), "{once}");
    let kept = as_stored(&once, &stored[0]);
    assert_eq!(admit(&kept).decide(Phase::Mutate).patch, None);
}

/// Returns a composite as the API server stores it: pruned, with defaults, and with server-set metadata.
fn as_stored(object: &Value, definition: &Value) -> Value {
    let mut kept = Structural::of(definition, "v1").unwrap().stored(object);
    kept["metadata"]["uid"] = json!("6f1c");
    kept["metadata"]["resourceVersion"] = json!("17");
    kept["metadata"]["generation"] = json!(3);
    kept
}

/// Returns a JSON Patch with the changes that the patches of `composition` make to the base of its only composed
/// resource, as Portcullis computes them. `object` is the composite. The EnvironmentConfigs are in `stored`. Returns
/// `None` if nothing changes, or if the computation fails.
fn engine_patch(composition: &Value, object: &Value, stored: &[Value]) -> Option<Value> {
    use portcullis::crossplane::environment::{ActionOutcome, compute};
    let declaration = portcullis::crossplane::composition::declaration(composition)?;
    let configs = stored.iter().filter(|object| object["kind"] == "EnvironmentConfig");
    let configs: Vec<_> =
        configs.map(|object| std::sync::Arc::new(portcullis::catalog::Stored::new(object.clone()))).collect();
    let computation = compute(&declaration, object, configs.as_slice());
    if computation.failure.is_some() {
        return None;
    }
    let templates = computation.steps.iter().find_map(|step| match &step.action {
        ActionOutcome::Patched { templates, .. } => templates.first(),
        _ => None,
    })?;
    let rendered = templates.rendered.as_ref().ok()?;
    let patch = json_patch::diff(&templates.base, rendered);
    (!patch.0.is_empty()).then(|| serde_json::to_value(patch).unwrap())
}

#[test]
fn reports_type_mismatches_but_not_optional_values() {
    let declaring = |schema: &str| {
        let misspelled = NATIVE.replace("fromFieldPath: network.subnet,", "fromFieldPath: network.optional,");
        let annotation = format!("annotations: {{portcullis.dev/environment-schema: '{schema}'}}");
        misspelled.replace("metadata: {name: example,", &format!("metadata: {{name: example, {annotation},"))
    };
    let reported = |composition: &str| {
        let found = found(&case(composite(json!({"stage": "prod"})), composition));
        found.into_iter().filter(|line| line.starts_with("EN008")).collect::<Vec<_>>()
    };
    let of = |network: &str| {
        reported(&declaring(&format!(r#"{{"properties": {{"region": {{"type": "string"}}, "network": {network}}}}}"#)))
    };
    let missing = of("{}");
    assert!(missing.len() == 1 && missing[0].contains("network.optional: no such field"), "{missing:?}");
    assert_eq!(of(r#"{"properties": {"optional": {}, "vpc": {"type": "string"}}}"#), Vec::<String>::new());
    let required = r#"{"properties": {"region": {}, "network": {"required": ["optional"], "properties": {"optional": {}}}}, "required": ["network"]}"#;
    assert!(reported(&declaring(required))[0].contains("network.optional: no such field"));
    let typed = of(r#"{"properties": {"optional": {}, "vpc": {"type": "integer"}}}"#);
    assert_eq!(
        typed,
        [
            "EN008 warn EN008 Composition \"example\", spec.environment.patches[1]: network.vpc of the environment is string, but \
             its schema declares integer"
        ]
    );
}

/// Corresponds to `ErrorOnKubeListError` in upstream's `TestSelect`. Before Portcullis has listed the
/// EnvironmentConfigs, it computes no environment. It also reports no findings, because such findings might be wrong.
#[test]
fn waits_for_the_list_of_environment_configs() {
    let object = composite(json!({"stage": "prod"}));
    let decide = |is_listed: bool, phase| {
        let registry = Registry::standard();
        let catalog = registry.catalog();
        let all: Vec<Value> = [DEFINITION, NATIVE, CONFIGS].iter().flat_map(|text| objects(text)).collect();
        for kind in catalog.kinds().collect::<Vec<_>>() {
            let is_config = kind.kind == "EnvironmentConfig";
            let of_kind = all.iter().filter(|object| kind.is_kind_of(object)).cloned().collect();
            if is_listed || !is_config {
                catalog.replace(kind, Coverage::Complete, of_kind);
            }
        }
        let gate = Gate::new(registry, Policy::default(), Arc::new(catalog));
        block_on(gate.decide(phase, &Case::new(Operation::Create, object.clone()).request()))
    };
    assert!(decide(true, Phase::Mutate).patch.is_some());
    assert_eq!(decide(false, Phase::Mutate).patch, None);
    assert_eq!(decide(false, Phase::Validate).findings, []);
}

/// Regression test for an error that the test `mutating_composites` found. In this Composition, one patch writes a
/// value from the environment to the composite, and another patch writes this value from the composite back to the
/// environment. Composed resources that read the environment must contain this value.
#[test]
fn computes_composed_resources_from_the_stored_composite() {
    let returning = NATIVE.replace(
        "- {type: ToCompositeFieldPath, fromFieldPath: region, toFieldPath: spec.region}",
        "- {type: FromCompositeFieldPath, fromFieldPath: spec.region, toFieldPath: network.subnet}\n      - {type: \
         ToCompositeFieldPath, fromFieldPath: region, toFieldPath: spec.region}",
    );
    let once = mutated(&case(composite(json!({"stage": "prod"})), &returning));
    let patch = json!({"bucket": [{"op": "add", "path": "/data", "value": {"subnet": "eu-2"}}]});
    assert_eq!(annotation(&once, "environment-patches"), patch);
    assert_eq!(case(once, &returning).decide(Phase::Mutate).patch, None);
}

#[test]
fn does_not_report_composites_that_already_fail() {
    let without = |config: &Value| config["metadata"]["name"] != "base";
    let stored: Vec<Value> = stored_with_composite(NATIVE).into_iter().filter(without).collect();
    let mut without_composite = stored.clone();
    without_composite.pop();
    for stored in [stored, without_composite] {
        let base = config("base", json!({}), json!({"region": "eu-1"}));
        assert_eq!(found(&Case::new(Operation::Create, base).stored(stored)), Vec::<String>::new());
    }
}

/// Regression test for issue 18 (Crossplane, item 10): a request for a claim gets the warnings about the composite of
/// the claim, so that the author of the claim sees them.
#[test]
fn claims_get_the_warnings_of_their_composites() {
    let definition =
        DEFINITION.replace("names: {kind", "claimNames: {kind: Example, plural: examples}\n  names: {kind");
    let misspelled = NATIVE.replace("fromFieldPath: network.subnet,", "fromFieldPath: network.sub-net,");
    let stored: Vec<Value> = [&definition, CONFIGS, &misspelled].iter().flat_map(|text| objects(text)).collect();
    let claim = |spec: Value| json!({"apiVersion": "example.org/v1", "kind": "Example", "metadata": {"name": "mine", "namespace": "team"}, "spec": spec});
    let reported = |object: Value, stored: Vec<Value>| {
        found(&Case::new(Operation::Create, object).stored(stored).policy(writing_policy()))
    };
    let of_claim = reported(claim(json!({"stage": "prod"})), stored.clone());
    assert_eq!(of_claim, reported(composite(json!({"stage": "prod"})), stored.clone()));
    assert!(of_claim.iter().any(|line| line.contains("network.sub-net: no such field")), "{of_claim:?}");
    let missing = reported(claim(json!({"stage": "prd"})), stored.clone());
    assert!(
        missing.iter().any(|line| line.starts_with("EN006 warn") && line.contains("existing values of stage: prod")),
        "{missing:?}"
    );
    let case =
        Case::new(Operation::Create, claim(json!({"stage": "prod"}))).stored(stored.clone()).policy(writing_policy());
    assert_eq!(case.decide(Phase::Mutate).patch, None, "a claim is never changed");
    let mut bound = stored;
    let mut composite = composite(json!({"stage": "prod", "environmentConfigRefs": [{"name": "gone"}]}));
    composite["metadata"]["name"] = json!("mine-x7");
    bound.push(composite);
    let kept = reported(claim(json!({"stage": "prod", "resourceRef": {"name": "mine-x7"}})), bound);
    assert!(kept.iter().any(|line| line.contains("gone")), "the references of its composite are kept: {kept:?}");
}

/// Regression test for issue 18 (Crossplane, item 7): the deletion of an EnvironmentConfig is not denied if all
/// composites work without it.
#[test]
fn optional_and_renewed_selections_do_not_block_deletion() {
    let deletion_with = |composition: &str, spec: Value| {
        let mut stored = stored(composition);
        let mut spec = spec;
        spec["compositionRef"] = json!({"name": "example"});
        stored.push(composite(spec));
        deletion_findings("prod", stored)
    };
    let merged =
        ["EN010 warn EN010 EnvironmentConfig \"prod\" is merged for XExample \"mine\"; its data will be missing there"];
    let named = NATIVE.replace(
        "- type: Selector\n        selector: {matchLabels: [{type: FromCompositeFieldPath, key: stage, valueFromFieldPath: spec.stage}]}",
        "- {type: Reference, ref: {name: prod}}",
    );
    let policy = |text: &str, composition: &str| {
        composition.replace(
            "    patches:\n      - {type: ToComp",
            &format!("    policy: {text}\n    patches:\n      - {{type: ToComp"),
        )
    };
    let refs = json!({"stage": "prod", "environmentConfigRefs": [{"name": "base"}, {"name": "prod"}]});
    assert_eq!(deletion_with(&policy("{resolution: Optional}", &named), refs.clone()), merged);
    let required = ["EN010 deny EN010 EnvironmentConfig \"prod\" is required by XExample \"mine\""];
    assert_eq!(deletion_with(&named, refs.clone()), required, "the finding is reported once");
    let many = NATIVE.replace("selector: {matchLabels", "selector: {mode: Multiple, matchLabels");
    assert_eq!(deletion_with(&policy("{resolve: Always}", &many), refs.clone()), merged);
    assert_eq!(deletion_with(&many, refs), required, "references that are kept must exist");
}

/// Regression test for issue 18 (Crossplane, item 7): Crossplane 2 passes the EnvironmentConfigs in
/// `requirements.requiredResources` to a pipeline step, no matter whether the function requests them. So these
/// EnvironmentConfigs are in use.
#[test]
fn an_environment_config_that_a_step_requires_is_in_use() {
    let requires = |resource: Value| {
        let mut stored = stored(FUNCTION);
        let composition = stored.iter_mut().find(|one| one["kind"] == "Composition").unwrap();
        let mut resource = resource;
        resource["apiVersion"] = json!("apiextensions.crossplane.io/v1beta1");
        resource["kind"] = json!("EnvironmentConfig");
        composition["spec"]["pipeline"] = json!([{"step": "own", "requirements": {"requiredResources": [resource]}}]);
        deletion_findings("prod", stored)
    };
    let expected =
        ["EN010 warn EN010 EnvironmentConfig \"prod\" is passed to a pipeline step of Composition \"example\" by \
                   requirements.requiredResources"];
    assert_eq!(requires(json!({"requirementName": "own", "name": "prod"})), expected);
    assert_eq!(requires(json!({"requirementName": "own", "matchLabels": {"stage": "prod"}})), expected);
    assert_eq!(requires(json!({"requirementName": "own", "matchLabels": {"stage": "dev"}})), Vec::<String>::new());
}
