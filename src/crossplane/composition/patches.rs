//! Checks the patches of a Composition, which copy values between the composite, the environment and the composed
//! resources.
//!
//! The checks require the same fields as Crossplane 1.17 (`Validate` in `apis/apiextensions/v1/composition_patches.go`)
//! and function-patch-and-transform (`validate.go`). Unlike these programs, this module reports all problems at once.
//! It reports them before a composite is reconciled for the first time.

use serde_json::Value;

use super::place::Place;
use super::problem::{Problem, Topic};
use super::reader::{Node, Reader, Writes};
use super::transforms;
use super::types;

const PATCH: &[&str] = &["type", "fromFieldPath", "combine", "toFieldPath", "patchSetName", "transforms", "policy"];
const MERGES: &[&str] = &[
    "Replace",
    "MergeObjects",
    "MergeObjectsAppendArrays",
    "ForceMergeObjects",
    "ForceMergeObjectsAppendArrays",
    "MergeObject",
    "AppendArray",
];

/// Checks the patches of an environment, a patch set or a composed resource. `parent` is the value that contains the
/// list `patches`. `place` says whether `parent` is the environment, a patch set or a composed resource. `sets`
/// contains the names of the patch sets to which the patches may refer.
pub(super) fn check(reader: &mut Reader, parent: &Node<'_>, place: Place, sets: &[&str]) {
    reader.writes.before = false;
    for patch in reader.objects(parent, "patches") {
        check_patch(reader, &patch, place, sets);
        reader.writes.before |= writes_environment(reader, &patch, place);
    }
}

/// Records in `reader.writes.any` whether at least one of the patches in `parent` writes into the environment of the
/// composite. `parent` is the spec of a Composition, or the input of function-patch-and-transform.
///
/// Callers call this function before they check the patches. So it also sets `reader.writes.before` to false: no patch
/// precedes the first one.
pub(super) fn note_writes(reader: &mut Reader, parent: &Node<'_>) {
    let mut quiet = Reader::new(reader.profile);
    let mut any = false;
    let environment = quiet.member(parent, "environment");
    for patch in environment.map(|environment| quiet.objects(&environment, "patches")).unwrap_or_default() {
        any |= writes_environment(&quiet, &patch, Place::Environment);
    }
    for list in ["patchSets", "resources"] {
        for owner in quiet.objects(parent, list) {
            let patches = quiet.objects(&owner, "patches");
            any |= patches.iter().any(|patch| writes_environment(&quiet, patch, Place::Resource));
        }
    }
    reader.writes = Writes { before: false, any };
}

fn writes_environment(reader: &Reader, patch: &Node<'_>, place: Place) -> bool {
    let kind = reader.member(patch, "type").and_then(|kind| kind.value.as_str()).unwrap_or_default();
    match place {
        Place::Environment => {
            ["", "FromCompositeFieldPath", "CombineFromComposite", "ToEnvironmentFieldPath"].contains(&kind)
        }
        Place::Resource | Place::Set => ["ToEnvironmentFieldPath", "CombineToEnvironment"].contains(&kind),
    }
}

/// Returns whether a patch of type `kind` may read an integer. If not, every number that the patch reads is a float64.
///
/// - A patch that reads the composite or a composed resource may read an integer only in Crossplane up to 1.17.
/// - A patch that reads the environment may read an integer only if another patch has written to the environment.
fn has_integers(reader: &Reader, kind: &str, place: Place) -> bool {
    match place {
        _ if !types::reads(kind, place) => reader.is_native(),
        Place::Environment => reader.writes.before,
        Place::Resource | Place::Set => reader.writes.any,
    }
}

fn check_patch(reader: &mut Reader, patch: &Node<'_>, place: Place, sets: &[&str]) {
    reader.known(patch, PATCH);
    let types = place.types(reader.is_native());
    if let Some((of, to)) = first_design_type(reader, patch, place) {
        let why = format!("ignored: Crossplane skips patches of type {of} between composite and environment");
        let problem = Problem::ignored(patch.at.key("type"), why);
        let [read, written] =
            if to.starts_with("To") { ["environment", "composite"] } else { ["composite", "environment"] };
        let help = format!(
            "write type: {to}; fromFieldPath is then read from the {read}, toFieldPath written to the {written}"
        );
        return reader.report(problem.help(help));
    }
    let Some(kind) = reader.choice(patch, "type", &types) else { return };
    reader.has_integers = has_integers(reader, kind, place);
    match kind {
        "PatchSet" => return check_set(reader, patch, sets),
        kind if kind.starts_with("Combine") => check_combined(reader, patch, kind),
        kind => check_plain(reader, patch, kind),
    }
    check_policy(reader, patch);
    check_target(reader, patch, kind, place);
    types::check(reader, patch, kind, place);
    types::check_composite(reader, patch, kind, place);
}

