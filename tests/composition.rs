//! Tests of the EN rules for Compositions, in addition to the examples on the pages of these rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::{Case, objects};
use portcullis::admission::{Finding, Level, Operation, Phase};
use portcullis::config;
use portcullis::gate::Registry;
use serde_json::{Value, json};

fn composition(spec: &Value) -> Value {
    let mut object =
        json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "example"}});
    object["spec"] = spec.clone();
    object["spec"]["compositeTypeRef"] = json!({"apiVersion": "example.org/v1", "kind": "XExample"});
    object
}

fn native(environment: Value) -> Value {
    composition(&json!({"environment": environment}))
}

fn configs(spec: Value) -> Value {
    let input = json!({"apiVersion": "environmentconfigs.fn.crossplane.io/v1beta1", "kind": "Input", "spec": spec});
    composition(&json!({"mode": "Pipeline", "pipeline": [{"step": "environment", "input": input}]}))
}

fn resources(mut input: Value) -> Value {
    input["apiVersion"] = json!("pt.fn.crossplane.io/v1beta1");
    input["kind"] = json!("Resources");
    composition(&json!({"mode": "Pipeline", "pipeline": [{"step": "resources", "input": input}]}))
}

fn found(object: Value) -> Vec<Finding> {
    Case::new(Operation::Create, object).decide(Phase::Validate).findings
}

/// Returns the findings about a Composition, each as text with the rule, the level, the end of the field path, and the
/// message. Omits findings of EN006, which compares the Composition with the objects in the cluster.
fn summaries(object: Value) -> Vec<String> {
    let line = |finding: &Finding| {
        let field = finding.field.to_string();
        let short =
            field.strip_prefix("spec.environment.").or(field.strip_prefix("spec.pipeline[0].input.")).unwrap_or(&field);
        format!("{} {} {short}: {}", finding.rule, finding.level, finding.message)
    };
    // EN006 compares the Composition with the objects in the cluster, which other tests check.
    found(object).iter().filter(|finding| finding.rule != "EN006").map(line).collect()
}

#[test]
fn reports_all_errors_of_crossplanes_webhook_at_once() {
    let sources = json!([
        {"type": "Reference"},
        {"ref": {}},
        {"ref": {"name": ""}},
        {"type": "Selector"},
        {"type": "Selector", "selector": {}},
        {"type": "Selector", "selector": {"mode": "Single", "maxMatch": 2, "minMatch": 1, "matchLabels": [
            {"valueFromFieldPath": "spec.a"},
            {"key": "a"},
            {"key": "b", "valueFromFieldPath": ""},
            {"key": "c", "type": "Value"},
            {"key": "d", "type": "Value", "value": ""},
            {"key": "e", "type": "Label", "value": "x"},
        ]}},
        {"type": "Name", "ref": {"name": "a"}},
    ]);
    let source = |at: usize, rest: &str| format!("EN001 deny environmentConfigs[{at}].{rest}");
    let label = |at: usize, rest: &str| source(5, &format!("selector.matchLabels[{at}].{rest}"));
    assert_eq!(
        summaries(native(json!({"environmentConfigs": sources}))),
        [
            source(0, "ref: Required value: ref is required"),
            source(1, "ref.name: Required value: name is required"),
            source(2, "ref.name: Required value: name is required"),
            source(3, "selector: Required value: selector is required"),
            source(4, "selector.matchLabels: Required value: selector must have at least one match label"),
            source(5, "selector.minMatch: Forbidden: minMatch is not supported in Single mode"),
            source(5, "selector.maxMatch: Forbidden: maxMatch is not supported in Single mode"),
            label(0, "key: Required value: key is required"),
            label(1, "valueFromFieldPath: Required value: valueFromFieldPath is required"),
            label(2, "valueFromFieldPath: Required value: valueFromFieldPath must not be empty"),
            label(3, "value: Required value: value is required"),
            label(4, "value: Required value: value must not be empty"),
            label(5, "type: Unsupported value: \"Label\": supported values: \"FromCompositeFieldPath\", \"Value\"",),
            source(6, "type: Unsupported value: \"Name\": supported values: \"Reference\", \"Selector\""),
        ]
    );
}

