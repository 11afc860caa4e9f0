//! What Landscaper's own webhook server validates, so that this one can stand in for it. Off by default.
//!
//! Landscaper's server says the first thing that a decoder stumbles over, or all that its validation finds; these rules
//! say everything at once. What they admit and refuse is the same, case by case.
//!
//! Source: `apis/core/validation` and `pkg/utils/webhook` in Landscaper; executed cases in
//! `tests/vectors/landscaper/validation.json`.

mod ls001;
mod ls002;
mod ls003;
mod ls004;
mod ls005;
mod ls006;
mod ls007;
mod ls008;
mod ls009;
mod ls010;
mod ls011;
mod names;
mod schema;
mod templates;

use std::collections::HashSet;

use serde_json::Value;

use crate::admission::{FieldPath, Finding, Operation, Request};
use crate::rule::Rule;

/// The rules that stand in for Landscaper's webhook server.
pub(super) static RULES: &[&Rule] = &[
    &ls001::RULE,
    &ls002::RULE,
    &ls003::RULE,
    &ls004::RULE,
    &ls005::RULE,
    &ls006::RULE,
    &ls007::RULE,
    &ls008::RULE,
    &ls009::RULE,
    &ls010::RULE,
    &ls011::RULE,
];

/// Landscaper's webhook server is not called for objects with this label at `"true"`.
const SKIP_LABEL: &str = "validation.landscaper.gardener.cloud/skip-validation";

const WRITES: &[Operation] = &[Operation::Create, Operation::Update];

/// The most that one rule says of one object: an object of 3 MiB can have more mistakes than anybody reads.
const MOST: usize = 500;

/// Whether Landscaper's webhook server would not be called: the API server looks at the labels before and after, and
/// calls if either object is selected.
pub(super) fn is_bypassed(request: &Request<'_>) -> bool {
    let skips = |object: &Value| {
        object.pointer("/metadata/labels").and_then(|labels| labels.get(SKIP_LABEL)).and_then(Value::as_str)
            == Some("true")
    };
    skips(request.object()) && (request.operation != Operation::Update || skips(request.old_object()))
}

/// Findings of one rule about one object.
struct Findings<'a> {
    rule: &'static Rule,
    request: &'a Request<'a>,
    found: Vec<Finding>,
}

impl<'a> Findings<'a> {
    fn new(rule: &'static Rule, request: &'a Request<'a>) -> Self {
        Self { rule, request, found: Vec::new() }
    }

    fn add(&mut self, field: FieldPath, message: impl Into<String>, help: impl Into<String>) {
        if self.found.len() >= MOST {
            return;
        }
        self.found.push(self.rule.finding(field, message).help(help));
    }

    /// A text that must be there.
    fn require(&mut self, object: &Value, place: &FieldPath, key: &str) {
        if text(object, key).is_empty() {
            self.add(place.key(key), format!("{key} is missing"), format!("write {key}"));
        }
    }

    /// That just one of some members is there.
    fn exactly_one(&mut self, object: &Value, place: &FieldPath, keys: &[&str]) {
        let set: Vec<_> = keys.iter().copied().filter(|key| is_set(object, key)).collect();
        let help = format!("write exactly one of {}", keys.join(", "));
        match set.as_slice() {
            [_] => {}
            [] => self.add(place.clone(), format!("none of {} is there", keys.join(", ")), help),
            several => self.add(place.clone(), format!("{} exclude each other", several.join(" and ")), help),
        }
    }

    /// Tells of a name that is there twice; one that is missing is told of as such where `required`.
    fn unique<'v>(&mut self, name: &'v str, place: FieldPath, seen: &mut HashSet<&'v str>) {
        if !seen.insert(name) {
            self.add(place, format!("the name {name:?} is there twice"), "give each a name of its own");
        }
    }

    fn spec(&self) -> &'a Value {
        member(self.request.object(), "spec")
    }

    /// What was found: nothing where Landscaper's webhook server would not be called.
    fn into_found(self) -> Vec<Finding> {
        if is_bypassed(self.request) { Vec::new() } else { self.found }
    }
}

static NOTHING: Value = Value::Null;

/// A member of an object; `null` where there is none.
fn member<'v>(object: &'v Value, key: &str) -> &'v Value {
    object.get(key).unwrap_or(&NOTHING)
}

fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    member(object, key).as_str().unwrap_or_default()
}

/// Whether a member is there as Go sees it: an empty text is none, an empty list or object is one.
fn is_set(object: &Value, key: &str) -> bool {
    let value = member(object, key);
    !value.is_null() && value.as_str() != Some("")
}

/// The elements of a list with their places.
fn list<'v>(object: &'v Value, key: &str, place: &FieldPath) -> Vec<(FieldPath, &'v Value)> {
    let place = place.key(key);
    let items = member(object, key).as_array().into_iter().flatten().enumerate();
    items.map(|(at, item)| (place.index(at), item)).collect()
}
