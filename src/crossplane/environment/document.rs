//! Objects to which patches are applied: the composite, its environment and its composed resources.

use serde_json::{Map, Value, json};

use super::Profile;
use crate::crossplane::field_path::{MergeOptions, Path, PathError, Segment};
use crate::go::{integers, json as go_json};

/// Maximum number of bytes that one computation may write. Each patch may copy what earlier patches copied, so a few
/// patches could fill the memory. An object that the API server accepts has at most three million bytes.
pub const MAX_WRITTEN: usize = 32 << 20;

/// An object that is being patched.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document {
    pub(super) value: Value,
    /// Whether all floats without a fraction, such as `2.0`, have been converted to integers. The first write to this
    /// document converts them, as Go does when it encodes an object as JSON and decodes it again.
    is_normal: bool,
}

/// The reason why a value could not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("cannot expand ToFieldPath {0}")]
    NothingToExpand(String),
    #[error("Object 'Kind' is missing in '{0}'")]
    NoKind(String),
    #[error("{0}")]
    NoJson(String),
    #[error("all patches together would write more than {MAX_WRITTEN} bytes")]
    TooMuch,
}

impl Document {
    pub(super) fn new(value: Value) -> Self {
        Self { value, is_normal: false }
    }

    /// Writes a value at each of the paths, and merges it with an existing value as `options` specifies. `left` is the
    /// number of bytes that may still be written. Fails if a value cannot be written, if `left` is too small, or if the
    /// object has no valid `apiVersion` and `kind` afterwards.
    pub(super) fn write(
        &mut self,
        paths: &[Path],
        value: &Value,
        options: Option<MergeOptions>,
        left: &mut usize,
    ) -> Result<(), WriteError> {
        let cost = weight(value);
        for path in paths {
            let padding: usize = path.highest_index().map_or(0, |index| index as usize * 5);
            *left = left.checked_sub(cost + padding + 1).ok_or(WriteError::TooMuch)?;
            path.merge(&mut self.value, value.clone(), options)?;
        }
        self.normalise(paths);
        match self.has_kind() {
            true => Ok(()),
            false => Err(WriteError::NoKind(go_json::marshal(&self.value))),
        }
    }

    /// Converts floats without a fraction to integers. The first write converts the numbers of the entire object. Later
    /// writes convert only the numbers in the top-level members that `paths` change.
    fn normalise(&mut self, paths: &[Path]) {
        if !self.is_normal {
            self.value = integers(std::mem::take(&mut self.value));
            self.is_normal = true;
            return;
        }
        let Some(members) = self.value.as_object_mut() else { return };
        let mut last = None;
        for path in paths {
            let Some(Segment::Field(first)) = path.segments().first() else { continue };
            if last.replace(first) == Some(first) {
                continue;
            }
            if let Some(member) = members.get_mut(first) {
                *member = integers(std::mem::take(member));
            }
        }
    }

    /// Returns whether the object has a `kind`, and an `apiVersion` with at most one slash. Crossplane and
    /// function-patch-and-transform also check this after each patch that writes the object.
    fn has_kind(&self) -> bool {
        let text = |key| self.value.get(key).and_then(Value::as_str).unwrap_or_default();
        !text("kind").is_empty() && text("apiVersion").matches('/').count() <= 1
    }
}

/// Estimates the size of a value in bytes.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| weight(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + weight(value) + 4).sum::<usize>() + 2,
        _ => 5,
    }
}

/// Adds `apiVersion` and `kind` to an environment. If the data already contains these fields, Crossplane up to 1.17
/// overwrites them, and function-environment-configs keeps them.
pub fn with_kind(profile: Profile, mut data: Map<String, Value>) -> Value {
    let says = |key| data.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if profile == Profile::Native117 || !(says("apiVersion") || says("kind")) {
        data.insert("apiVersion".to_owned(), json!("internal.crossplane.io/v1alpha1"));
        data.insert("kind".to_owned(), json!("Environment"));
    }
    Value::Object(data)
}

/// Merges `over` into `base` in the same way as server-side apply: maps are merged, and other values of `base` are
/// replaced.
pub(super) fn overlay(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                overlay(base.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}