#[test]
fn patches_require_the_fields_of_their_type() {
    let patches = json!([
        {},
        {"type": "CombineFromComposite"},
        {"type": "CombineToComposite", "toFieldPath": "a", "combine": {"variables": [], "strategy": "bytes"}},
        {"type": "PatchSet"},
        {"fromFieldPath": "a", "policy": {"fromFieldPath": "Maybe"}, "transforms": [
            {}, {"type": "match", "match": {"patterns": [{"type": "regexp", "result": 1}, {"literal": "x"}], "fallbackTo": "Input", "fallbackValue": 2}},
            {"type": "math", "math": {"type": "ClampMin"}},
            {"type": "string", "string": {"type": "TrimPrefix"}},
        ]},
    ]);
    let patch = |at: usize, rest: &str| format!("EN001 deny patches[{at}].{rest}");
    assert_eq!(
        summaries(native(json!({"patches": patches}))),
        [
            patch(0, "fromFieldPath: Required value: fromFieldPath must be set for patch type FromCompositeFieldPath"),
            patch(1, "toFieldPath: Required value: toFieldPath must be set for patch type CombineFromComposite"),
            patch(1, "combine: Required value: combine must be set for patch type CombineFromComposite"),
            patch(2, "combine.variables: Required value: combine patch types require at least one variable"),
            patch(2, "combine.strategy: Unsupported value: \"bytes\": supported values: \"string\""),
            patch(2, "combine.string: Required value: string must be set for combine strategy string"),
            patch(
                3,
                "type: Unsupported value: \"PatchSet\": supported values: \"FromCompositeFieldPath\", \
                 \"ToCompositeFieldPath\", \"CombineFromComposite\", \"CombineToComposite\""
            ),
            patch(4, "transforms[0].type: Required value: transform type is required"),
            patch(
                4,
                "transforms[1].match.fallbackValue: Invalid value: 2: cannot set both a fallback value and the fallback to input flag"
            ),
            patch(4, "transforms[1].match.patterns[0].regexp: Required value: regexp pattern type requires a regexp"),
            patch(4, "transforms[1].match.patterns[1].result: Required value: result is required"),
            patch(
                4,
                "transforms[2].math.clampMin: Required value: must specify a value if a clamp min math transform is specified"
            ),
            patch(4, "transforms[3].string.trim: Required value: trim transform requires a trim value"),
            patch(
                4,
                "policy.fromFieldPath: Unsupported value: \"Maybe\": supported values: \"Optional\", \"Required\""
            ),
        ]
    );
}

#[test]
fn reports_values_of_the_wrong_type() {
    for value in [json!(1), json!("x"), json!([]), json!({}), json!(true), json!([1]), json!({"a": 1}), json!([[{}]])] {
        for environment in [
            json!({"environmentConfigs": value}),
            json!({"environmentConfigs": [{"ref": value}]}),
            json!({"environmentConfigs": [{"type": "Selector", "selector": value}]}),
            json!({"environmentConfigs": [{"type": "Selector", "selector": {"matchLabels": [value]}}]}),
            json!({"patches": [value]}),
            json!({"patches": [{"fromFieldPath": value}]}),
            json!({"patches": [{"fromFieldPath": "a", "transforms": [{"type": value}]}]}),
            json!({"policy": value, "defaultData": value}),
        ] {
            found(native(environment.clone()));
            found(configs(environment.clone()));
            found(resources(json!({"environment": environment, "resources": value, "patchSets": value})));
        }
        found(composition(&json!({"environment": value, "pipeline": value, "resources": value})));
    }
    assert!(!summaries(native(json!({"environmentConfigs": {}}))).is_empty());
}

#[test]
fn functions_have_no_defaults_for_transforms() {
    let transforms = json!([{"type": "string", "string": {"fmt": "x-%s"}}, {"type": "math", "math": {"multiply": 2}}]);
    let patches = json!([{"fromFieldPath": "spec.a", "transforms": transforms}]);
    assert_eq!(summaries(native(json!({"patches": patches}))).len(), 1, "a text cannot be multiplied");
    let found = summaries(resources(json!({"environment": {"patches": patches}, "resources": []})));
    assert_eq!(
        found[0],
        "EN001 deny environment.patches[0].transforms[0].string.type: Required value: string transform type is required"
    );
    assert!(found.iter().any(|line| line.contains("math.type: Required value: math transform type is required")));
}

#[test]
fn a_number_is_a_float_to_the_functions() {
    let patch = json!({"fromFieldPath": "spec.a", "transforms": [{"type": "string", "string": {"type": "Format", "fmt": "%d"}}]});
    assert_eq!(summaries(native(json!({"patches": [patch]}))), Vec::<String>::new());
    let found = summaries(resources(json!({"environment": {"patches": [patch]}, "resources": []})));
    assert!(found[0].starts_with("EN003 deny") && found[0].contains("%!d(float64=…)"), "{found:?}");
    let converted = json!({"fromFieldPath": "spec.a", "transforms": [
        {"type": "convert", "convert": {"toType": "int64"}}, {"type": "string", "string": {"type": "Format", "fmt": "%d"}}]});
    assert_eq!(
        summaries(resources(json!({"environment": {"patches": [converted]}, "resources": []}))),
        Vec::<String>::new()
    );
}

