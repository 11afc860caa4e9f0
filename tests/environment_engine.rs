//! Tests of the engine of composition environments. Tests with recorded results are in `tests/environment.rs`. In this
//! file, upstream means Crossplane and its functions. The tests are:
//!
//! - the cases of upstream's unit tests, with upstream's names
//! - the scenarios of upstream's end-to-end tests, with recorded values
//! - property tests
//!
//! `tests/cases/crossplane_names.md` maps the names of upstream's tests to these tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::sync::Arc;

use cases::objects;
use portcullis::catalog::Stored;
use portcullis::crossplane::composition::declaration;
use portcullis::crossplane::environment::{
    ActionOutcome, Computation, Ending, Layer, LayerName, Merged, Patch, Patching, Profile, Selection, SourceOutcome,
    Transform, compute, invalid_environment_patches, select, with_kind,
};
use portcullis::go::Any;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NATIVE: Profile = Profile::Native117;
const FUNCTION: Profile = Profile::Function;

fn yaml(text: &str) -> Value {
    objects(text).remove(0)
}

fn configs(text: &str) -> Vec<Arc<Stored>> {
    objects(text).into_iter().map(|object| Arc::new(Stored::new(object))).collect()
}

fn selection(text: &str) -> Selection {
    let value = yaml(text);
    let sources = value.get("environmentConfigs").map(|sources| serde_json::from_value(sources.clone()).unwrap());
    let policy = value.get("policy").map(|policy| serde_json::from_value(policy.clone()).unwrap());
    let default_data = value.get("defaultData").and_then(Value::as_object).cloned();
    Selection { default_data, sources, policy: policy.unwrap_or_default() }
}

/// The names of the selected EnvironmentConfigs, or the error.
type SelectionResult = Result<Vec<String>, String>;

/// Returns the names of the EnvironmentConfigs in `all` that `sources` select for `composite`. `profile` says whether
/// Crossplane or a function selects them.
fn selected(profile: Profile, sources: &str, composite: &str, all: &str) -> SelectionResult {
    let all = configs(all);
    let sources = select(profile, &selection(sources), &yaml(composite), all.as_slice());
    if let Some(error) = sources.iter().find_map(|source| source.error.clone()) {
        return Err(error);
    }
    let names =
        |source: &SourceOutcome| source.selected.iter().map(|stored| stored.name().to_owned()).collect::<Vec<_>>();
    Ok(sources.iter().flat_map(names).collect())
}

const STAGES: &str = "
{kind: EnvironmentConfig, metadata: {name: b, labels: {stage: prod}}, data: {priority: 1, weight: 2.5, mixed: 1, key: {a: b}}}
---
{kind: EnvironmentConfig, metadata: {name: a, labels: {stage: prod}}, data: {priority: 2, weight: 0.5, mixed: x, key: {a: c}}}
---
{kind: EnvironmentConfig, metadata: {name: c, labels: {stage: dev, '3': 'true'}}, data: {priority: 3}}
";
const COMPOSITE: &str = "{kind: X, metadata: {name: x}, spec: {stage: prod, dev: dev, number: 3, list: [1]}}";

fn prod(more: &str) -> String {
    format!(
        "{{environmentConfigs: [{{type: Selector, selector: {{matchLabels: [{{key: stage, type: Value, value: prod}}], {more}}}}}]}}"
    )
}

fn label(matcher: &str) -> String {
    format!("{{environmentConfigs: [{{type: Selector, selector: {{matchLabels: [{matcher}]}}}}]}}")
}

