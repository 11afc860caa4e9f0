//! Composites: what the environment makes of them at admission, in both profiles.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::collections::HashSet;

use cases::{Case, objects};
use portcullis::admission::{Finding, Operation, Phase};
use portcullis::gate::Policy;
use portcullis::rule::Mode;
use serde_json::{Value, json};

const DEFINITION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xexamples.example.org, labels: {portcullis.dev/composites: \"true\"}}
spec:
  group: example.org
  names: {kind: XExample, plural: xexamples}
  versions: [{name: v1, served: true, referenceable: true}]
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
      - {type: ToCompositeFieldPath, fromFieldPath: network.vpc, toFieldPath: \"metadata.labels[example.org/vpc~1]\"}
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

fn case(object: Value, composition: &str) -> Case {
    Case::new(Operation::Create, object).stored(stored(composition))
}

/// The composite as it is stored.
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
fn references_and_values_are_written_where_they_may_be() {
    let object = mutated(&case(composite(json!({"stage": "prod"})), NATIVE));
    let reference =
        |name| json!({"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "EnvironmentConfig", "name": name});
    let spec =
        json!({"stage": "prod", "region": "eu-2", "environmentConfigRefs": [reference("base"), reference("prod")]});
    assert_eq!(object["spec"], spec);
    assert_eq!(object["metadata"]["labels"], json!({"example.org/vpc~1": "vpc-1"}));
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
fn twice_is_as_good_as_once() {
    for composition in [NATIVE, FUNCTION] {
        let once = mutated(&case(composite(json!({"stage": "prod"})), composition));
        assert_eq!(case(once, composition).decide(Phase::Mutate).patch, None);
    }
}

#[test]
fn what_grows_each_time_is_left_to_crossplane() {
    let growing = NATIVE.replace(
        "- {type: ToCompositeFieldPath, fromFieldPath: region, toFieldPath: spec.region}",
        "- {type: FromCompositeFieldPath, fromFieldPath: spec.count, toFieldPath: count, transforms: [{type: math, math: \
         {type: Multiply, multiply: 2}}]}\n      - {type: ToCompositeFieldPath, fromFieldPath: count, toFieldPath: spec.count}",
    );
    let case = case(composite(json!({"stage": "prod", "count": 1})), &growing);
    assert_eq!(mutated(&case)["spec"]["count"], 1);
    assert!(case.decide(Phase::Mutate).notices[0].contains("done twice, it is another value"));
}

#[test]
fn references_that_are_there_are_kept() {
    let refs =
        json!([{"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "EnvironmentConfig", "name": "base"}]);
    let object = composite(json!({"stage": "prod", "environmentConfigRefs": refs}));
    let object = mutated(&case(object, NATIVE));
    assert_eq!((&object["spec"]["environmentConfigRefs"], &object["spec"]["region"]), (&refs, &json!("eu-1")));
}

#[test]
fn nothing_is_written_where_something_fails_or_is_not_known() {
    let failing = case(composite(json!({"stage": "missing"})), NATIVE);
    assert_eq!(failing.decide(Phase::Mutate).patch, None);
    let other = "    - step: other\n      functionRef: {name: function-of-ours}\n    - step: resources";
    let uncertain = FUNCTION.replace("    - step: resources", other);
    assert_eq!(case(composite(json!({"stage": "prod"})), &uncertain).decide(Phase::Mutate).patch, None);
}

#[test]
fn mode_annotate_leaves_the_composite_as_it_is() {
    let mut policy = Policy::default();
    policy.modes.insert("environments".to_owned(), Mode::Annotate);
    let object = mutated(&case(composite(json!({"stage": "prod"})), NATIVE).policy(policy));
    assert_eq!(object["spec"], json!({"stage": "prod"}));
    assert_ne!(annotation(&object, "environment-patches"), Value::Null);
}

#[test]
fn only_composites_of_chosen_definitions_are_looked_at() {
    let unlabelled: Vec<Value> =
        [&DEFINITION.replace("\"true\"", "\"false\""), CONFIGS, NATIVE].iter().flat_map(|text| objects(text)).collect();
    let case = || Case::new(Operation::Create, composite(json!({"stage": "prod"}))).stored(unlabelled.clone());
    assert_eq!(case().decide(Phase::Mutate).patch, None);
    let policy = Policy { composites: HashSet::from(["xexamples.example.org".to_owned()]), ..Policy::default() };
    assert!(case().policy(policy).decide(Phase::Mutate).patch.is_some());
}

#[test]
fn the_composition_of_a_composite_is_the_one_that_crossplane_takes() {
    let other = NATIVE
        .replace("metadata: {name: example,", "metadata: {name: other, labels: {kind: other},")
        .replace("toFieldPath: spec.region", "toFieldPath: spec.zone");
    let mut stored = stored(NATIVE);
    stored.extend(objects(&other));
    let region = |spec: Value| {
        let object = mutated(&Case::new(Operation::Create, composite(spec)).stored(stored.clone()));
        (object["spec"]["region"].clone(), object["spec"]["zone"].clone())
    };
    let (eu, none) = (json!("eu-2"), Value::Null);
    assert_eq!(region(json!({"stage": "prod"})), (none.clone(), none.clone()), "Crossplane takes one at random");
    assert_eq!(region(json!({"stage": "prod", "compositionRef": {"name": "example"}})), (eu.clone(), none.clone()));
    let selector = json!({"stage": "prod", "compositionSelector": {"matchLabels": {"kind": "other"}}});
    assert_eq!(region(selector), (none, eu));
}

/// What is shown to people.
fn found(case: &Case) -> Vec<String> {
    recorded(case).into_iter().filter(|line| !line.contains(" audit ")).collect()
}

fn recorded(case: &Case) -> Vec<String> {
    let line = |finding: &Finding| format!("{} {} {}", finding.rule, finding.level, finding.headline());
    case.decide(Phase::Validate).findings.iter().map(line).collect()
}

#[test]
fn references_that_no_source_gives_are_refused() {
    let with =
        |name: &str| composite(json!({"stage": "prod", "environmentConfigRefs": [{"name": "base"}, {"name": name}]}));
    assert_eq!(found(&case(with("prod"), NATIVE)), Vec::<String>::new());
    let mut secret = stored(NATIVE);
    secret.extend(objects("apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig\nmetadata: {name: secret}\ndata: {}\n"));
    let case = Case::new(Operation::Create, with("secret")).stored(secret);
    let refused: Vec<_> = found(&case).into_iter().filter(|line| line.contains(" deny ")).collect();
    assert!(
        refused.len() == 1 && refused[0].starts_with("EN011 deny EN011 spec.environmentConfigRefs[1].name"),
        "{refused:?}"
    );
    let kept = Case::new(Operation::Create, with("secret")).stored(case.stored.clone()).update(with("secret"));
    assert!(kept.decide(Phase::Validate).is_allowed());
}

fn deleted(name: &str, stored: Vec<Value>) -> Vec<String> {
    let config =
        stored.iter().find(|object| object["metadata"]["name"] == name && object["kind"] == "EnvironmentConfig");
    found(&Case::new(Operation::Delete, config.unwrap().clone()).stored(stored))
}

#[test]
fn users_of_an_environment_config_are_named() {
    let mut stored = stored(NATIVE);
    assert_eq!(
        deleted("base", stored.clone()),
        ["EN010 deny EN010 EnvironmentConfig \"base\" is used by Composition \"example\", which cannot do without it"]
    );
    assert_eq!(deleted("prod", stored.clone()), Vec::<String>::new(), "nobody selects it yet");
    stored.push(composite(json!({"stage": "prod", "compositionRef": {"name": "example"}})));
    assert_eq!(
        deleted("prod", stored.clone()),
        ["EN010 deny EN010 EnvironmentConfig \"prod\" is used by XExample \"mine\", which cannot do without it"]
    );
    let config = stored.iter().find(|object| object["metadata"]["name"] == "prod").unwrap().clone();
    let mut relabelled = config.clone();
    relabelled["metadata"]["labels"] = json!({"stage": "production"});
    let case = Case::new(Operation::Create, relabelled).stored(stored).update(config);
    assert_eq!(
        found(&case),
        [
            "EN010 warn EN010 metadata.labels: with these labels EnvironmentConfig \"prod\" is no longer selected by XExample \
          \"mine\", which cannot do without it"
        ]
    );
}

#[test]
fn one_of_several_is_only_warned_about() {
    let many = NATIVE.replace("selector: {matchLabels:", "selector: {mode: Multiple, minMatch: 1, matchLabels:");
    let mut stored = stored(&many);
    stored.push(composite(json!({"stage": "prod", "compositionRef": {"name": "example"}})));
    assert!(deleted("prod", stored.clone())[0].starts_with("EN010 deny"));
    stored.extend(objects("apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig\nmetadata: {name: prod2, labels: {stage: prod}}\ndata: {}\n"));
    assert_eq!(
        deleted("prod", stored),
        ["EN010 warn EN010 EnvironmentConfig \"prod\" is merged for XExample \"mine\", which go on without its data"]
    );
}

#[test]
fn what_a_composite_cannot_be_given_is_said() {
    let found = found(&case(composite(json!({"stage": "prd"})), NATIVE));
    assert_eq!(
        found,
        [
            "EN006 warn EN006 Composition \"example\", spec.environment, environmentConfigs[1]: cannot select environment: failed \
          to build reference at index 1: only 1 EnvironmentConfig can be selected in Single mode, found: 0; for stage there are prod"
        ]
    );
    let misspelled = NATIVE.replace("fromFieldPath: network.subnet,", "fromFieldPath: network.sub-net,");
    let verdict = case(composite(json!({"stage": "prod"})), &misspelled).decide(Phase::Validate);
    let finding = verdict.findings.iter().find(|finding| finding.rule == "EN008").unwrap();
    assert_eq!(
        finding.headline(),
        "EN008 Composition \"example\", resource \"bucket\", patch of data.subnet: the environment has nothing there, and the \
         patch does nothing: network.sub-net: no such field; network has subnet, vpc"
    );
}

#[test]
fn what_merging_loses_is_said() {
    let texts = CONFIGS.replace("region: eu-2", "region: eu-2, size: large");
    let stored: Vec<Value> = [DEFINITION, &texts, NATIVE].iter().flat_map(|text| objects(text)).collect();
    let found = recorded(&Case::new(Operation::Create, composite(json!({"stage": "prod"}))).stored(stored));
    assert_eq!(
        found,
        [
            "EN007 audit EN007 the environment's region of EnvironmentConfig base is replaced by EnvironmentConfig prod",
            "EN007 warn EN007 the environment's size is a number in EnvironmentConfig base, and a string in EnvironmentConfig \
          prod, which takes its place"
        ]
    );
}

#[test]
fn other_data_is_judged_for_those_who_use_it() {
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