#[test]
fn warns_about_ignored_patches() {
    let status = json!({"type": "ToCompositeFieldPath", "fromFieldPath": "a", "toFieldPath": "status.a"});
    assert!(summaries(native(json!({"patches": [status]})))[0].starts_with("EN009 warn patches[0].toFieldPath"));
    assert_eq!(
        summaries(resources(json!({"environment": {"patches": [status]}, "resources": []}))),
        Vec::<String>::new()
    );
    let mut pipeline = native(json!({"patches": [{"fromFieldPath": "a"}]}));
    pipeline["spec"]["mode"] = json!("Pipeline");
    assert!(summaries(pipeline)[0].starts_with("EN009 warn patches: ignored: in mode Pipeline"));
    let nested = json!({"environment": {"resources": []}, "resources": [{"name": "one"}]});
    assert!(summaries(resources(nested))[0].starts_with("EN009 warn environment.resources"));
    let twice = json!({"environmentConfigs": [{"type": "Selector", "selector": {"matchLabels": [
        {"key": "a", "valueFromFieldPath": "spec.a"}, {"key": "a", "type": "Value", "value": "b"}]}}]});
    assert!(summaries(configs(twice))[0].starts_with("EN009 warn spec.environmentConfigs[0].selector.matchLabels[0]"));
}

#[test]
fn checks_patch_sets_at_definition_and_use() {
    let spec = json!({
        "patchSets": [{"name": "common", "patches": [{"type": "PatchSet", "patchSetName": "common"}, {"type": "FromEnvironmentFieldPath", "fromFieldPath": "a["}]}],
        "resources": [{"name": "r", "base": {}, "patches": [{"type": "PatchSet", "patchSetName": "commom"}, {"type": "PatchSet", "patchSetName": "common"}]}],
    });
    let found = summaries(composition(&spec));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("EN001 deny spec.patchSets[0].patches[0].type: Unsupported value"));
    assert_eq!(
        found[1],
        "EN001 deny spec.resources[0].patches[0].patchSetName: Invalid value: \"commom\": no patch set has this name"
    );
    assert!(found[2].starts_with("EN002 deny spec.patchSets[0].patches[1].fromFieldPath"));
}

#[test]
fn warns_about_errors_that_an_update_does_not_change() {
    let wrong = native(json!({"environmentConfigs": [{"type": "Reference"}]}));
    let mut touched = wrong.clone();
    touched["metadata"]["labels"] = json!({"a": "b"});
    let case = Case::new(Operation::Create, touched.clone()).update(wrong.clone());
    assert!(case.decide(Phase::Validate).is_allowed());
    touched["spec"]["environment"]["patches"] = json!([{}]);
    assert!(!Case::new(Operation::Create, touched).update(wrong).decide(Phase::Validate).is_allowed());
}

/// The example Composition of Crossplane's first design document of environments, unchanged.
const FIRST_DESIGN: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: example}
spec:
  compositeTypeRef: {apiVersion: demo.org/v1alpha1, kind: XExample}
  environment:
    environmentConfigs:
      - type: Reference
        reference: {name: example-environment}
      - type: Selector
        selector:
          - matchLabels:
              - {type: FromCompositeFieldPath, key: stage, valueFromFieldPath: spec.parameters.stage}
              - {type: Value, key: my-label, value: \"metadata.labels[my-label]\"}
    patches:
      - {type: FromCompositeFieldPath, fromFieldPath: spec.widgets, toFieldPath: widgets.count}
      - {type: FromEnvironmentFieldPath, fromFieldPath: spec.widgets, toFieldPath: widgets.count}
";

#[test]
fn suggests_the_current_syntax_for_the_first_design() {
    let findings = found(objects(FIRST_DESIGN).remove(0));
    let help = |field: &str| {
        let finding = findings.iter().find(|finding| finding.field.to_string().ends_with(field));
        let finding = finding.unwrap_or_else(|| panic!("{field}: {findings:?}"));
        format!("{} {}", finding.message, finding.help.clone().unwrap_or_default())
    };
    assert!(help("environmentConfigs[0].reference").contains("write ref: {\"name\":\"example-environment\"}"));
    assert!(help("environmentConfigs[1].selector").contains("write selector: {matchLabels: [...]}"));
    assert!(help("matchLabels[1].value").contains("valueFromFieldPath"));
    assert!(help("patches[1].type").contains("write type: ToCompositeFieldPath"));
}

fn environment_config(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
           "metadata": {"name": name, "labels": labels}, "data": {}})
}

