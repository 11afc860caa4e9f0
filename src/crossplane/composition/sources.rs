//! Checks how a Composition selects EnvironmentConfigs: the fields `environmentConfigs` and `policy`.
//!
//! The checks report a missing field in these cases:
//! - The webhook of Crossplane up to 1.17 requires the field (`Validate` in
//!   `apis/apiextensions/v1/composition_environment.go`).
//! - The Composition function function-environment-configs dereferences the field without a check.

use super::labels;
use super::problem::{Problem, Topic};
use super::reader::{Node, Reader};

const SOURCE: &[&str] = &["type", "ref", "selector"];
const FUNCTION_SOURCE: &[&str] = &["type", "ref", "selector", "toFieldPath"];
const SELECTOR: &[&str] = &["mode", "maxMatch", "minMatch", "sortByFieldPath", "matchLabels"];
const MATCHER: &[&str] = &["type", "key", "valueFromFieldPath", "value", "fromFieldPathPolicy"];

const SOURCE_TYPES: &[&str] = &["Reference", "Selector"];
const MODES: &[&str] = &["Single", "Multiple"];
const MATCHER_TYPES: &[&str] = &["FromCompositeFieldPath", "Value"];
const REQUIRED: &[&str] = &["Required", "Optional"];

/// Checks the field `environmentConfigs` of an environment. `environment` is `spec.environment` of a Composition, or
/// `spec` in the input of function-environment-configs.
pub(super) fn check(reader: &mut Reader, environment: &Node<'_>) {
    let policy = reader.member(environment, "policy");
    let resolution = policy.and_then(|policy| Some(reader.member(&policy, "resolution")?.value));
    let is_optional = resolution.is_some_and(|resolution| resolution == "Optional");
    for source in reader.objects(environment, "environmentConfigs") {
        check_source(reader, &source, is_optional);
    }
}

/// Checks the field `policy` of an environment. `environment` is `spec.environment` of a Composition, or `spec` in the
/// input of function-environment-configs.
pub(super) fn check_policy(reader: &mut Reader, environment: &Node<'_>) {
    let Some(policy) = reader.object(environment, "policy") else { return };
    reader.lenient_choice(&policy, "resolution", REQUIRED, "Required");
    if reader.is_native() {
        reader.known(&policy, &["resolve", "resolution"]);
        reader.choice(&policy, "resolve", &["IfNotPresent", "Always"]);
        return;
    }
    reader.known(&policy, &["resolution", "resolve"]);
    if let Some(resolve) = reader.member(&policy, "resolve").filter(|resolve| resolve.value != "Always") {
        let why = "ignored: function-environment-configs selects again at each reconcile, as with Always";
        reader.report(Problem::ignored(resolve.at, why).help("leave it out"));
    }
}

fn check_source(reader: &mut Reader, source: &Node<'_>, is_optional: bool) {
    report_misplaced_fields(reader, source);
    let is_native = reader.is_native();
    let mut fields = if is_native { SOURCE } else { FUNCTION_SOURCE }.to_vec();
    fields.extend(SELECTOR.iter().chain(&["reference"]));
    reader.known(source, &fields);
    if !is_native {
        reader.path_to_write(source, "toFieldPath");
    }
    let before = reader.problems.len();
    match reader.choice(source, "type", SOURCE_TYPES) {
        Some("Reference") => check_reference(reader, source, is_optional),
        Some(_) => check_selector(reader, source),
        // The function skips sources of other types.
        None if !is_native => downgrade_to_warnings(reader, before, "the function skips this source"),
        None => {}
    }
}

/// Downgrades problems about an unsupported `type` to warnings, and sets their help text to `help`. `before` is the
/// index in `reader.problems` of the first problem to check.
fn downgrade_to_warnings(reader: &mut Reader, before: usize, help: &str) {
    let is_word = |problem: &&mut Problem| problem.message.starts_with("Unsupported value");
    for problem in reader.problems[before..].iter_mut().filter(is_word) {
        problem.is_warning = true;
        problem.help = Some(help.to_owned());
    }
}

/// Reports fields of a selector, such as `matchLabels`, that are next to `selector` instead of in it. Users make this
/// mistake because the README of function-environment-configs shows the fields in the wrong place.
fn report_misplaced_fields(reader: &mut Reader, source: &Node<'_>) {
    for field in SELECTOR.iter().filter_map(|field| source.member(field).map(|found| (*field, found))) {
        let (name, found) = field;
        let why = format!("ignored: {name} belongs in the selector");
        reader.report(Problem::ignored(found.at, why).help(format!("move it to selector.{name}")));
    }
}

