//! Checks that each of Crossplane's test cases about environments has a test case with the same name in this
//! repository, or a reason why it has none. The reasons are in `tests/cases/crossplane_names.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::collections::HashSet;
use std::fs;

use cases::repository;
use serde_json::Value;

/// Crossplane's test suites, with the names of their cases.
const SUITES: &[(&str, &str)] = &[
    (
        "TestParse",
        "SingleField SingleIndex TwoFields APIConventionsExample SimpleIndex FieldsAndIndex NestedArray \
      BracketStyleField BracketFieldWithPeriod QuotedFieldWithPeriodInBracket LeadingPeriod TrailingPeriod \
      BracketsFollowingPeriod DoublePeriod DanglingRightBracket DoubleOpenBracket DanglingLeftBracket EmptyBracket",
    ),
    ("TestFieldOrIndex", "Field QuotedField QuotedFieldWithPeriods Index Negative Float Overflow"),
    (
        "TestGetValue",
        "MetadataName ContainerName NestedArray OwnerRefController MetadataVersion SomeFloat MetadataNope \
      InsufficientContainers NotAnArray NotAnObject MalformedPath NilParent",
    ),
    (
        "TestSetValue",
        "MetadataName NonExistentMetadataName ContainerName NonExistentContainerName NewContainer NestedArray \
      GrowNestedArray GrowArrayField RejectsHighIndexes NotRejectsHighIndexesIfNoDefaultOptions MapStringString \
      OwnerReference NotAnArray NotAnObject MalformedPath",
    ),
    (
        "TestExpandWildcards",
        "NoWildcardExisting NoWildcardNonExisting NestedNoWildcardExisting NestedNoWildcardNonExisting \
      NestedArray KeysOfMap ArrayOfObjects MultiLayer WildcardInTheBeginning WildcardAtTheEnd NoData InsufficientContainers \
      UnexpectedWildcard NotAnArray NotAnObject MalformedPath NilValue",
    ),
    (
        "TestMergeValue",
        "MergeArrayNoMergeOptions MergeArrayNoAppend MergeArrayAppend MergeArrayAppendDuplicate \
      MergeMapNoMergeOptions MergeMapNoKeep MergeMapKeep",
    ),
    ("TestEnvironmentPatchValidate", "ValidPatch InvalidPatchMissingFromFieldPath InvalidPatchMissingToFieldPath"),
    (
        "TestEnvironmentShouldResolve",
        "DontResolveWhenHaveRefs ResolveWhenNoRefs ResolveWhenPolicyAlways \
      DontResolveWhenPolicyNotAlways",
    ),
    ("TestEnvironmentSourceSelectorValidate", "ErrorModeSingleWithMaxMatch ErrorModeSingleWithMinMatch"),
    (
        "TestCompositionValidateEnvironment",
        "ValidEmptyEnvironment ValidNilEnvironment ValidEnvironment \
      InvalidPatchEnvironment InvalidEnvironmentSourceReferenceNoName InvalidEnvironmentSourceSelectorNoKey \
      InvalidMultipleErrors",
    ),
    (
        "TestFetch",
        "DefaultOnNil DefaultEnvironmentOnNil DefaultEnvironmentOnEmpty MergeMultipleSourcesInOrder \
      ErrorOnKubeGetError NoErrorOnKubeGetErrorIfResolutionNotRequired",
    ),
    (
        "TestSelect",
        "NoopOnNilEnvironment NoopOnNilEnvironmentSources EmptyRefsOnEmptyConfigRefs RefForRef \
      RefForLabelSelectedObjects RefForLabelSelectedObjectWithLabelValueFromFieldPath RefForFirstLabelSelectedObject \
      ErrorOnMultipleObjectsInSingleMode RefsInOrder ErrorOnKubeListError NoReferenceOnKubeListEmpty \
      ErrSelectNotFoundRequiredConfig ErrorOnInvalidLabelValueFieldPath NoErrorOnInvalidOptionalLabelValueFieldPath \
      ErrorOnInvalidRequiredLabelValueFieldPath AllRefsSortedInMultiMode MaxMatchRefsSortedInMultiMode \
      MaxMatchRefsSortedByFloatInMultiMode MaxMatchRefsSortedByIntInMultiMode ErrSelectOnNotMatchingType \
      ErrSelectOnUnexpectedType ErrSelectOnInvalidFieldPath",
    ),
    (
        "TestPatchApply",
        "InvalidCompositeFieldPathPatch InvalidPatchType ValidCompositeFieldPathPatch \
      ValidCompositeFieldPathPatchWithNilLastPublishTime ValidCompositeFieldPathPatchWithWildcards \
      InvalidCompositeFieldPathPatchWithWildcards MissingOptionalFieldPath MissingRequiredFieldPath \
      ValidFromEnvironmentFieldPathPatch MissingFromEnvironmentRequiredFieldPath MergeOptionsKeepMapValues \
      FilterExcludeCompositeFieldPathPatch FilterIncludeCompositeFieldPathPatch DefaultToFieldCompositeFieldPathPatch \
      ValidToCompositeFieldPathPatch ValidToCompositeFieldPathPatchWithWildcards ValidToEnvironmentFieldPathPatch \
      MissingCombineFromCompositeConfig MissingCombineFromEnvironmentConfig MissingCombineStrategyFromCompositeConfig \
      MissingCombineVariablesFromCompositeConfig NoOpOptionalInputFieldFromCompositeConfig ValidCombineFromComposite \
      ValidCombineToComposite ValidCombineToEnvironment",
    ),
    (
        "environmentconfig_test.go",
        "default resolutionOptional resolveIfNotPresent resolveAlways multipleModeMaxMatchNil \
      multipleModeMaxMatch1",
    ),
    (
        "TestRunFunction of function-environment-configs",
        "RequestEnvironmentConfigs RequestEnvironmentConfigsFound \
      RequestEnvironmentConfigsNotFoundRequired SelectorWithOptionalFieldPathNotProvided \
      SelectorSingleModeWithOptionalFieldPathNotProvided MergeEnvironmentConfigs ToFieldPath",
    ),
    (
        "TestRunFunction of function-patch-and-transform",
        "PatchToCompositeWithEnvironmentPatches \
      EnvironmentPatchToEnvironment PatchToCompositeSupportsFromEnvironmentFieldPath \
      EnvironmentPatchSupportsToEnvironmentFieldPath EnvironmentPatchOptionalNotFoundSkipped \
      EnvironmentPatchRequiredNotFoundError PatchComposedResourceFromEnvironment \
      PatchComposedResourceFromEnvironmentShadowedNotSet PatchComposedResourceFromEnvironmentShadowedSet \
      OnlyEnvironmentPatchesIsAllowed",
    ),
    (
        "ValidatorValidate",
        "AcceptEnvironmentConfigPatchUnsupported FromEnvironmentFieldPathHandledProperly \
      FromEnvironmentFieldPathCatchErrorInToFieldPath ToEnvironmentFieldPathHandledProperly \
      ToEnvironmentFieldPathCatchErrorInFromFieldPath CombineToEnvironmentHandledProperly \
      CombineToEnvironmentCatchErrorInFromFieldPath CombineFromEnvironmentHandledProperly \
      CombineFromEnvironmentCatchErrorInToFieldPath EnvironmentPatchesHandledProperly \
      EnvironmentPatchesCatchErrorInFromFieldPath EnvironmentPatchesCatchErrorInToFieldPath",
    ),
];

