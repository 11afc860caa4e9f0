//! Applies one patch and records each step.
//!
//! Source: `composition_patches.go` of Crossplane 1.17.6, and `patches.go` of function-patch-and-transform 0.10.8.

use serde_json::Value;

use super::document::{Document, WriteError};
use super::{Combine, Patch, Profile, StringType, Transform};
use crate::crossplane::field_path::{Path, PathError};
use crate::go::fmt::{self, MISTAKE};
use crate::go::{Any, integers};

/// The result of applying a patch: the values that were read, the result of each transform, and how the patch ended.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchOutcome {
    /// The fields that the patch read, with their values.
    pub reads: Vec<Read>,
    /// The combined value of several fields; `None` if the patch does not combine fields.
    pub combined: Option<Any>,
    /// The result of each transform, in order.
    pub steps: Vec<Any>,
    /// The paths of the fields that the patch set. If the target has wildcards, the patch can set several fields.
    pub written: Vec<String>,
    /// Formatted texts in which Go's `fmt.Sprintf` reports an error, such as `%!d(float64=7)`.
    pub mistakes: Vec<String>,
    /// Whether the patch wrote its value, was skipped, or failed.
    pub ending: Ending,
}

/// A field that a patch reads, with its path and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The path of the field, as in the patch.
    pub path: String,
    /// The value of the field; `None` if it is missing or cannot be read.
    pub value: Option<Value>,
}

/// The outcome of applying a patch, such as written, skipped or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The patch wrote its value.
    Written,
    /// The patch did nothing, because a value is missing and the patch is optional. The string is the error message
    /// about the missing value.
    Skipped(String),
    /// Crossplane ignores this patch. The string is the reason.
    Ignored(String),
    /// The patch can be applied only when the composed resource exists. The string is the reason.
    Deferred(String),
    /// The patch failed. The string is Crossplane's error message.
    Failed(String),
}

impl PatchOutcome {
    pub(super) fn of(ending: Ending) -> Self {
        Self { reads: Vec::new(), combined: None, steps: Vec::new(), written: Vec::new(), mistakes: Vec::new(), ending }
    }

    /// Returns the last value that the patch computed. This is the result of the last transform. Without transforms, it
    /// is the combined value, or the value that the patch read. `None` if the patch stopped before it computed a value.
    pub fn output(&self) -> Option<Value> {
        let read = || self.reads.first().filter(|_| self.reads.len() == 1).and_then(|read| read.value.clone());
        self.steps.last().or(self.combined.as_ref()).map(Any::shown).or_else(read)
    }

    /// Returns the error message of a patch that failed; `None` for other patches.
    pub fn failure(&self) -> Option<&str> {
        if let Ending::Failed(error) = &self.ending { Some(error) } else { None }
    }
}

/// The reason why a patch cannot be applied. `Missing` means that the object does not contain a path. If the patch is
/// optional, it is then skipped.
enum Stop {
    Missing(PathError),
    Failed(String),
}

/// The state of a patch that is being applied.
struct Applying<'p> {
    profile: Profile,
    patch: &'p Patch,
    outcome: PatchOutcome,
}

/// Applies a patch. Returns the values that the patch reads and writes, and whether the patch wrote its value, was
/// skipped, or failed. `profile` says whether to apply the patch like Crossplane itself or like a Composition function.
/// The patch reads the object `from` and writes to the object `to`. `left` is the number of bytes that patches may
/// still write.
pub(super) fn apply(
    profile: Profile,
    patch: &Patch,
    from: &Value,
    to: &mut Document,
    left: &mut usize,
) -> PatchOutcome {
    let mut applying = Applying { profile, patch, outcome: PatchOutcome::of(Ending::Written) };
    let result = match is_combining(patch) {
        true => applying.combine(from, to, left),
        false => applying.copy(from, to, left),
    };
    applying.outcome.ending = match result {
        Ok(()) => Ending::Written,
        Err(Stop::Missing(error)) if !patch.is_required() => Ending::Skipped(error.to_string()),
        Err(Stop::Missing(error)) => Ending::Failed(error.to_string()),
        Err(Stop::Failed(error)) => Ending::Failed(error),
    };
    applying.outcome
}

fn is_combining(patch: &Patch) -> bool {
    patch.kind().as_str().starts_with("Combine")
}