/// Tests the cases of Crossplane's `TestSelect`. Each case has two expected results: that of Crossplane, and that of
/// function-environment-configs.
#[test]
fn select_cases_of_upstream() {
    let ok = |names: &[&str]| Ok(names.iter().map(ToString::to_string).collect::<Vec<_>>());
    let native = |error: &str| Err(format!("cannot select environment: failed to build reference at index 0: {error}"));
    let function = |error: &str| {
        let source = "cannot process environment config \"environment-config-0\" by selector";
        Err(format!("cannot get selected environment configs: {source}: {error}"))
    };
    let path = |path: &str| label(&format!("{{key: stage, valueFromFieldPath: {path}}}"));
    let optional =
        |path: &str| label(&format!("{{key: stage, valueFromFieldPath: {path}, fromFieldPathPolicy: Optional}}"));
    let multiple = |more: &str| prod(&format!("mode: Multiple, {more}"));
    let rows: Vec<(&str, String, SelectionResult, SelectionResult)> = vec![
        ("NoopOnNilEnvironmentSources", "{}".into(), ok(&[]), ok(&[])),
        ("EmptyRefsOnEmptyConfigRefs", "{environmentConfigs: []}".into(), ok(&[]), ok(&[])),
        ("RefForRef", "{environmentConfigs: [{ref: {name: c}}]}".into(), ok(&["c"]), ok(&["c"])),
        ("RefForLabelSelectedObjects", label("{key: stage, type: Value, value: dev}"), ok(&["c"]), ok(&["c"])),
        ("RefForLabelSelectedObjectWithLabelValueFromFieldPath", path("spec.dev"), ok(&["c"]), ok(&["c"])),
        ("RefForFirstLabelSelectedObject", multiple("maxMatch: 1"), ok(&["a"]), ok(&["a"])),
        (
            "ErrorOnMultipleObjectsInSingleMode",
            prod(""),
            native("only 1 EnvironmentConfig can be selected in Single mode, found: 2"),
            function("expected exactly one required resource, got 2"),
        ),
        (
            "RefsInOrder",
            "{environmentConfigs: [{ref: {name: c}}, {ref: {name: a}}, {ref: {name: c}}]}".into(),
            ok(&["c", "a", "c"]),
            ok(&["c", "a", "c"]),
        ),
        (
            "NoReferenceOnKubeListEmpty",
            label("{key: stage, type: Value, value: none}"),
            native("only 1 EnvironmentConfig can be selected in Single mode, found: 0"),
            function("expected exactly one required resource, got 0"),
        ),
        (
            "ErrSelectNotFoundRequiredConfig",
            multiple("minMatch: 3"),
            native("expected at least 3 EnvironmentConfig(s) with matching labels, found: 2"),
            function("expected at least 3 required resources, got 2"),
        ),
        (
            "ErrorOnInvalidLabelValueFieldPath",
            path("'spec[]'"),
            native("failed to resolve value for label at index 0: cannot parse path \"spec[]\": unexpected ']' at position 5"),
            Err("cannot build requirements: cannot get value from composite field path \"spec[]\": cannot parse path \"spec[]\": unexpected ']' at position 5".into()),
        ),
        (
            "NoErrorOnInvalidOptionalLabelValueFieldPath",
            optional("spec.nope"),
            native("only 1 EnvironmentConfig can be selected in Single mode, found: 0"),
            ok(&[]),
        ),
        (
            "ErrorOnInvalidRequiredLabelValueFieldPath",
            path("spec.nope"),
            native("failed to resolve value for label at index 0: spec.nope: no such field"),
            Err("cannot build requirements: cannot get value from composite field path \"spec.nope\": spec.nope: no such field".into()),
        ),
        ("AllRefsSortedInMultiMode", multiple(""), ok(&["a", "b"]), ok(&["a", "b"])),
        ("MaxMatchRefsSortedInMultiMode", multiple("maxMatch: 1, sortByFieldPath: metadata.name"), ok(&["a"]), ok(&["a"])),
        ("MaxMatchRefsSortedByFloatInMultiMode", multiple("maxMatch: 1, sortByFieldPath: data.weight"), ok(&["a"]), ok(&["a"])),
        ("MaxMatchRefsSortedByIntInMultiMode", multiple("maxMatch: 1, sortByFieldPath: data.priority"), ok(&["b"]), ok(&["b"])),
        (
            "ErrSelectOnNotMatchingType",
            multiple("sortByFieldPath: data.mixed"),
            native("not matching types, got 1 (int64), expected string"),
            function("cannot sort values of different types \"string\" and \"float64\""),
        ),
        (
            "ErrSelectOnUnexpectedType",
            multiple("sortByFieldPath: data.key"),
            native("unexpected type map[string]interface {}"),
            function("unsupported type \"map\" for sorting"),
        ),
        (
            "ErrSelectOnInvalidFieldPath",
            multiple("sortByFieldPath: 'data['"),
            native("cannot parse path \"data[\": unterminated '[' at position 4"),
            function("cannot parse path \"data[\": unterminated '[' at position 4"),
        ),
        (
            "RequestEnvironmentConfigs, RequestEnvironmentConfigsFound",
            "{environmentConfigs: [{ref: {name: a}}, {type: Selector, selector: {matchLabels: [{key: stage, valueFromFieldPath: spec.dev}]}}]}".into(),
            ok(&["a", "c"]),
            ok(&["a", "c"]),
        ),
        (
            "RequestEnvironmentConfigsNotFoundRequired",
            "{environmentConfigs: [{ref: {name: nope}}]}".into(),
            Err("cannot fetch environment: cannot fetch environment configs: failed to get config set from reference: environmentconfigs.apiextensions.crossplane.io \"nope\" not found".into()),
            Err("cannot get selected environment configs: cannot process environment config \"nope\" by reference, \"environment-config-0\": Required environment config \"nope\" not found".into()),
        ),
        (
            "SelectorWithOptionalFieldPathNotProvided",
            "{environmentConfigs: [{type: Selector, selector: {mode: Multiple, matchLabels: [{key: stage, valueFromFieldPath: spec.nope, fromFieldPathPolicy: Optional}]}}]}".into(),
            ok(&[]),
            ok(&[]),
        ),
        (
            "SelectorSingleModeWithOptionalFieldPathNotProvided",
            optional("spec.neither"),
            native("only 1 EnvironmentConfig can be selected in Single mode, found: 0"),
            ok(&[]),
        ),
        // Cases that upstream does not have: numbers as labels, and a path to a value that is not a scalar.
        ("a number as a label", label("{key: '3', type: Value, value: 'true'}"), ok(&["c"]), ok(&["c"])),
        (
            "a label that is no string",
            path("spec.number"),
            native("only 1 EnvironmentConfig can be selected in Single mode, found: 0"),
            Err("cannot build requirements: cannot get value from composite field path \"spec.number\": spec.number: not a string".into()),
        ),
        ("maxMatch of zero", multiple("maxMatch: 0"), ok(&[]), ok(&[])),
        (
            "the last of two matchers with one key",
            label("{key: stage, type: Value, value: prod}, {key: stage, type: Value, value: dev}"),
            ok(&["c"]),
            ok(&["c"]),
        ),
    ];
    for (name, sources, native, function) in rows {
        // Upstream lists objects in no defined order. If the sort keys have different types, the order determines which
        // type the error names.
        let swapped = |result: SelectionResult| {
            result.map_err(|error| {
                error
                    .replace("got x (string), expected int64", "got 1 (int64), expected string")
                    .replace("\"float64\" and \"string\"", "\"string\" and \"float64\"")
            })
        };
        assert_eq!(swapped(selected(NATIVE, &sources, COMPOSITE, STAGES)), native, "{name}, native");
        assert_eq!(swapped(selected(FUNCTION, &sources, COMPOSITE, STAGES)), function, "{name}, function");
    }
}