/// Crossplane's test suites whose cases have no names. `tests/cases/crossplane_names.md` says which of our tests cover
/// them.
const UNNAMED: &[&str] = &[
    "TestSegments",
    "TestIsNotFound",
    "typed getters",
    "TestDeleteField",
    "TestTransformValidate",
    "GetOutputType",
    "OptionalFieldPathNotFound",
    "ComposedTemplates",
    "FuzzPatchApply",
    "FuzzTransform",
    "MergePath",
    "MergeReplace",
    "MergeOptions",
    "GetConversionFunc",
    "TestSortRequiredByFieldPath",
    "ApplyFromFieldPathPatch",
    "ApplyCombine",
];

fn text(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn list() -> String {
    text("tests/cases/crossplane_names.md")
}

/// Returns the words of a text.
fn words(text: &str) -> HashSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

/// Returns the suite and the name of each recorded test case.
fn executed() -> HashSet<(String, String)> {
    let cases: Vec<Value> = serde_json::from_str(&text("tests/vectors/crossplane/named_fieldpath.json")).unwrap();
    let name = |case: &Value, key: &str| case[key].as_str().unwrap().to_owned();
    cases.iter().map(|case| (name(case, "suite"), name(case, "name"))).collect()
}

/// Returns the names of Crossplane's test cases that have no test case in this repository, each with the reason. `list`
/// is the text of `tests/cases/crossplane_names.md`.
fn reasons(list: &str) -> Vec<(&str, &str)> {
    let (_, rest) = list.split_once("## Nothing here corresponds to").expect("the list has that part");
    let rows = rest.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.filter(|(name, _)| !["---", "upstream"].contains(name)).collect()
}

#[test]
fn every_name_has_a_case_or_a_reason() {
    let (list, executed) = (list(), executed());
    let reasons = reasons(&list);
    let sources = ["environment_engine", "composition", "composites"].map(|file| text(&format!("tests/{file}.rs")));
    let words_in_tests: HashSet<&str> = sources.iter().flat_map(|source| words(source)).collect();
    for (suite, names) in SUITES {
        for name in names.split_whitespace() {
            let is_executed = executed.contains(&((*suite).to_owned(), name.to_owned()));
            let is_explained = reasons.iter().any(|(named, why)| words(named).contains(name) && why.len() > 40);
            let is_in_tests = !suite.contains("Field")
                && !["TestParse", "TestGetValue", "TestSetValue"].contains(suite)
                && words_in_tests.contains(name);
            assert!(is_executed || is_in_tests || is_explained, "{suite}: {name} has neither a case nor a reason");
            assert!(
                !(is_explained && (is_executed || is_in_tests)),
                "{suite}: {name} has a case and a reason for none"
            );
        }
    }
}

#[test]
fn the_list_names_every_suite_and_only_existing_tests() {
    let list = list();
    for suite in SUITES.iter().map(|(suite, _)| *suite).chain(UNNAMED.iter().copied()) {
        assert!(list.contains(suite.split(" of ").next().unwrap()), "{suite} is not in the list");
    }
    let files = fs::read_dir(repository().join("tests")).unwrap();
    let tests: String = files
        .filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok())
        .chain([text("src/crossplane/rules/en001.rs")])
        .collect();
    let named = list.split('`').skip(1).step_by(2).filter(|name| name.matches('_').count() > 2 && !name.contains('/'));
    for name in named {
        assert!(tests.contains(&format!("fn {name}()")), "there is no test {name}");
    }
}