/// Returns field and message of every finding of EN006 about the Composition `object`. EN006 compares a Composition
/// with the objects in the cluster, which are `stored`.
fn en006_findings(object: Value, stored: &[Value]) -> Vec<String> {
    let verdict = Case::new(Operation::Create, object).stored(stored.to_vec()).decide(Phase::Validate);
    let line = |finding: &Finding| format!("{}: {}", finding.field, finding.message);
    verdict.findings.iter().filter(|finding| finding.rule == "EN006").map(line).collect()
}

fn selector(fields: Value, labels: &[(&str, &str)]) -> Value {
    let matchers: Vec<_> =
        labels.iter().map(|(key, value)| json!({"type": "Value", "key": key, "value": value})).collect();
    let mut selector = json!({"matchLabels": matchers});
    selector.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    native(json!({"environmentConfigs": [{"type": "Selector", "selector": selector}]}))
}

#[test]
fn checks_selectors_against_the_cluster() {
    let stored = [
        environment_config("prod-eu", json!({"stage": "production", "region": "eu"})),
        environment_config("prod-us", json!({"stage": "production", "region": "us"})),
        environment_config("dev", json!({"stage": "development"})),
    ];
    let place = "spec.environment.environmentConfigs[0].selector";
    assert_eq!(en006_findings(selector(json!({}), &[("stage", "development")]), &stored), Vec::<String>::new());
    assert_eq!(
        en006_findings(selector(json!({}), &[("stage", "production")]), &stored),
        [format!(
            "{place}: 2 EnvironmentConfigs have the label stage=production, but mode Single allows only one: prod-eu, \
             prod-us; select by more labels, or set mode: Multiple"
        )]
    );
    assert_eq!(
        en006_findings(selector(json!({}), &[("region", "eu"), ("stage", "productoin")]), &stored),
        [format!(
            "{place}: no EnvironmentConfig has the labels region=eu, stage=productoin; existing values of stage: production, \
             development"
        )]
    );
    let many = |least: u64| selector(json!({"mode": "Multiple", "minMatch": least}), &[("stage", "production")]);
    assert_eq!(en006_findings(many(2), &stored), Vec::<String>::new());
    assert_eq!(
        en006_findings(many(3), &stored)[0].split(";").next(),
        Some(&*format!("{place}: 2 EnvironmentConfigs have the label stage=production, but minMatch is 3"))
    );
    assert_eq!(
        en006_findings(selector(json!({"mode": "Multiple"}), &[("stage", "none")]), &stored),
        Vec::<String>::new()
    );
    assert_eq!(
        en006_findings(selector(json!({}), &[("zone", "a")]), &stored)[0].split("; ").nth(1),
        Some("no EnvironmentConfig has a label zone")
    );
}

#[test]
fn does_not_report_optional_fields() {
    let reference = json!([{"ref": {"name": "missing"}}]);
    assert_eq!(en006_findings(native(json!({"environmentConfigs": reference})), &[]).len(), 1);
    assert_eq!(en006_findings(configs(json!({"environmentConfigs": reference})), &[]).len(), 1);
    let optional = json!({"environmentConfigs": reference, "policy": {"resolution": "Optional"}});
    assert_eq!(en006_findings(native(optional.clone()), &[]), Vec::<String>::new());
    assert_eq!(en006_findings(configs(optional), &[]), Vec::<String>::new());
}

#[test]
fn uses_go_regular_expressions() {
    let regexp = |pattern: &str, group: i64| {
        let transform =
            json!({"type": "string", "string": {"type": "Regexp", "regexp": {"match": pattern, "group": group}}});
        summaries(native(json!({"patches": [{"fromFieldPath": "spec.a", "transforms": [transform]}]})))
    };
    for (pattern, group) in [(r"^(\d+)-(.*)$", 2), (r"\Qa.b\E", 0), ("{name}", 0), ("[[a]", 0), ("(?P<n>a)", 1)] {
        assert_eq!(regexp(pattern, group), Vec::<String>::new(), "{pattern}");
    }
    for (pattern, group, field) in
        [("(?=a)", 0, "match"), (r"(a)\1", 0, "match"), ("(", 0, "match"), ("(a)", 2, "group"), ("a", -1, "group")]
    {
        let found = regexp(pattern, group);
        assert!(
            found.len() == 1
                && found[0]
                    .starts_with(&format!("EN003 deny patches[0].transforms[0].string.regexp.{field}: Invalid value")),
            "{found:?}"
        );
    }
}

/// The schema that the Compositions in the next tests declare for their environment.
const SCHEMA: &str = "
type: object
required: [region]
properties:
  region: {type: string}
  size: {type: integer}
  network: {type: object, properties: {subnets: {type: array, items: {type: string}}}}