/// Tests the cases of Crossplane's `TestFetch`. In these cases, Crossplane itself (up to 1.17) merges the
/// EnvironmentConfigs to which a composite refers.
#[test]
fn fetch_cases_of_upstream() {
    let all = configs(STAGES);
    let fetched = |environment: &str, references: Value| {
        let composition = json!({"spec": {"environment": yaml(environment), "resources": []}});
        let composite = json!({"apiVersion": "e.org/v1", "kind": "X", "spec": {"environmentConfigRefs": references}});
        compute(&declaration(&composition).unwrap(), &composite, all.as_slice())
    };
    assert_eq!(declaration(&json!({"spec": {"resources": []}})), None, "NoopOnNilEnvironment: nothing is computed");
    let refs = "environmentConfigs: [{ref: {name: a}}]";
    let empty = fetched("{}", json!([]));
    assert_eq!((empty.failure, empty.environment["kind"].clone()), (None, json!("Environment")), "DefaultOnNil");
    let default = fetched("{defaultData: {x: 1}}", json!([]));
    assert_eq!(default.environment["x"], json!(1.0), "DefaultEnvironmentOnNil and DefaultEnvironmentOnEmpty");
    let merged =
        fetched(&format!("{{defaultData: {{priority: 0, x: 1}}, {refs}}}"), json!([{"name": "b"}, {"name": "a"}]));
    assert_eq!(merged.environment["priority"], json!(2.0), "MergeMultipleSourcesInOrder: {merged:?}");
    assert_eq!(merged.environment["x"], json!(1.0));
    assert_eq!(merged.references, None, "existing references are kept");
    let missing = fetched(&format!("{{{refs}}}"), json!([{"name": "nope"}]));
    assert!(missing.failure.unwrap().contains("\"nope\" not found"), "ErrorOnKubeGetError");
    let optional = fetched(&format!("{{{refs}, policy: {{resolution: Optional}}}}"), json!([{"name": "nope"}]));
    assert_eq!(optional.failure, None, "NoErrorOnKubeGetErrorIfResolutionNotRequired");
}

/// Tests the cases of Crossplane's `TestEnvironmentShouldResolve`. The references to EnvironmentConfigs are resolved if
/// the composite has none yet, or if the policy is `resolve: Always`.
#[test]
fn resolves_references_if_empty_or_always() {
    let all = configs(STAGES);
    let references = |policy: &str, own: Value| {
        let composition = json!({"spec": {"resources": [], "environment": yaml(&format!(
            "{{environmentConfigs: [{{ref: {{name: a}}}}], policy: {policy}}}"
        ))}});
        let composite = json!({"apiVersion": "e.org/v1", "kind": "X", "spec": {"environmentConfigRefs": own}});
        compute(&declaration(&composition).unwrap(), &composite, all.as_slice()).references
    };
    let resolved = Some(vec!["a".to_owned()]);
    assert_eq!(references("{}", json!([{"name": "b"}])), None, "DontResolveWhenHaveRefs");
    assert_eq!(references("{}", json!([])), resolved, "ResolveWhenNoRefs");
    assert_eq!(references("{}", Value::Null), resolved, "ResolveWhenNoRefs");
    assert_eq!(references("{resolve: Always}", json!([{"name": "b"}])), resolved, "ResolveWhenPolicyAlways");
    assert_eq!(references("{resolve: IfNotPresent}", json!([{"name": "b"}])), None, "DontResolveWhenPolicyNotAlways");
}

fn patched(profile: Profile, environment: &Value, composite: &str, patch: &str) -> (Ending, Value, Value) {
    let patch: Patch = serde_json::from_value(yaml(patch)).unwrap();
    let data = environment.as_object().unwrap().clone();
    let mut patching = Patching::new(profile, with_kind(profile, data), &yaml(composite));
    let (mut outcomes, _) = patching.environment_patches(&[patch]);
    (outcomes.remove(0).ending, patching.environment().clone(), patching.desired().clone())
}

