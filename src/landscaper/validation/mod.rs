//! The checks of Landscaper's own webhook server. They are off by default, and are meant for clusters where Portcullis
//! replaces that server.
//!
//! Landscaper's server reports either the first decoding error or all validation errors. The rules of this module
//! report all errors at once. They admit and deny the same objects as Landscaper's server.
//!
//! Source: `apis/core/validation` and `pkg/utils/webhook` in Landscaper. The results of running this code are recorded
//! in `tests/vectors/landscaper/validation.json`.

pub(super) mod names;
pub(super) mod schema;
pub(super) mod templates;

use std::collections::HashSet;

use serde_json::Value;

use crate::admission::{FieldPath, Finding, Metadata, Operation, Request};
use crate::rule::Rule;

/// The label that excludes an object from Landscaper's webhook server if its value is `"true"`.
const SKIP_LABEL: &str = "validation.landscaper.gardener.cloud/skip-validation";

/// Maximum number of findings of one rule for one object. An object of 3 MiB can have more mistakes than a user can
/// read.
const MAX_FINDINGS: usize = 500;

/// Returns whether a label excludes the request from Landscaper's own webhook server. The label is [`SKIP_LABEL`] with
/// the value `"true"`, on the object in the request. An update is excluded only if both the old and the new object have
/// this label.
pub(super) fn is_bypassed(request: &Request<'_>) -> bool {
    let skips = |object: &Value| Metadata::of(object).label(SKIP_LABEL) == Some("true");
    skips(request.object()) && (request.operation != Operation::Update || skips(request.old_object()))
}

/// A collector of the findings of one rule for one object.
pub(super) struct Findings<'a> {
    rule: &'static Rule,
    request: &'a Request<'a>,
    pub(super) found: Vec<Finding>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(rule: &'static Rule, request: &'a Request<'a>) -> Self {
        Self { rule, request, found: Vec::new() }
    }

    pub(super) fn add(&mut self, field: FieldPath, message: impl Into<String>, help: impl Into<String>) {
        if self.found.len() >= MAX_FINDINGS {
            return;
        }
        self.found.push(self.rule.finding(field, message).help(help));
    }

    /// Adds a finding if the string field `key` of `object` is missing or empty. `place` is the field path of `object`.
    pub(super) fn require(&mut self, object: &Value, place: &FieldPath, key: &str) {
        if text(object, key).is_empty() {
            self.add(place.key(key), format!("{key} is missing"), format!("write {key}"));
        }
    }

    /// Adds a finding unless exactly one of the fields `keys` of an object is set. `place` is the field path of the
    /// object.
    pub(super) fn exactly_one(&mut self, object: &Value, place: &FieldPath, keys: &[&str]) {
        let set: Vec<_> = keys.iter().copied().filter(|key| is_set(object, key)).collect();
        let help = format!("write exactly one of {}", keys.join(", "));
        match set.as_slice() {
            [_] => {}
            [] => self.add(place.clone(), format!("none of {} is set", keys.join(", ")), help),
            several => self.add(place.clone(), format!("{} are mutually exclusive", several.join(" and ")), help),
        }
    }

    /// Adds a finding at the field path `place` if `name` is already in `seen`, and adds the name to `seen`.
    pub(super) fn unique<'v>(&mut self, name: &'v str, place: FieldPath, seen: &mut HashSet<&'v str>) {
        if !seen.insert(name) {
            self.add(place, format!("duplicate name {name:?}"), "give each a unique name");
        }
    }

    pub(super) fn spec(&self) -> &'a Value {
        member(self.request.object(), "spec")
    }

    /// Returns the collected findings. The result is empty if Landscaper's webhook would not receive the request
    /// ([`is_bypassed`]).
    pub(super) fn into_found(self) -> Vec<Finding> {
        if is_bypassed(self.request) { Vec::new() } else { self.found }
    }
}

static NOTHING: Value = Value::Null;

/// Returns the value of the field `key` of an object; `null` if the field is missing.
pub(super) fn member<'v>(object: &'v Value, key: &str) -> &'v Value {
    object.get(key).unwrap_or(&NOTHING)
}

pub(super) fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    member(object, key).as_str().unwrap_or_default()
}

/// Reports whether the field `key` of an object is set. As in Landscaper, `null` and the empty string count as not set,
/// but an empty list or object counts as set.
pub(super) fn is_set(object: &Value, key: &str) -> bool {
    let value = member(object, key);
    !value.is_null() && value.as_str() != Some("")
}

/// Returns the elements of the list in the field `key` of an object, each with its field path. `place` is the field
/// path of the object. Returns no elements if the field is missing or is not a list.
pub(super) fn list<'v>(object: &'v Value, key: &str, place: &FieldPath) -> Vec<(FieldPath, &'v Value)> {
    let place = place.key(key);
    let items = member(object, key).as_array().into_iter().flatten().enumerate();
    items.map(|(at, item)| (place.index(at), item)).collect()
}