fn check_reference(reader: &mut Reader, source: &Node<'_>, is_optional: bool) {
    if let Some(selector) = source.member("selector") {
        let why = "ignored: a source of type Reference has no selector";
        reader.report(Problem::ignored(selector.at, why).help("write type: Selector, or leave the selector out"));
    }
    let reference = match (reader.object(source, "ref"), source.member("reference")) {
        (Some(reference), _) => reference,
        (None, Some(reference)) => {
            let help = format!("write ref: {}", reference.value);
            let what = "Unknown field: Crossplane calls it ref";
            reader.report(Problem::new(Topic::Structure, reference.at.clone(), what).help(help).as_warning());
            reference
        }
        (None, None) => {
            if source.member("ref").is_none() {
                reader.report(Problem::required(source.at.key("ref"), "ref is required"));
            }
            return;
        }
    };
    reader.known(&reference, &["name"]);
    match reader.required(&reference, "name", "name is required") {
        Some(("", at)) => reader.report(Problem::required(at, "name is required")),
        Some((name, at)) if !crate::names::is_subdomain(name) => {
            let detail = "not a valid name of an EnvironmentConfig: use lower case letters, digits, '-' and '.'";
            let problem = Problem::invalid(Topic::Structure, at, &name.into(), detail);
            reader.report(if is_optional { problem.as_warning() } else { problem });
        }
        _ => {}
    }
}

fn check_selector(reader: &mut Reader, source: &Node<'_>) {
    if let Some(reference) = source.member("ref").or_else(|| source.member("reference")) {
        let why = "ignored: a source of type Selector has no ref";
        reader.report(Problem::ignored(reference.at, why).help("write type: Reference, or leave the ref out"));
    }
    for selector in selectors(reader, source) {
        reader.known(&selector, SELECTOR);
        let mode = reader.choice(&selector, "mode", MODES);
        for key in ["minMatch", "maxMatch"] {
            bound(reader, &selector, key, mode);
        }
        check_order(reader, &selector, mode);
        let before = reader.problems.len();
        check_matchers(reader, &selector);
        // If no match is needed, Crossplane continues without data.
        let is_needed =
            mode == Some("Single") || reader.member(&selector, "minMatch").is_some_and(|least| least.value != 0);
        for problem in reader.problems[before..].iter_mut().filter(|problem| problem.topic == Topic::Label) {
            problem.is_warning |= !is_needed;
        }
    }
}

/// Returns the selectors of an entry of `environmentConfigs`. A valid entry has one selector, which is an object. In
/// Crossplane's first design document of environments, `selector` was a list. If it is a list, this function reports a
/// warning and returns all elements.
fn selectors<'v>(reader: &mut Reader, source: &Node<'v>) -> Vec<Node<'v>> {
    let Some(selector) = reader.member(source, "selector") else {
        reader.report(Problem::required(source.at.key("selector"), "selector is required"));
        return Vec::new();
    };
    if selector.value.is_array() {
        let what = "Invalid value: Crossplane expects an object; only its first design document had a list here";
        let help = "write selector: {matchLabels: [...]}, and a separate source for each further selector";
        reader.report(Problem::new(Topic::Structure, selector.at.clone(), what).help(help).as_warning());
        return reader.objects(source, "selector");
    }
    reader.object(source, "selector").into_iter().collect()
}

/// Checks the field `key` of a selector, which is `minMatch` or `maxMatch`. `mode` is the mode of the selector; `None`
/// if it is invalid. A `minMatch` above `maxMatch` is valid: `maxMatch` only truncates the matches.
fn bound(reader: &mut Reader, selector: &Node<'_>, key: &str, mode: Option<&str>) {
    let Some((value, number)) = reader.integer(selector, key) else { return };
    if mode == Some("Single") {
        let problem = Problem::forbidden(selector.at.key(key), &format!("{key} is not supported in Single mode"));
        reader.report_native(problem.help("write mode: Multiple, or leave it out"));
    }
    if number < 0 {
        reader.report(Problem::invalid(Topic::Bounds, selector.at.key(key), value, "must not be negative"));
    }
    if key == "maxMatch" && number == 0 {
        let why = "Invalid value: 0: nothing is ever selected";
        reader.report(
            Problem::new(Topic::Bounds, selector.at.key(key), why).help("leave it out to select all").as_warning(),
        );
    }
}