";

fn with_annotation(mut composition: Value, annotation: &str, text: &str) -> Value {
    composition["metadata"]["annotations"] = json!({format!("portcullis.dev/{annotation}"): text});
    composition
}

/// Returns level, field and message of every finding of EN008 about the Composition `object`. `stored` are the objects
/// in the cluster.
fn en008_findings(object: Value, stored: &[Value]) -> Vec<String> {
    let verdict = Case::new(Operation::Create, object).stored(stored.to_vec()).decide(Phase::Validate);
    let found = verdict.findings.iter().filter(|finding| finding.rule == "EN008");
    found.map(|finding| format!("{} {}: {}", finding.level, finding.field, finding.message)).collect()
}

fn to_composite_patch(path: &str, transforms: Value) -> Value {
    json!({"type": "ToCompositeFieldPath", "fromFieldPath": path, "toFieldPath": "spec.x", "transforms": transforms})
}

#[test]
fn checks_patches_with_the_declared_schema() {
    let upper = json!([{"type": "string", "string": {"type": "Convert", "convert": "ToUpper"}}]);
    let map = json!([{"type": "map", "map": {"a": "b"}}]);
    let twice = json!([{"type": "math", "math": {"type": "Multiply", "multiply": 2}}]);
    for make in
        [native as fn(Value) -> Value, |environment| resources(json!({"environment": environment, "resources": []}))]
    {
        let found = |patch: Value| {
            en008_findings(with_annotation(make(json!({"patches": [patch]})), "environment-schema", SCHEMA), &[])
        };
        for (path, transforms) in [("region", &upper), ("region", &map), ("size", &twice), ("network.subnets[0]", &map)]
        {
            assert_eq!(found(to_composite_patch(path, transforms.clone())), Vec::<String>::new(), "{path}");
        }
        let misspelled = found(to_composite_patch("network.subnet[0]", json!([])));
        assert_eq!(misspelled.len(), 1, "{misspelled:?}");
        assert!(
            misspelled[0].starts_with("warn spec.") && misspelled[0].contains("environment.patches[0].fromFieldPath")
        );
        assert!(
            misspelled[0].ends_with("the environment's schema has no such field; network has subnets"),
            "{misspelled:?}"
        );
        for (path, transforms, words) in [
            ("size", &map, "a map transform cannot take a number"),
            ("region", &twice, "a math transform cannot take a string"),
            ("network.subnets", &map, "a map transform cannot take a list"),
            ("region.name", &map, "the environment's schema has no such field"),
        ] {
            let found = found(to_composite_patch(path, transforms.clone()));
            assert!(found.len() == 1 && found[0].contains(words), "{path}: {found:?}");
        }
        let combined = json!({"type": "CombineToComposite", "toFieldPath": "spec.x", "combine": {"strategy": "string",
            "string": {"fmt": "%s-%s"}, "variables": [{"fromFieldPath": "region"}, {"fromFieldPath": "zone"}]}});
        let found = found(combined);
        assert!(found.len() == 1 && found[0].contains("combine.variables[1].fromFieldPath"), "{found:?}");
    }
}

#[test]
fn accepts_fields_that_the_composition_writes() {
    let own = json!({"defaultData": {"zone": "a"}, "patches": [
        {"fromFieldPath": "spec.name", "toFieldPath": "own.name"}, to_composite_patch("own.name", json!([])),
        to_composite_patch("zone", json!([]))]});
    assert_eq!(en008_findings(with_annotation(native(own), "environment-schema", SCHEMA), &[]), Vec::<String>::new());
    // Another function in the pipeline may write any value to the environment.
    let mut piped =
        resources(json!({"environment": {"patches": [to_composite_patch("other", json!([]))]}, "resources": []}));
    assert_eq!(en008_findings(with_annotation(piped.clone(), "environment-schema", SCHEMA), &[]).len(), 1);
    piped["spec"]["pipeline"].as_array_mut().unwrap().insert(0, json!({"step": "other"}));
    assert_eq!(en008_findings(with_annotation(piped, "environment-schema", SCHEMA), &[]), Vec::<String>::new());
}