/// Tests the cases of Crossplane's `TestPatchApply` and of function-patch-and-transform's `TestRunFunction` that patch
/// the composite or its environment.
#[test]
fn patch_cases_of_upstream() {
    let composite = "{apiVersion: e.org/v1, kind: X, metadata: {name: x}, spec: {a: A, o: {k: new}, items: [{v: 1}, {v: 2}]}, status: {connectionDetails: {lastPublishedTime: null}}}";
    let apply = |profile, patch: &str| {
        patched(profile, &json!({"e": "E", "o": {"k": "old"}, "l": [{"v": 0}, {"v": 0}]}), composite, patch)
    };
    for profile in [NATIVE, FUNCTION] {
        let (ending, environment, _) =
            apply(profile, "{type: FromCompositeFieldPath, fromFieldPath: spec.a, toFieldPath: x.y}");
        assert_eq!(
            (ending, &environment["x"]["y"]),
            (Ending::Written, &json!("A")),
            "ValidCompositeFieldPathPatch, EnvironmentPatchToEnvironment"
        );
        let (ending, environment, _) =
            apply(profile, "{type: FromCompositeFieldPath, fromFieldPath: spec.a, toFieldPath: 'l[*].v'}");
        assert_eq!(
            (ending, &environment["l"]),
            (Ending::Written, &json!([{"v": "A"}, {"v": "A"}])),
            "ValidCompositeFieldPathPatchWithWildcards"
        );
        let (ending, ..) =
            apply(profile, "{type: FromCompositeFieldPath, fromFieldPath: spec.a, toFieldPath: 'e[*].v'}");
        assert!(matches!(ending, Ending::Failed(_)), "InvalidCompositeFieldPathPatchWithWildcards");
        let (ending, ..) = apply(profile, "{type: FromCompositeFieldPath, fromFieldPath: spec.nope, toFieldPath: x}");
        assert_eq!(
            ending,
            Ending::Skipped("spec.nope: no such field".into()),
            "MissingOptionalFieldPath, EnvironmentPatchOptionalNotFoundSkipped"
        );
        let (ending, ..) = apply(
            profile,
            "{type: FromCompositeFieldPath, fromFieldPath: spec.nope, toFieldPath: x, policy: {fromFieldPath: Required}}",
        );
        assert_eq!(
            ending,
            Ending::Failed("spec.nope: no such field".into()),
            "MissingRequiredFieldPath, EnvironmentPatchRequiredNotFoundError"
        );
        let (ending, environment, _) = apply(profile, "{type: FromCompositeFieldPath, fromFieldPath: spec.a}");
        assert_eq!(
            (ending, &environment["spec"]["a"]),
            (Ending::Written, &json!("A")),
            "DefaultToFieldCompositeFieldPathPatch"
        );
        let (ending, _, desired) =
            apply(profile, "{type: ToCompositeFieldPath, fromFieldPath: e, toFieldPath: spec.e}");
        assert_eq!(
            (ending, &desired["spec"]["e"]),
            (Ending::Written, &json!("E")),
            "ValidToCompositeFieldPathPatch, PatchToCompositeWithEnvironmentPatches"
        );
        let combine = "combine: {strategy: string, string: {fmt: '%s-%s'}, variables: [{fromFieldPath: spec.a}, {fromFieldPath: metadata.name}]}";
        let combining = format!("{{type: CombineFromComposite, toFieldPath: c, {combine}}}");
        let (ending, environment, _) = apply(profile, &combining);
        assert_eq!((ending, &environment["c"]), (Ending::Written, &json!("A-x")), "ValidCombineFromComposite");
        let (ending, _, desired) = apply(
            profile,
            "{type: CombineToComposite, toFieldPath: spec.c, combine: {strategy: string, string: {fmt: '%s!'}, variables: [{fromFieldPath: e}]}}",
        );
        assert_eq!((ending, &desired["spec"]["c"]), (Ending::Written, &json!("E!")), "ValidCombineToComposite");
        let (ending, ..) = apply(profile, "{type: CombineFromComposite, toFieldPath: c}");
        assert_eq!(
            ending,
            Ending::Failed("Combine is required by type CombineFromComposite".into()),
            "MissingCombineFromCompositeConfig"
        );
        let (ending, ..) = apply(
            profile,
            "{type: CombineFromComposite, toFieldPath: c, combine: {strategy: string, string: {fmt: '%s'}, variables: [{fromFieldPath: spec.nope}]}}",
        );
        assert_eq!(
            ending,
            Ending::Skipped("spec.nope: no such field".into()),
            "NoOpOptionalInputFieldFromCompositeConfig"
        );
    }
    let (ending, _, desired) =
        apply(NATIVE, "{type: ToCompositeFieldPath, fromFieldPath: e, toFieldPath: 'spec.items[*].v'}");
    let items = json!([{"v": "E"}, {"v": "E"}]);
    assert_eq!(
        (ending, &desired["spec"]["items"]),
        (Ending::Written, &items),
        "ValidToCompositeFieldPathPatchWithWildcards"
    );
    let (ending, environment, _) =
        apply(NATIVE, "{type: FromCompositeFieldPath, fromFieldPath: status, toFieldPath: s}");
    let status = json!({"connectionDetails": {"lastPublishedTime": null}});
    assert_eq!(
        (ending, &environment["s"]),
        (Ending::Written, &status),
        "ValidCompositeFieldPathPatchWithNilLastPublishTime"
    );
    for profile in [NATIVE, FUNCTION] {
        let without = "{type: CombineFromComposite, toFieldPath: c, combine: {strategy: string, variables: [{fromFieldPath: spec.a}]}}";
        let why = Ending::Failed("given combine strategy string requires configuration".into());
        assert_eq!(apply(profile, without).0, why, "MissingCombineStrategyFromCompositeConfig");
    }
    let (_, environment, _) = apply(FUNCTION, "{type: ToEnvironmentFieldPath, fromFieldPath: spec.a, toFieldPath: x}");
    assert_eq!(environment["x"], "A", "EnvironmentPatchSupportsToEnvironmentFieldPath");
    let (ending, ..) = apply(NATIVE, "{type: FromCompositeFieldPath, toFieldPath: x}");
    assert_eq!(
        ending,
        Ending::Failed("FromFieldPath is required by type FromCompositeFieldPath".into()),
        "InvalidCompositeFieldPathPatch"
    );
    let (ending, ..) = apply(NATIVE, "{type: Nope, fromFieldPath: spec.a}");
    assert!(matches!(ending, Ending::Ignored(_)), "InvalidPatchType, FilterExcludeCompositeFieldPathPatch");
    let (ending, ..) = apply(
        NATIVE,
        "{type: CombineFromComposite, toFieldPath: c, combine: {strategy: string, string: {fmt: x}, variables: []}}",
    );
    assert_eq!(
        ending,
        Ending::Failed("combine patch types require at least one variable".into()),
        "MissingCombineVariablesFromCompositeConfig"
    );
    let merge = "{type: FromCompositeFieldPath, fromFieldPath: spec.o, toFieldPath: o, policy: {mergeOptions: {keepMapValues: true}}}";
    assert_eq!(apply(NATIVE, merge).1["o"], json!({"k": "old"}), "MergeOptionsKeepMapValues");
    assert_eq!(apply(FUNCTION, merge).1["o"], json!({"k": "new"}), "the function drops mergeOptions");
    let alias = "{type: FromEnvironmentFieldPath, fromFieldPath: e, toFieldPath: spec.e}";
    assert_eq!(apply(FUNCTION, alias).2["spec"]["e"], json!("E"), "PatchToCompositeSupportsFromEnvironmentFieldPath");
    assert!(matches!(apply(NATIVE, alias).0, Ending::Ignored(_)));
}