impl Applying<'_> {
    /// Reads a field of `from`, applies the transforms to its value, and writes the result to a field of `to`. `left`
    /// is the number of bytes that patches may still write. Returns the reason if the patch cannot be applied.
    fn copy(&mut self, from: &Value, to: &mut Document, left: &mut usize) -> Result<(), Stop> {
        let path = match (&self.patch.from_field_path, self.profile) {
            (Some(path), _) => path.clone(),
            (None, Profile::Function) => String::new(),
            (None, Profile::Native117) => return Err(self.required("FromFieldPath")),
        };
        let value = self.read(&path, from)?;
        let value = self.transformed(Any::Json(value))?;
        let target = self.patch.to_field_path.clone().unwrap_or(path);
        let options = self.options()?;
        if target.contains("[*]") {
            let value = self.json(value)?;
            let paths = expanded(&target, &to.value).map_err(|error| self.write_error(error, ""))?;
            return self.write(to, &paths, &value, options, left, "");
        }
        let value = self.json(value)?;
        let prefix = self.prefix();
        let path = self.target(&target, prefix)?;
        self.write(to, &[path], &value, options, left, prefix)
    }

    /// Combines the values of several fields of `from` into one value, applies the transforms to this value, and writes
    /// the result to a field of `to`. `left` is the number of bytes that patches may still write. Returns the reason if
    /// the patch cannot be applied.
    fn combine(&mut self, from: &Value, to: &mut Document, left: &mut usize) -> Result<(), Stop> {
        let combine = self.patch.combine.clone().ok_or_else(|| self.required("Combine"))?;
        let target = match (&self.patch.to_field_path, self.profile) {
            (Some(path), _) => path.clone(),
            (None, Profile::Native117) => return Err(self.required("ToFieldPath")),
            (None, Profile::Function) => self.patch.from_field_path.clone().unwrap_or_default(),
        };
        if combine.variables.is_empty() && self.profile == Profile::Native117 {
            return Err(Stop::Failed("combine patch types require at least one variable".to_owned()));
        }
        let mut values = Vec::with_capacity(combine.variables.len());
        for variable in &combine.variables {
            values.push(Any::Json(self.read(&variable.from_field_path, from)?));
        }
        let combined = self.combined(&combine, &values)?;
        self.outcome.combined = Some(combined.clone());
        let value = self.transformed(combined)?;
        let value = self.json(value)?;
        // Crossplane up to 1.17 ignores the merge options here.
        let options = if self.profile == Profile::Function { self.options()? } else { None };
        let prefix = self.prefix();
        let path = self.target(&target, prefix)?;
        self.write(to, &[path], &value, options, left, prefix)
    }

    fn combined(&mut self, combine: &Combine, values: &[Any]) -> Result<Any, Stop> {
        let strategy = &combine.strategy;
        if strategy != "string" {
            return Err(Stop::Failed(format!("combine strategy {strategy} is not supported")));
        }
        let format = combine
            .string
            .as_ref()
            .map(|string| string.fmt.as_str())
            .ok_or_else(|| Stop::Failed("given combine strategy string requires configuration".to_owned()))?;
        let text = fmt::sprintf(format, values).map_err(|error| Stop::Failed(error.to_string()))?;
        self.note_mistake(&text);
        Ok(Any::text(text))
    }

    fn note_mistake(&mut self, text: &str) {
        if text.contains(MISTAKE) {
            self.outcome.mistakes.push(text.to_owned());
        }
    }

    fn required(&self, field: &str) -> Stop {
        Stop::Failed(format!("{field} is required by type {}", self.patch.kind().as_str()))
    }

    fn read(&mut self, path: &str, from: &Value) -> Result<Value, Stop> {
        let value = Path::named(path).and_then(|path| path.get(from).cloned());
        self.outcome.reads.push(Read { path: path.to_owned(), value: value.as_ref().ok().cloned() });
        value.map_err(|error| match error.is_not_found() {
            true => Stop::Missing(error),
            false => Stop::Failed(error.to_string()),
        })
    }

    fn transformed(&mut self, mut value: Any) -> Result<Any, Stop> {
        for (at, transform) in self.patch.transforms.iter().enumerate() {
            let result = transform.resolve(&value, self.profile);
            let wrong = |error| Stop::Failed(format!("transform at index {at} returned error: {error}"));
            value = result.map_err(wrong)?;
            if let (true, Any::Json(Value::String(text))) = (is_formatting(transform), &value) {
                self.note_mistake(&text.clone());
            }
            self.outcome.steps.push(value.clone());
        }
        Ok(value)
    }

    /// Converts a value to the JSON that the patch writes into an object. function-patch-and-transform encodes a copied
    /// value as JSON and decodes it again before it merges the value. This method converts numbers in the same way.
    /// Fails if JSON cannot represent the value, such as NaN.
    fn json(&self, value: Any) -> Result<Value, Stop> {
        let value = value.into_value().map_err(|error| Stop::Failed(WriteError::NoJson(error).to_string()))?;
        let is_read_again = self.profile == Profile::Function && !is_combining(self.patch);
        Ok(if is_read_again { integers(value) } else { value })
    }

    fn options(&self) -> Result<Option<crate::crossplane::field_path::MergeOptions>, Stop> {
        let invalid = |name: &str| Stop::Failed(format!("invalid patch policy {name}"));
        self.patch.merge_options(self.profile).map_err(invalid)
    }

    fn prefix(&self) -> &'static str {
        if self.profile == Profile::Function { "cannot patch to object: " } else { "" }
    }

    fn target(&self, path: &str, prefix: &str) -> Result<Path, Stop> {
        Path::named(path).map_err(|error| self.write_error(error.into(), prefix))
    }

    fn write(
        &mut self,
        to: &mut Document,
        paths: &[Path],
        value: &Value,
        options: Option<crate::crossplane::field_path::MergeOptions>,
        left: &mut usize,
        prefix: &str,
    ) -> Result<(), Stop> {
        to.write(paths, value, options, left).map_err(|error| self.write_error(error, prefix))?;
        self.outcome.written = paths.iter().map(Path::to_string).collect();
        Ok(())
    }

    /// Converts an error that occurred while writing the target field to the reason why the patch cannot be applied.
    /// With function-patch-and-transform, a missing field becomes `Stop::Missing`, so that an optional patch is
    /// skipped. Every other error becomes `Stop::Failed`, with `prefix` before the message.
    fn write_error(&self, error: WriteError, prefix: &str) -> Stop {
        match error {
            WriteError::Path(error) if self.profile == Profile::Function && error.is_not_found() => {
                Stop::Missing(error)
            }
            error => Stop::Failed(format!("{prefix}{error}")),
        }
    }
}

fn is_formatting(transform: &Transform) -> bool {
    transform.string.as_ref().is_some_and(|string| string.string_type == StringType::Format)
}

/// Returns the paths to which the path `target` with wildcards expands in `object`. Fails if there is no such path.
fn expanded(target: &str, object: &Value) -> Result<Vec<Path>, WriteError> {
    let paths = Path::named(target)?.expand(object)?;
    if paths.is_empty() { Err(WriteError::NothingToExpand(target.to_owned())) } else { Ok(paths) }
}