#[test]
fn checks_patches_of_composed_resources_with_the_schema() {
    let mut composition = native(json!({}));
    composition["spec"]["patchSets"] = json!([{"name": "common", "patches": [
        {"type": "FromEnvironmentFieldPath", "fromFieldPath": "zone", "toFieldPath": "a"}]}]);
    composition["spec"]["resources"] = json!([{"name": "one", "base": {}, "patches": [
        {"type": "PatchSet", "patchSetName": "common"},
        {"type": "FromEnvironmentFieldPath", "fromFieldPath": "region", "toFieldPath": "b"},
        {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.any", "toFieldPath": "c"},
        {"type": "FromEnvironmentFieldPath", "fromFieldPath": "regions", "toFieldPath": "d"}]}]);
    let found = en008_findings(with_annotation(composition, "environment-schema", SCHEMA), &[]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("spec.patchSets[0].patches[0].fromFieldPath"), "{found:?}");
    assert!(found[1].contains("spec.resources[0].patches[3].fromFieldPath"), "{found:?}");
}

#[test]
fn reads_the_schema_from_a_named_config_map() {
    let wrong = || native(json!({"patches": [to_composite_patch("zone", json!([]))]}));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "schemas", "namespace": "platform"},
                     "data": {"environment.yaml": SCHEMA}});
    let from = |reference: &str| {
        en008_findings(with_annotation(wrong(), "environment-schema-from", reference), std::slice::from_ref(&map))
    };
    let found = from("platform/schemas/environment.yaml");
    assert!(found.len() == 1 && found[0].contains("the environment's schema has no such field"), "{found:?}");
    let place = "warn metadata.annotations[portcullis.dev/environment-schema-from]: ";
    for (reference, words) in [
        ("platform/schemas/other.yaml", "names other.yaml of ConfigMap platform/schemas, which does not exist"),
        ("platform/missing/environment.yaml", "names ConfigMap platform/missing, which does not exist"),
        ("schemas", "must name a key of a ConfigMap, as NAMESPACE/NAME/KEY"),
    ] {
        let found = from(reference);
        assert!(found.len() == 1 && found[0].starts_with(place) && found[0].contains(words), "{found:?}");
    }
}

#[test]
fn reports_an_unreadable_schema() {
    for text in ["{", "[]", "type: text", "$ref: '#/nowhere'", "properties: {a: 1}"] {
        let wrong = with_annotation(native(json!({"patches": [{"type": "Nope"}]})), "environment-schema", text);
        let found = en008_findings(wrong.clone(), &[]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with("warn metadata.annotations[portcullis.dev/environment-schema]: "), "{found:?}");
        assert!(summaries(wrong).iter().any(|line| line.starts_with("EN001 deny patches[0].type")));
    }
}

/// The cases of Crossplane's `TestEnvironmentPatchValidate`, `TestEnvironmentSourceSelectorValidate` and
/// `TestCompositionValidateEnvironment`.
#[test]
fn validation_cases_of_upstream() {
    let single = |bound: &str| {
        json!({"environmentConfigs": [{"type": "Selector", "selector": {"mode": "Single", bound: 1,
            "matchLabels": [{"key": "a", "type": "Value", "value": "b"}]}}]})
    };
    let patch = json!({"type": "ToCompositeFieldPath", "fromFieldPath": "a", "toFieldPath": "spec.a"});
    let no_name = json!({"type": "Reference", "ref": {}});
    let no_key = json!({"type": "Selector", "selector": {"matchLabels": [{"type": "Value", "value": "b"}]}});
    let no_from = json!({"type": "FromCompositeFieldPath", "toFieldPath": "a"});
    let combine = json!({"variables": [{"fromFieldPath": "spec.a"}], "strategy": "string", "string": {"fmt": "%s"}});
    let name = "environmentConfigs[0].ref.name";
    let key = "environmentConfigs[0].selector.matchLabels[0].key";
    let rows: Vec<(&str, Value, Vec<&str>)> = vec![
        ("ValidPatch", json!({"patches": [patch]}), vec![]),
        ("InvalidPatchMissingFromFieldPath", json!({"patches": [no_from]}), vec!["patches[0].fromFieldPath"]),
        (
            "InvalidPatchMissingToFieldPath",
            json!({"patches": [{"type": "CombineFromComposite", "combine": combine}]}),
            vec!["patches[0].toFieldPath"],
        ),
        ("ErrorModeSingleWithMaxMatch", single("maxMatch"), vec!["environmentConfigs[0].selector.maxMatch"]),
        ("ErrorModeSingleWithMinMatch", single("minMatch"), vec!["environmentConfigs[0].selector.minMatch"]),
        ("ValidEmptyEnvironment", json!({}), vec![]),
        ("ValidNilEnvironment", Value::Null, vec![]),
        (
            "ValidEnvironment",
            json!({"patches": [patch], "environmentConfigs": [{"type": "Reference", "ref": {"name": "a"}}]}),
            vec![],
        ),
        ("InvalidPatchEnvironment", json!({"patches": [no_from]}), vec!["patches[0].fromFieldPath"]),
        ("InvalidEnvironmentSourceReferenceNoName", json!({"environmentConfigs": [no_name]}), vec![name]),
        ("InvalidEnvironmentSourceSelectorNoKey", json!({"environmentConfigs": [no_key]}), vec![key]),
        (
            "InvalidMultipleErrors",
            json!({"environmentConfigs": [no_name], "patches": [no_from, no_from]}),
            vec![name, "patches[0].fromFieldPath", "patches[1].fromFieldPath"],
        ),
    ];
    for (name, environment, fields) in rows {
        let found = summaries(native(environment));
        assert_eq!(found.len(), fields.len(), "{name}: {found:?}");
        for (found, field) in found.iter().zip(fields) {
            assert!(found.starts_with(&format!("EN001 deny {field}: ")), "{name}: {found}");
        }
    }
}