/// Tests patches of composed resources that read or write the environment. Resources and their patches are applied in
/// order, so later patches read what earlier patches have written.
#[test]
fn composed_resources_see_what_others_have_written() {
    let composition = "
spec:
  environment: {defaultData: {e: E}}
  patchSets:
    - {name: common, patches: [{type: FromEnvironmentFieldPath, fromFieldPath: e, toFieldPath: spec.e}]}
  resources:
    - name: first
      base: {apiVersion: v1, kind: R, spec: {own: mine}}
      patches:
        - {type: PatchSet, patchSetName: common}
        - {type: ToEnvironmentFieldPath, fromFieldPath: spec.own, toFieldPath: seen}
        - {type: ToCompositeFieldPath, fromFieldPath: status.id, toFieldPath: status.id}
        - {type: CombineToEnvironment, toFieldPath: both, combine: {strategy: string, string: {fmt: '%s+%s'}, variables: [{fromFieldPath: spec.own}, {fromFieldPath: kind}]}}
    - name: second
      base: {apiVersion: v1, kind: R, spec: {}}
      patches:
        - {type: FromEnvironmentFieldPath, fromFieldPath: seen, toFieldPath: spec.seen}
        - {type: CombineFromEnvironment, toFieldPath: spec.c, combine: {strategy: string, string: {fmt: '%s%s'}, variables: [{fromFieldPath: e}, {fromFieldPath: seen}]}}
    - name: third
      base: {apiVersion: v1, kind: R, spec: {}}
      patches:
        - {type: FromEnvironmentFieldPath, fromFieldPath: nope, toFieldPath: spec.x, policy: {fromFieldPath: Required}}
    - name: fourth
      base: {apiVersion: v1, kind: R}
      patches:
        - {type: CombineFromEnvironment, toFieldPath: spec.x}
";
    let computation = compute(&declaration(&yaml(composition)).unwrap(), &json!({"kind": "X"}), &[][..]);
    assert_eq!(computation.failure, None);
    let ActionOutcome::Patched { templates, .. } = &computation.steps[1].action else {
        panic!("the step does not patch")
    };
    assert_eq!(
        templates[0].rendered.as_ref().unwrap()["spec"],
        json!({"own": "mine", "e": "E"}),
        "ValidFromEnvironmentFieldPathPatch, FilterIncludeCompositeFieldPathPatch"
    );
    assert!(matches!(templates[0].patches[2].1.ending, Ending::Deferred(_)), "an observed resource is not known here");
    assert_eq!(
        templates[1].rendered.as_ref().unwrap()["spec"],
        json!({"seen": "mine", "c": "Emine"}),
        "ValidToEnvironmentFieldPathPatch"
    );
    assert_eq!(computation.environment["both"], "mine+R", "ValidCombineToEnvironment");
    assert_eq!(
        templates[2].rendered,
        Err("cannot apply the patch at index 0: nope: no such field".to_owned()),
        "MissingFromEnvironmentRequiredFieldPath: one that fails is not rendered, the others are"
    );
    assert_eq!(
        templates[3].rendered,
        Err("cannot apply the patch at index 0: Combine is required by type CombineFromEnvironment".to_owned()),
        "MissingCombineFromEnvironmentConfig"
    );
}

/// Tests the six scenarios of Crossplane's `environmentconfig_test.go`. The manifests are our own. The expected values
/// are those of Crossplane's test.
#[test]
fn the_scenarios_of_upstream_give_the_recorded_values() {
    let config = |name: &str, stage: &str, priority: i64, f: &str| {
        format!(
            "{{kind: EnvironmentConfig, metadata: {{name: {name}, labels: {{stage: {stage}}}}}, data: {{priority: {priority}, complex: {{f: '{f}'}}}}}}\n---\n"
        )
    };
    let first = config("first", "none", 1, "1");
    let second = config("second", "prod", 1, "2");
    let third = config("third", "prod", 2, "3");
    let reference = "{ref: {name: first}}";
    let selector = |more: &str| {
        format!(
            "{{type: Selector, selector: {{matchLabels: [{{key: stage, valueFromFieldPath: 'metadata.labels[stage]'}}], {more}}}}}"
        )
    };
    let single = selector("");
    let multiple = selector("mode: Multiple, sortByFieldPath: data.priority");
    let one = selector("mode: Multiple, maxMatch: 1, sortByFieldPath: data.priority");
    let run = |environment: &str, configs_text: &str, references: &Value| -> (Computation, Value) {
        let composition = json!({"spec": {
            "environment": yaml(environment),
            "resources": [{"name": "nop", "base": {"apiVersion": "v1", "kind": "Nop"}, "patches": [
                {"type": "FromEnvironmentFieldPath", "fromFieldPath": "complex.f", "toFieldPath": "metadata.annotations[valueFromEnv]"},
            ]}],
        }});
        let composite = json!({"apiVersion": "e.org/v1", "kind": "X", "metadata": {"labels": {"stage": "prod"}},
            "spec": {"environmentConfigRefs": references}});
        let all = configs(configs_text);
        let computation = compute(&declaration(&composition).unwrap(), &composite, all.as_slice());
        assert_eq!(computation.failure, None, "{environment}");
        let ActionOutcome::Patched { templates, .. } = &computation.steps[1].action else {
            panic!("the step does not patch")
        };
        let value = templates[0].rendered.as_ref().unwrap()["metadata"]["annotations"]["valueFromEnv"].clone();
        (computation, value)
    };
    let refs = |computation: &Computation| {
        json!(computation.references.as_ref().unwrap().iter().map(|name| json!({"name": name})).collect::<Vec<_>>())
    };
    let two = format!("{first}{second}");
    let three = format!("{first}{second}{third}");

    let (_, value) = run(&format!("{{environmentConfigs: [{reference}, {single}]}}"), &two, &json!([]));
    assert_eq!(value, "2", "default");

    let optional =
        format!("{{environmentConfigs: [{reference}, {{ref: {{name: missing}}}}], policy: {{resolution: Optional}}}}");
    assert_eq!(run(&optional, &first, &json!([])).1, "1", "resolutionOptional");

    let if_not_present =
        format!("{{environmentConfigs: [{reference}, {multiple}], policy: {{resolve: IfNotPresent}}}}");
    let (before, value) = run(&if_not_present, &two, &json!([]));
    assert_eq!(value, "2", "resolveIfNotPresent");
    assert_eq!(run(&if_not_present, &three, &refs(&before)).1, "2", "resolveIfNotPresent, with another that matches");

    let always = format!("{{environmentConfigs: [{reference}, {multiple}], policy: {{resolve: Always}}}}");
    let (before, value) = run(&always, &two, &json!([]));
    assert_eq!(value, "2", "resolveAlways");
    assert_eq!(run(&always, &three, &refs(&before)).1, "3", "resolveAlways, with another that matches");

    let all = format!("{{environmentConfigs: [{reference}, {multiple}]}}");
    assert_eq!(run(&all, &three, &json!([])).1, "3", "multipleModeMaxMatchNil");
    let most_one = format!("{{environmentConfigs: [{reference}, {one}]}}");
    assert_eq!(run(&most_one, &three, &json!([])).1, "2", "multipleModeMaxMatch1");
}