/// Checks whether Crossplane ignores an environment patch because of its type. If so, returns this type and the type to
/// write instead, such as `FromEnvironmentFieldPath` and `ToCompositeFieldPath`. The ignored types are those of
/// Crossplane's first design document of environments. Returns `None` for all other types.
fn first_design_type(reader: &Reader, patch: &Node<'_>, place: Place) -> Option<(&'static str, &'static str)> {
    let kind = patch.value.get("type").and_then(Value::as_str).filter(|_| reader.is_native())?;
    let now =
        [("FromEnvironmentFieldPath", "ToCompositeFieldPath"), ("ToEnvironmentFieldPath", "FromCompositeFieldPath")];
    now.into_iter().find(|(of, _)| place == Place::Environment && *of == kind)
}

fn check_set(reader: &mut Reader, patch: &Node<'_>, sets: &[&str]) {
    match reader.required(patch, "patchSetName", "patchSetName must be set for patch type PatchSet") {
        Some((name, at)) if !sets.contains(&name) => {
            let known = if sets.is_empty() { "none".to_owned() } else { sets.join(", ") };
            let problem = Problem::invalid(Topic::Structure, at, &name.into(), "no patch set has this name");
            reader.report(problem.help(format!("patch sets: {known}")));
        }
        _ => {}
    }
    ignored(reader, patch, &["fromFieldPath", "toFieldPath", "combine", "transforms", "policy"], "PatchSet");
}

fn check_plain(reader: &mut Reader, patch: &Node<'_>, kind: &str) {
    let detail = format!("fromFieldPath must be set for patch type {kind}");
    let from = reader.required(patch, "fromFieldPath", &detail);
    match from {
        Some(("", at)) if reader.is_native() => {
            let what = "Invalid value: \"\": an empty path reads nothing, and null is written";
            reader.report(Problem::new(Topic::Path, at, what).as_warning());
        }
        Some(("", at)) => reader.report(Problem::required(at, &detail)),
        Some(_) => {
            reader.path_to_read(patch, "fromFieldPath");
        }
        None => {}
    }
    // If `toFieldPath` is missing, the patch writes to `fromFieldPath`.
    match reader.member(patch, "toFieldPath") {
        Some(_) => reader.path_to_write(patch, "toFieldPath"),
        None => reader.path_to_write(patch, "fromFieldPath"),
    }
    ignored(reader, patch, &["combine", "patchSetName"], kind);
    transforms::check(reader, patch, None);
}

fn check_combined(reader: &mut Reader, patch: &Node<'_>, kind: &str) {
    if reader.required(patch, "toFieldPath", &format!("toFieldPath must be set for patch type {kind}")).is_some() {
        reader.path_to_write(patch, "toFieldPath");
        reader.no_wildcard(patch, "toFieldPath");
    }
    ignored(reader, patch, &["fromFieldPath", "patchSetName"], kind);
    if reader.member(patch, "combine").is_none() {
        let detail = format!("combine must be set for patch type {kind}");
        reader.report(Problem::required(patch.at.key("combine"), &detail));
    } else if let Some(combine) = reader.object(patch, "combine") {
        check_combine(reader, &combine);
    }
    transforms::check(reader, patch, Some(transforms::Shape::Text));
}

fn check_combine(reader: &mut Reader, combine: &Node<'_>) {
    reader.known(combine, &["variables", "strategy", "string"]);
    let variables = reader.objects(combine, "variables");
    if reader.member(combine, "variables").is_none_or(|list| list.value.as_array().is_some_and(Vec::is_empty)) {
        let detail = "combine patch types require at least one variable";
        reader.report(Problem::required(combine.at.key("variables"), detail));
    }
    for variable in &variables {
        reader.known(variable, &["fromFieldPath"]);
        let detail = "fromFieldPath must be set for each combine variable";
        match reader.required(variable, "fromFieldPath", detail) {
            Some(("", at)) => reader.report(Problem::required(at, detail)),
            Some(_) => {
                reader.path_to_read(variable, "fromFieldPath");
            }
            None => {}
        }
    }
    check_strategy(reader, combine, variables.len());
}