/// Returns the Composition of a test case. For each test case, the result of Crossplane is recorded in a file.
fn executed_composition(case: &Value) -> Value {
    let mut spec = case["spec"].clone();
    if case["profile"] == "function" {
        let steps = case["resources"].as_array().unwrap().iter().enumerate();
        let mut pipeline = vec![json!({"step": "environment", "input": case["input"]})];
        pipeline.extend(steps.map(|(at, input)| json!({"step": format!("resources-{at}"), "input": input})));
        spec = json!({"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XExample"}, "mode": "Pipeline",
                      "pipeline": pipeline});
    }
    json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "example"}, "spec": spec})
}

/// Returns the CompositeResourceDefinition of the composite in the recorded cases.
fn executed_definition() -> Value {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {
        "stage": text, "region": text, "text": text, "number": text, "size": {"type": "integer"}, "ratio": {"type": "number"},
        "enabled": {"type": "boolean"}, "tags": {"type": "object", "additionalProperties": text},
        "list": {"type": "array", "items": {"type": "object", "properties": {"name": text}}}, "none": text,
    }});
    json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xexamples.example.org", "labels": {"portcullis.dev/composites": "true"}},
        "spec": {"group": "example.org", "names": {"kind": "XExample", "plural": "xexamples"}, "versions": [
            {"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {"type": "object",
             "properties": {"spec": spec}}}}]}})
}