/// Checks that each step of a function pipeline continues with the environment that the previous steps have computed.
#[test]
fn a_pipeline_is_computed_step_by_step() {
    let composition = "
spec:
  mode: Pipeline
  pipeline:
    - step: first
      input:
        apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
        kind: Input
        spec:
          defaultData: {e: default, only: default}
          environmentConfigs: [{ref: {name: a}}]
    - step: second
      input:
        apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
        kind: Input
        spec:
          defaultData: {only: later, more: later}
          environmentConfigs: [{ref: {name: b}, toFieldPath: db}]
    - step: patch
      input:
        apiVersion: pt.fn.crossplane.io/v1beta1
        kind: Resources
        environment:
          patches:
            - {type: ToCompositeFieldPath, fromFieldPath: db.priority, toFieldPath: spec.written}
            - {type: FromCompositeFieldPath, fromFieldPath: spec.written, toFieldPath: back}
";
    let composite = json!({"apiVersion": "e.org/v1", "kind": "X", "spec": {"size": 1}});
    let all = configs(STAGES);
    let computation = compute(&declaration(&yaml(composition)).unwrap(), &composite, all.as_slice());
    assert_eq!(computation.failure, None);
    let environment = &computation.environment;
    assert_eq!(
        (&environment["only"], &environment["more"]),
        (&json!("default"), &json!("later")),
        "earlier steps go first"
    );
    assert_eq!(environment["db"]["priority"], json!(1.0), "ToFieldPath");
    assert_eq!(environment["priority"], json!(2.0), "MergeEnvironmentConfigs");
    assert_eq!(computation.composite["spec"], json!({"size": 1, "written": 1}), "OnlyEnvironmentPatchesIsAllowed");
    assert_eq!(environment.get("back"), None, "the composite is read as it was observed");
}

/// Checks that function-patch-and-transform applies the patches of the environment first. So the composed resources
/// read the patched environment.
#[test]
fn composed_resources_of_the_function_get_the_patched_environment() {
    let composed = |composite: Value| {
        let composition = "
spec:
  mode: Pipeline
  pipeline:
    - step: environment
      input:
        apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
        kind: Input
        spec: {environmentConfigs: [{ref: {name: a}}]}
    - step: patch
      input:
        apiVersion: pt.fn.crossplane.io/v1beta1
        kind: Resources
        environment: {patches: [{type: FromCompositeFieldPath, fromFieldPath: spec.shadow, toFieldPath: key.a}]}
        resources:
          - name: r
            base: {apiVersion: v1, kind: R}
            patches: [{type: FromEnvironmentFieldPath, fromFieldPath: key.a, toFieldPath: spec.key}]
";
        let computation = compute(&declaration(&yaml(composition)).unwrap(), &composite, configs(STAGES).as_slice());
        let ActionOutcome::Patched { templates, .. } = &computation.steps[1].action else {
            panic!("the step does not patch")
        };
        templates[0].rendered.as_ref().unwrap()["spec"]["key"].clone()
    };
    let composite = |spec: Value| json!({"apiVersion": "e.org/v1", "kind": "X", "spec": spec});
    assert_eq!(
        composed(composite(json!({}))),
        "c",
        "PatchComposedResourceFromEnvironment, PatchComposedResourceFromEnvironmentShadowedNotSet"
    );
    assert_eq!(composed(composite(json!({"shadow": "s"}))), "s", "PatchComposedResourceFromEnvironmentShadowedSet");
}

/// Regression test for issue 18 (Crossplane, item 9): environment patches must not have the types
/// `CombineFromEnvironment` and `CombineToEnvironment`. The engine ignores such patches. If they are in the input of
/// function-patch-and-transform, the validation reports an error.
#[test]
fn combinations_of_the_environment_are_ignored_among_environment_patches() {
    for kind in ["CombineFromEnvironment", "CombineToEnvironment"] {
        let combine = json!({"strategy": "string", "string": {"fmt": "%s"}, "variables": [{"fromFieldPath": "a"}]});
        let patch = json!({"type": kind, "toFieldPath": "spec.x", "combine": combine});
        let patches: Vec<Patch> = vec![serde_json::from_value(patch).unwrap()];
        let composite = json!({"apiVersion": "e.org/v1", "kind": "X", "spec": {}});
        for profile in [NATIVE, FUNCTION] {
            let mut patching = Patching::new(profile, json!({"a": "b"}), &composite);
            let (outcomes, failure) = patching.environment_patches(&patches);
            assert!(failure.is_none() && matches!(outcomes[0].ending, Ending::Ignored(_)), "{kind}: {failure:?}");
            assert_eq!((patching.environment(), patching.composite()), (&json!({"a": "b"}), composite.clone()));
        }
        let invalid = invalid_environment_patches(&patches, FUNCTION).map(|invalid| invalid.to_string());
        assert!(invalid.is_some_and(|text| text.contains("invalid environment patch type")), "{kind}");
    }
}