fn check_order(reader: &mut Reader, selector: &Node<'_>, mode: Option<&str>) {
    let Some((path, at)) = reader.path_to_read(selector, "sortByFieldPath") else { return };
    if mode == Some("Single") && path != "metadata.name" {
        let why = "ignored: in Single mode there is nothing to sort";
        reader.report(Problem::ignored(at, why).help("leave it out, or write mode: Multiple"));
        return;
    }
    let first = path.split(['.', '[']).next().unwrap_or_default();
    if !["metadata", "data", "apiVersion", "kind"].contains(&first) {
        let detail = "no EnvironmentConfig has this field: the path starts at the object, with metadata or data";
        let help = format!("write data.{path}");
        // The function treats missing values as equal, so their order is undefined.
        reader.report_native(Problem::invalid(Topic::Bounds, at, &path.into(), detail).help(help));
    }
}

fn check_matchers(reader: &mut Reader, selector: &Node<'_>) {
    let is_there = reader.member(selector, "matchLabels");
    let matchers = reader.objects(selector, "matchLabels");
    if is_there.as_ref().is_none_or(|labels| labels.value.as_array().is_some_and(Vec::is_empty)) {
        let detail = "selector must have at least one match label";
        reader.report_native(Problem::required(selector.at.key("matchLabels"), detail));
    }
    let mut keys: Vec<(&str, usize)> = Vec::new();
    for (at, matcher) in matchers.iter().enumerate() {
        let Some(key) = check_matcher(reader, matcher) else { continue };
        if let Some((_, first)) = keys.iter().find(|(known, _)| *known == key) {
            let field = selector.at.key("matchLabels").index(*first);
            let why = format!("ignored: matchLabels[{at}] has the same key {key:?}, and the last one wins");
            reader.report(Problem::ignored(field, why).help("leave one of them out"));
        }
        keys.retain(|(known, _)| *known != key);
        keys.push((key, at));
    }
}

/// Checks an entry of `matchLabels`, and returns its label key; `None` if the key is missing or empty.
fn check_matcher<'v>(reader: &mut Reader, matcher: &Node<'v>) -> Option<&'v str> {
    reader.known(matcher, MATCHER);
    let key = match reader.required(matcher, "key", "key is required") {
        Some(("", at)) => {
            reader.report(Problem::required(at, "key is required"));
            None
        }
        Some((key, at)) => {
            labels::check_key(reader, key, at);
            Some(key)
        }
        None => None,
    };
    reader.lenient_choice(matcher, "fromFieldPathPolicy", REQUIRED, "Required");
    let before = reader.problems.len();
    match reader.choice(matcher, "type", MATCHER_TYPES) {
        Some("Value") => check_value(reader, matcher),
        Some(_) => check_from(reader, matcher),
        None if !reader.is_native() => downgrade_to_warnings(reader, before, "the function skips this matcher"),
        None => {}
    }
    key
}

fn check_value(reader: &mut Reader, matcher: &Node<'_>) {
    match reader.required(matcher, "value", "value is required") {
        // The function selects by the empty value.
        Some(("", at)) => reader.report_native(Problem::required(at, "value must not be empty")),
        Some((value, at)) => labels::check_value(reader, value, at),
        None => {}
    }
    if let Some(from) = matcher.member("valueFromFieldPath") {
        let why = "ignored: a matcher of type Value uses the field value";
        reader.report(Problem::ignored(from.at, why).help("write type: FromCompositeFieldPath, or leave it out"));
    }
}

fn check_from(reader: &mut Reader, matcher: &Node<'_>) {
    let key = "valueFromFieldPath";
    match reader.required(matcher, key, "valueFromFieldPath is required") {
        Some(("", at)) => reader.report(Problem::required(at, "valueFromFieldPath must not be empty")),
        Some(_) => {
            reader.path_to_read(matcher, key);
        }
        None => {}
    }
    if let Some(value) = matcher.member("value") {
        let why = "ignored: a matcher of this type reads its value from valueFromFieldPath";
        reader.report(Problem::ignored(value.at, why).help("write type: Value, or leave it out"));
    }
}