/// Regression test for issue 18 (Crossplane, items 7 and 8): a Composition is denied only if Crossplane rejects it,
/// fails, panics, or writes an error text such as `%!d(string=a)` as a value. In each of these cases, there is a
/// finding about the Composition or about the composite. The finding is about the composite if the outcome depends on a
/// value in the composite.
#[test]
fn denies_compositions_only_if_crossplane_fails() {
    let vectors = cases::vectors("crossplane/compositions.json");
    let mut stored: Vec<Value> = vectors["configs"].as_array().unwrap().clone();
    stored.push(executed_definition());
    let mut wrong = Vec::new();
    for case in vectors["cases"].as_array().unwrap() {
        let composition = executed_composition(case);
        let outcome = case["outcome"].as_str().unwrap();
        let findings = |case: Case| case.decide(Phase::Validate).findings;
        let found = findings(Case::new(Operation::Create, composition.clone()).stored(stored.clone()));
        let is_denied = found.iter().any(|finding| finding.level == Level::Deny);
        let mut with = stored.clone();
        with.push(composition);
        let policy = config::parse("environmentConfigs: {native: enabled}\n", "test", &Registry::standard()).unwrap();
        let composite = Case::new(Operation::Create, vectors["composite"].clone()).stored(with).policy(policy);
        let of_composite = findings(composite);
        let shown: Vec<_> = found
            .iter()
            .chain(&of_composite)
            .map(|finding| format!("{} {} {}", finding.rule, finding.level, finding.headline()))
            .collect();
        let name = format!("{} {}: {outcome} {}", case["profile"], case["name"], case["error"]);
        if is_denied && outcome == "works" {
            wrong.push(format!("denied, and works: {name}: {shown:?}"));
        }
        if outcome != "works" && shown.is_empty() {
            wrong.push(format!("not found: {name}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        vectors["cases"].as_array().unwrap().len(),
        wrong.join("\n")
    );
}

/// For each recorded case that passes Crossplane's validation, the engine has the same result as Crossplane. If
/// Crossplane returns an error or panics, the engine returns an error.
#[test]
fn executed_compositions_have_the_recorded_outcome() {
    use portcullis::crossplane::environment::{ActionOutcome, compute};
    let vectors = cases::vectors("crossplane/compositions.json");
    let configs = vectors["configs"].as_array().unwrap().iter();
    let configs: Vec<_> =
        configs.map(|config| std::sync::Arc::new(portcullis::catalog::Stored::new(config.clone()))).collect();
    let mut wrong = Vec::new();
    for case in vectors["cases"].as_array().unwrap() {
        let outcome = case["outcome"].as_str().unwrap();
        let Some(declaration) = portcullis::crossplane::composition::declaration(&executed_composition(case)) else {
            if ["works", "garbage"].contains(&outcome) {
                wrong.push(format!("cannot be decoded: {} {}", case["profile"], case["name"]));
            }
            continue;
        };
        let computation = compute(&declaration, &vectors["composite"], configs.as_slice());
        let templates = computation.steps.iter().flat_map(|step| match &step.action {
            ActionOutcome::Patched { templates, .. } => templates.as_slice(),
            _ => &[],
        });
        let not_rendered = templates.filter_map(|template| template.rendered.as_ref().err().cloned()).next();
        let failure = computation.failure.clone().or(not_rendered);
        let is_garbage = computation.steps.iter().any(|step| match &step.action {
            ActionOutcome::Patched { environment, templates } => {
                let composed =
                    templates.iter().flat_map(|template| template.patches.iter().map(|(_, outcome)| outcome));
                environment.iter().chain(composed).any(|outcome| !outcome.mistakes.is_empty())
            }
            _ => false,
        });
        let is_validated = case["error"].as_str().is_some_and(|error| {
            error.contains("invalid Function input") || error.contains("cannot get Function input")
        });
        let computed = match (failure, is_garbage) {
            (Some(_), _) => "fails",
            (None, true) => "garbage",
            (None, false) => "works",
        };
        let is_right = match outcome {
            "refused" => true,
            "fails" | "panics" => computed == "fails" || is_validated,
            other => computed == other,
        };
        if !is_right {
            wrong.push(format!(
                "{} {}: {outcome}, and computed: {computed}: {:?}",
                case["profile"], case["name"], computation.failure
            ));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Regression test for issue 18 (Crossplane, item 8): if a patch fails for every composite, the finding is about
/// the Composition.
#[test]
fn reports_values_that_transforms_reject() {
    let vectors = cases::vectors("crossplane/compositions.json");
    let mut stored: Vec<Value> = vectors["configs"].as_array().unwrap().clone();
    stored.push(executed_definition());
    let reported = |patch: Value, resource: Value| {
        let spec = json!({"environment": {"environmentConfigs": [{"type": "Reference", "ref": {"name": "base"}}], "patches": patch},
                          "resources": [{"name": "one", "base": {"apiVersion": "v1", "kind": "ConfigMap"}, "patches": resource}]});
        let decided = Case::new(Operation::Create, composition(&spec)).stored(stored.clone()).decide(Phase::Validate);
        decided
            .findings
            .iter()
            .map(|finding| format!("{} {} {}", finding.rule, finding.level, finding.headline()))
            .collect::<Vec<_>>()
    };
    let map = json!({"type": "map", "map": {"a": "b"}});
    let multiply = json!({"type": "math", "math": {"type": "Multiply", "multiply": 2}});
    let convert = json!({"type": "convert", "convert": {"toType": "int64"}});
    let from = |path: &str, transforms: Value| json!([{"type": "FromCompositeFieldPath", "fromFieldPath": path, "toFieldPath": "out", "transforms": transforms}]);
    for (path, transforms, words) in [
        ("spec.size", json!([map]), "a map transform cannot take a number"),
        ("spec.text", json!([multiply]), "a math transform cannot take a string"),
        ("spec.list[*].name", json!([]), "a wildcard is not expanded in a path that is read"),
    ] {
        let found = reported(from(path, transforms), json!([]));
        let is_expected = |line: &String| {
            line.starts_with("EN003 warn") && line.contains("spec.environment.patches[0]") && line.contains(words)
        };
        assert!(found.iter().any(is_expected), "{path}: {found:?}");
    }
    let to = |path: &str, transforms: Value| json!([{"type": "FromEnvironmentFieldPath", "fromFieldPath": path, "toFieldPath": "data.out", "transforms": transforms}]);
    for (path, transforms) in [
        ("size", json!([map])),
        ("text", json!([multiply])),
        ("text", json!([convert])),
        ("network.subnets[*].id", json!([])),
    ] {
        let found = reported(json!([]), to(path, transforms));
        let expected = "EN008 warn EN008 spec.resources[0].patches[0]: fails with the data of the currently selected EnvironmentConfigs: ";
        assert!(found.iter().any(|line| line.starts_with(expected)), "{path}: {found:?}");
    }
    assert_eq!(reported(from("spec.number", json!([convert])), to("region", json!([]))), Vec::<String>::new());
    assert_eq!(reported(from("spec.size", json!([multiply])), to("size", json!([multiply]))), Vec::<String>::new());
}