/// Checks that a negative `group` in a `Regexp` transform is an error. Upstream's controller crashes in this case.
#[test]
fn a_negative_group_is_an_error() {
    let resolve = |group: i64| {
        let transform: Transform = serde_json::from_value(
            json!({"type": "string", "string": {"type": "Regexp", "regexp": {"match": "(a)", "group": group}}}),
        )
        .unwrap();
        [NATIVE, FUNCTION].map(|profile| transform.resolve(&Any::text("a"), profile).map_err(|error| error.to_string()))
    };
    for group in [-1, i64::MIN, 2, i64::MAX] {
        for result in resolve(group) {
            let error = result.unwrap_err();
            assert!(error.contains(&format!("group {group}")), "{error}");
        }
    }
    assert!(resolve(1).iter().all(Result::is_ok));
}

#[test]
fn conflicting_types_are_errors_and_change_nothing() {
    let environment = json!({"text": "a", "list": [1], "map": {"a": 1}, "null": null});
    for (to, words) in [
        ("text.a", "text is not an object"),
        ("text[0]", "text is not an array"),
        ("list.a", "list is not an object"),
        ("map[0]", "map is not an array"),
        ("null.a", "null is not an object"),
        ("text[*]", "unexpected wildcard usage"),
    ] {
        for profile in [NATIVE, FUNCTION] {
            let composite = "{apiVersion: e.org/v1, kind: X, spec: {a: A}}";
            let patch = format!("{{type: FromCompositeFieldPath, fromFieldPath: spec.a, toFieldPath: '{to}'}}");
            let (ending, after, _) = patched(profile, &environment, composite, &patch);
            assert!(matches!(&ending, Ending::Failed(why) if why.contains(words)), "{to}: {ending:?}");
            assert_eq!(after, with_kind(profile, environment.as_object().unwrap().clone()), "{to}");
        }
    }
    let append = "{type: FromCompositeFieldPath, fromFieldPath: spec.o, toFieldPath: map, policy: {mergeOptions: {appendSlice: true}}}";
    let (ending, ..) = patched(NATIVE, &environment, "{apiVersion: e.org/v1, kind: X, spec: {o: [1]}}", append);
    assert!(matches!(&ending, Ending::Failed(why) if why.contains("failed to merge values")), "{ending:?}");
}

fn layer(name: &str, data: &Map<String, Value>) -> Layer {
    Layer { name: LayerName::Config(name.to_owned()), to_field_path: None, data: data.clone() }
}

#[test]
fn records_the_origin_of_every_key() {
    let data = |text: &str| yaml(text).as_object().unwrap().clone();
    let merged = Merged::of(vec![
        layer("one", &data("{a: {x: 1, w: 1}, s: s, big: 9007199254740993}")),
        layer("two", &data("{a: {w: 2, z: null}, s: {m: 1}}")),
        layer("three", &data("{a: {w: 3}}")),
    ]);
    let reported: Vec<_> = merged
        .overwrites()
        .iter()
        .map(|found| format!("{} {}>{} {}", found.path, found.from, found.by, found.old))
        .collect();
    assert_eq!(reported, ["a.w 1>2 2.0", "s 0>1 \"s\""]);
    assert_eq!(merged.origins["a"].members["x"].layer, 0);
    assert_eq!(merged.origins["a"].members["z"].layer, 1);
    assert_eq!(merged.origins["a"].members["w"].replaced.len(), 2, "all replaced values");
    assert_eq!(merged.imprecise.iter().map(ToString::to_string).collect::<Vec<_>>(), ["big"]);
}

#[test]
fn reports_random_merge_order_of_the_function() {
    let composition = "
spec:
  mode: Pipeline
  pipeline:
    - step: environment
      input:
        apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
        kind: Input
        spec:
          environmentConfigs: [{ref: {name: root}}, {ref: {name: below}, toFieldPath: db}]
";
    let all = configs(
        "{kind: E, metadata: {name: root}, data: {db: {host: A, port: 1}}}\n---\n{kind: E, metadata: {name: below}, data: {host: B}}",
    );
    let computation = compute(&declaration(&yaml(composition)).unwrap(), &json!({"kind": "X"}), all.as_slice());
    let ActionOutcome::Selected { merged: Some(merged), .. } = &computation.steps[0].action else {
        panic!("the step does not merge")
    };
    assert_eq!(
        computation.environment["db"],
        json!({"host": "B", "port": 1.0}),
        "the layers are merged in the listed order"
    );
    let random: Vec<_> = merged
        .overwrites()
        .iter()
        .filter(|found| merged.is_random(found))
        .map(|found| found.path.to_string())
        .collect();
    assert_eq!(random, ["db.host"]);
}

fn data() -> impl Strategy<Value = Map<String, Value>> {
    let leaf = prop_oneof![Just(Value::Null), (0i64..3).prop_map(Value::from), Just(json!([1]))];
    let value = leaf.prop_recursive(3, 16, 3, |inner| {
        proptest::collection::btree_map("[a-c]", inner, 0..3)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    });
    proptest::collection::btree_map("[a-c]", value, 0..4).prop_map(|members| members.into_iter().collect())
}

/// Returns whether `a` and `b` have, at any depth, a common key whose value is a map in only one of them.
fn conflicts(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.iter().any(|(key, a)| match (a, b.get(key)) {
        (Value::Object(a), Some(Value::Object(b))) => conflicts(a, b),
        (Value::Object(_), Some(_)) => true,
        (_, Some(Value::Object(_))) => true,
        _ => false,
    })
}

