//! Determines whether an object can be written, and how writing changes its keys.

use std::sync::Arc;

use serde_json::Value;

use super::keys::{ANNOTATIONS, KeyFault, Unwritable, below};
use super::object::Object;
use crate::kustomize::finding::Site;
use crate::yaml;

/// The mappings that generators write; their keys are written without quotes.
const GENERATED: [&str; 4] = ["/data", "/binaryData", "/metadata/labels", ANNOTATIONS];

/// Whether an object can be written.
#[derive(Debug, PartialEq)]
pub enum Writable<'o> {
    /// It can.
    Yes,
    /// It cannot, because of this key.
    No(&'o Unwritable),
    /// It depends on unknown content.
    Perhaps,
}

impl Object {
    /// Returns whether it can currently be written.
    pub fn writable(&self) -> Writable<'_> {
        let mut perhaps = false;
        for key in self.unwritable() {
            match (self.is_clear(&key.pointer), self.raw().pointer(&key.pointer)) {
                (true, Some(_)) if !self.may_have_lost(key) => return Writable::No(key),
                (true, None) => {}
                _ => perhaps = true,
            }
        }
        if perhaps { Writable::Perhaps } else { Writable::Yes }
    }

    /// Returns whether a key may have been removed. A second, empty `metadata` disappears when kustomize stores a
    /// previous identity in the first; annotations are written anew, which merges two mappings.
    fn may_have_lost(&self, key: &Unwritable) -> bool {
        let is_second = key.pointer == "/metadata" && self.has_former() && key.fault == KeyFault::Twice;
        key.pointer == ANNOTATIONS || is_second
    }

    /// Notes a key that is written into it without quotes.
    pub fn write_key(&mut self, mapping: &str, key: &str, site: &Arc<Site>) {
        let is_text = yaml::is_text(key);
        if is_text == Some(true) {
            return;
        }
        let pointer = below(mapping, key);
        if is_text.is_none() {
            self.invalidate(&pointer);
        }
        self.unwritable_mut().push(Unwritable { pointer, fault: KeyFault::NotText, site: Arc::clone(site) });
    }

    /// Records the keys that a generator wrote.
    pub fn write_generated(&mut self) {
        GENERATED.into_iter().for_each(|mapping| self.write_keys(mapping));
    }

    /// Writes its annotations anew, as kustomize does at the end of a build (`RemoveBuildAnnotations`) and after a JSON
    /// patch. A value that is not a scalar becomes an empty string.
    pub fn write_annotations(&mut self) {
        let members = self.raw().pointer(ANNOTATIONS).and_then(|value| value.as_object());
        if members.is_some_and(|members| members.values().any(is_nested)) {
            let members = self.raw_mut().pointer_mut(ANNOTATIONS).and_then(|value| value.as_object_mut());
            let nested = members.into_iter().flat_map(|members| members.values_mut()).filter(|value| is_nested(value));
            nested.for_each(|value| *value = "".into());
        }
        let is_in_a_value = |key: &Unwritable| {
            let below = key.pointer.strip_prefix(ANNOTATIONS).and_then(|rest| rest.strip_prefix('/'));
            below.is_some_and(|rest| rest.contains('/'))
        };
        self.unwritable_mut().retain(|key| !is_in_a_value(key));
        self.write_keys(ANNOTATIONS);
    }

    fn write_keys(&mut self, mapping: &str) {
        let site = Arc::clone(&self.site);
        let members = self.raw().pointer(mapping).and_then(|value| value.as_object());
        let keys: Vec<String> = members.into_iter().flat_map(|members| members.keys().cloned()).collect();
        keys.iter().for_each(|key| self.write_key(mapping, key, &site));
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}