fn check_strategy(reader: &mut Reader, combine: &Node<'_>, variables: usize) {
    let help = "write strategy: string, with string: {fmt: \"...\"}";
    if reader.member(combine, "strategy").is_none() {
        let problem = Problem::required(combine.at.key("strategy"), "a combine strategy must be provided");
        reader.report(problem.help(help));
    } else {
        reader.choice(combine, "strategy", &["string"]);
    }
    if reader.member(combine, "string").is_none() {
        let detail = "string must be set for combine strategy string";
        let example = format!("write string: {{fmt: {:?}}}", vec!["%v"; variables.max(1)].join("-"));
        reader.report(Problem::required(combine.at.key("string"), detail).help(example));
        return;
    }
    let Some(string) = reader.object(combine, "string") else { return };
    reader.known(&string, &["fmt"]);
    if reader.required(&string, "fmt", "fmt must be set to combine to a string").is_some() && variables > 0 {
        reader.format(&string, "fmt", &vec![transforms::Shape::Any; variables]);
    }
}

fn check_policy(reader: &mut Reader, patch: &Node<'_>) {
    let Some(policy) = reader.object(patch, "policy") else { return };
    reader.known(&policy, &["fromFieldPath", "mergeOptions", "toFieldPath"]);
    reader.choice(&policy, "fromFieldPath", &["Optional", "Required"]);
    if !reader.is_native() {
        reader.choice(&policy, "toFieldPath", MERGES);
        if let Some(options) = reader.member(&policy, "mergeOptions") {
            let why = "ignored: function-patch-and-transform does not support mergeOptions, and replaces the value";
            reader.report(
                Problem::ignored(options.at, why).help(format!("write toFieldPath: {}", merge_of(options.value))),
            );
        }
        return;
    }
    if let Some(to) = reader.member(&policy, "toFieldPath") {
        let why = "ignored: Crossplane up to 1.17 only supports mergeOptions";
        reader.report(Problem::ignored(to.at, why).help("write mergeOptions: {keepMapValues: …, appendSlice: …}"));
    }
    if let Some(options) = reader.object(&policy, "mergeOptions") {
        reader.known(&options, &["keepMapValues", "appendSlice"]);
        if reader.member(patch, "combine").is_some() {
            let why = "ignored: a combined value replaces the existing value";
            reader.report(Problem::ignored(options.at, why).help("remove mergeOptions"));
        }
    }
}

/// Returns the `toFieldPath` policy of function-patch-and-transform that has the same effect as the `mergeOptions` of
/// Crossplane up to 1.17.
fn merge_of(options: &Value) -> &'static str {
    let is = |key| options.get(key).and_then(Value::as_bool).unwrap_or_default();
    match (is("keepMapValues"), is("appendSlice")) {
        (false, false) => "ForceMergeObjects",
        (true, false) => "MergeObjects",
        (false, true) => "ForceMergeObjectsAppendArrays",
        (true, true) => "MergeObjectsAppendArrays",
    }
}

/// Reports a patch from the environment to the composite if Crossplane does not store the target field. If Crossplane
/// itself applies the patch (up to version 1.17), it does not store fields of `status`. If a function applies the
/// patch, Crossplane stores only fields of `status`.
fn check_target(reader: &mut Reader, patch: &Node<'_>, kind: &str, place: Place) {
    let writes_composite = kind.contains("ToComposite") || kind == "FromEnvironmentFieldPath";
    if place != Place::Environment || !writes_composite {
        return;
    }
    let key = if reader.member(patch, "toFieldPath").is_some() { "toFieldPath" } else { "fromFieldPath" };
    let Some(target) = reader.member(patch, key) else { return };
    let Some(path) = target.value.as_str() else { return };
    let is_status = path == "status" || path.starts_with("status.") || path.starts_with("status[");
    if is_status != reader.is_native() {
        return;
    }
    let (why, help) = match is_status {
        true => (
            "ignored: Crossplane up to 1.17 loses the values that the environment writes into the composite's status",
            "patch a field of spec or an annotation, or patch the status from a composed resource",
        ),
        false => (
            "ignored: Crossplane only stores the status that functions write into the composite",
            "patch a field of status, or enable writing at admission for the composite's definition",
        ),
    };
    reader.report(Problem::ignored(target.at, why).help(help));
}

fn ignored(reader: &mut Reader, patch: &Node<'_>, fields: &[&str], kind: &str) {
    let found: Vec<_> = fields.iter().filter_map(|field| reader.member(patch, field)).collect();
    for field in found {
        reader.report(
            Problem::ignored(field.at, format!("ignored: a patch of type {kind} does not use this field"))
                .help("leave it out"),
        );
    }
}