proptest! {
    /// Checks that merging layers is associative. Layers are excluded if the value of a key is a map in one layer and
    /// not a map in another layer. For example, if `{a: 1}` is between two layers in which `a` is a map, the first map
    /// is lost.
    #[test]
    fn merging_is_associative_without_conflicts(a in data(), b in data(), c in data()) {
        prop_assume!(!conflicts(&a, &b) && !conflicts(&b, &c) && !conflicts(&a, &c));
        let merge = |layers: &[&Map<String, Value>]| {
            Merged::of(layers.iter().map(|data| layer("x", data)).collect()).data
        };
        prop_assert_eq!(merge(&[&merge(&[&a, &b]), &c]), merge(&[&a, &merge(&[&b, &c])]));
        prop_assert_eq!(merge(&[&a, &b, &c]), merge(&[&merge(&[&a, &b]), &c]));
        prop_assert_eq!(merge(&[&a, &a]), merge(&[&a]));
    }

    #[test]
    fn every_merged_key_has_an_origin(layers in proptest::collection::vec(data(), 0..5)) {
        fn check(data: &Map<String, Value>, origins: &std::collections::BTreeMap<String, portcullis::crossplane::environment::Origin>, layers: usize) {
            assert_eq!(data.keys().collect::<Vec<_>>(), origins.keys().collect::<Vec<_>>());
            for (key, value) in data {
                assert!(origins[key].layer < layers);
                if let Value::Object(members) = value {
                    check(members, &origins[key].members, layers);
                }
            }
        }
        let merged = Merged::of(layers.iter().map(|data| layer("x", data)).collect());
        check(&merged.data, &merged.origins, layers.len());
    }

    /// Checks that nothing changes if a patch is computed again for a composite that already has the result of the
    /// patch.
    #[test]
    fn computing_again_changes_nothing(environment in data(), from in "[a-c]([.][a-c])?", to in "[a-c]([.][a-c])?", is_native: bool) {
        let profile = if is_native { NATIVE } else { FUNCTION };
        let patch: Patch = serde_json::from_value(json!({
            "type": "ToCompositeFieldPath", "fromFieldPath": from, "toFieldPath": format!("spec.{to}"),
        })).unwrap();
        let run = |composite: &Value| {
            let mut patching = Patching::new(profile, with_kind(profile, environment.clone()), composite);
            let (_, failure) = patching.environment_patches(std::slice::from_ref(&patch));
            (patching.composite(), failure)
        };
        let composite = json!({"apiVersion": "e.org/v1", "kind": "X", "spec": {}});
        let (once, failure) = run(&composite);
        prop_assume!(failure.is_none());
        prop_assert_eq!(run(&once).0, once);
    }

    #[test]
    fn terminates_for_any_patch(
        kind in "From(Composite|Environment)FieldPath|To(Composite|Environment)FieldPath|Combine(From|To)Composite|",
        from in "[a-c.*\\[\\]01]{0,8}", to in "[a-c.*\\[\\]01]{0,8}", environment in data(), fmt in "%?[-+# 0-9.]{0,3}[vsdxqf%]?",
        policy in prop_oneof![Just("Replace"), Just("MergeObjects"), Just("ForceMergeObjectsAppendArrays"), Just("x")],
    ) {
        for profile in [NATIVE, FUNCTION] {
            let patch: Patch = serde_json::from_value(json!({
                "type": kind, "fromFieldPath": from, "toFieldPath": to,
                "combine": {"strategy": "string", "string": {"fmt": fmt}, "variables": [{"fromFieldPath": from}]},
                "transforms": [{"type": "string", "string": {"type": "Format", "fmt": fmt}}],
                "policy": {"toFieldPath": policy, "mergeOptions": {"appendSlice": true}},
            })).unwrap();
            let composite = json!({"apiVersion": "e.org/v1", "kind": "X", "a": [{"b": 1}], "c": {"*": 1}});
            let mut patching = Patching::new(profile, with_kind(profile, environment.clone()), &composite);
            let _ = patching.environment_patches(std::slice::from_ref(&patch));
            let _ = patch.invalid(profile);
        }
    }
}

/// Checks that there is a limit for patches that repeatedly copy the whole spec to the environment, and then copy this
/// value back into the spec. Without a limit, each repetition would double the size of the spec.
#[test]
fn patches_cannot_fill_the_memory() {
    let patches: Vec<Patch> = (0..200)
        .map(|at| {
            let (kind, from, to) = match at % 2 {
                0 => ("FromCompositeFieldPath", "spec", format!("e{at}")),
                _ => ("ToCompositeFieldPath", "", format!("spec.c{at}")),
            };
            let from = if from.is_empty() { format!("e{}", at - 1) } else { from.to_owned() };
            serde_json::from_value(json!({"type": kind, "fromFieldPath": from, "toFieldPath": to})).unwrap()
        })
        .collect();
    let composite = json!({"apiVersion": "e.org/v1", "kind": "X", "spec": {"text": "x".repeat(1000)}});
    let mut patching = Patching::new(NATIVE, with_kind(NATIVE, Map::new()), &composite);
    let (_, failure) = patching.environment_patches(&patches);
    let failure = failure.unwrap();
    assert!(failure.contains("would write more than") || failure.contains("nest the object deeper"), "{failure}");
}

#[test]
fn a_million_keys_are_merged_and_patched_in_bounded_time() {
    let data: Map<String, Value> = (0..1_000_000).map(|at| (format!("k{at}"), json!(at))).collect();
    let merged = Merged::of(vec![layer("one", &data), layer("two", &Map::from_iter([("k1".to_owned(), json!({}))]))]);
    assert_eq!(merged.overwrites().len(), 1);
    let patch: Patch = serde_json::from_value(
        json!({"type": "FromCompositeFieldPath", "fromFieldPath": "kind", "toFieldPath": "[*].x"}),
    )
    .unwrap();
    let mut patching =
        Patching::new(NATIVE, with_kind(NATIVE, merged.data), &json!({"apiVersion": "e/v1", "kind": "X"}));
    let (_, failure) = patching.environment_patches(&[patch]);
    assert!(failure.unwrap().contains("more than 10000 paths"));
}
