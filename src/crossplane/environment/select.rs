//! Selects the EnvironmentConfigs of an environment, by name or labels.
//!
//! Source: `environment_selector.go` of Crossplane 1.17.6, and `fn.go` of function-environment-configs 0.7.1. The sort
//! order is recorded in `tests/vectors/crossplane/sort_configs.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::sort::sort;
use super::{EnvironmentSource, LabelMatcher, LabelMatcherType, Mode, Profile, Selection, Selector, SourceType};
use crate::admission::Metadata;
use crate::catalog::Stored;
use crate::crossplane::field_path::{Path, PathError};
use crate::go::{Any, floats, fmt, quote};

/// A source in which EnvironmentConfigs are looked up by name or labels.
pub trait Configs {
    /// Returns the EnvironmentConfig with this name; `None` if it does not exist.
    fn find(&self, name: &str) -> Option<Arc<Stored>>;

    /// Returns the EnvironmentConfigs that have all these labels. If `labels` is empty, returns no EnvironmentConfigs.
    fn matching(&self, labels: &[(&str, &str)]) -> Vec<Arc<Stored>>;
}

/// Looks up EnvironmentConfigs in a list. Each look-up visits every item, so the list should be short.
impl Configs for [Arc<Stored>] {
    fn find(&self, name: &str) -> Option<Arc<Stored>> {
        self.iter().find(|stored| stored.name() == name).cloned()
    }

    fn matching(&self, labels: &[(&str, &str)]) -> Vec<Arc<Stored>> {
        let has = |stored: &&Arc<Stored>| labels.iter().all(|(key, value)| label(stored.value(), key) == Some(value));
        self.iter().filter(|_| !labels.is_empty()).filter(has).cloned().collect()
    }
}

/// Returns the value of the label `key` of an object; `None` if the object does not have this label.
pub fn label<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    Metadata::of(object).label(key)
}

/// The result of evaluating one entry of `environmentConfigs`, which selects EnvironmentConfigs by name or by labels.
#[derive(Debug, Clone)]
pub struct SourceOutcome {
    /// The labels that the selector requires. Empty if the entry selects an EnvironmentConfig by name. If two matchers
    /// have the same key, the last one takes precedence.
    pub labels: BTreeMap<String, String>,
    /// The selected EnvironmentConfigs, in merge order.
    pub selected: Vec<Arc<Stored>>,
    /// The name of a missing EnvironmentConfig that is optional. Crossplane up to 1.17 keeps the reference and uses the
    /// EnvironmentConfig as soon as it exists.
    pub missing: Option<String>,
    /// The matching EnvironmentConfigs that are not selected, because the selector selects at most `maxMatch` of them.
    pub cut: Vec<Arc<Stored>>,
    /// The reason why the entry selects no EnvironmentConfigs, although no error occurred. `None` in other cases.
    pub skipped: Option<String>,
    /// Whether EnvironmentConfigs are looked up for the entry. False if function-environment-configs skips the entry,
    /// because its type is unknown or its selector has no labels.
    pub asked: bool,
    /// The path in the environment at which the data of the selected EnvironmentConfigs is merged. Only
    /// function-environment-configs uses it.
    pub to_field_path: Option<String>,
    /// The error of selecting EnvironmentConfigs, with the message of Crossplane or function-environment-configs.
    /// `None` if there was no error.
    pub error: Option<String>,
    /// Whether the selection fails because the matching EnvironmentConfigs cannot be sorted.
    pub is_unsortable: bool,
}

/// Selects EnvironmentConfigs for each entry of `selection.sources`, independently of the other entries. `profile` says
/// which software decides the result: Crossplane up to 1.17, or Composition functions.
///
/// Composition functions see every number of a composite as a float64. For them, the caller must first convert the
/// numbers in `composite` to float64.
pub fn select(
    profile: Profile,
    selection: &Selection,
    composite: &Value,
    configs: &(impl Configs + ?Sized),
) -> Vec<SourceOutcome> {
    let selecting = Selecting { profile, selection, composite, configs };
    selection.sources.iter().flatten().enumerate().map(|(at, source)| selecting.source(at, source)).collect()
}

struct Selecting<'s, C: ?Sized> {
    profile: Profile,
    selection: &'s Selection,
    composite: &'s Value,
    configs: &'s C,
}

impl SourceOutcome {
    fn new(source: &EnvironmentSource) -> Self {
        Self {
            labels: BTreeMap::new(),
            selected: Vec::new(),
            missing: None,
            cut: Vec::new(),
            skipped: None,
            asked: true,
            to_field_path: source.to_field_path.clone().filter(|path| !path.is_empty()),
            error: None,
            is_unsortable: false,
        }
    }

    /// Returns the names that Crossplane up to 1.17 writes for this entry into the field `spec.environmentConfigRefs`
    /// of the composite. These are the names of the selected EnvironmentConfigs, and of an optional EnvironmentConfig
    /// that does not exist.
    pub(super) fn references(&self) -> impl Iterator<Item = String> {
        self.selected.iter().map(|stored| stored.name().to_owned()).chain(self.missing.clone())
    }

    fn failed(mut self, error: impl Into<String>) -> Self {
        self.error = Some(error.into());
        self
    }

    fn skipped(mut self, why: impl Into<String>) -> Self {
        self.skipped = Some(why.into());
        self
    }
}

impl<C: Configs + ?Sized> Selecting<'_, C> {
    fn source(&self, at: usize, source: &EnvironmentSource) -> SourceOutcome {
        let mut sourced = match source.kind() {
            SourceType::Reference => self.reference(at, source),
            SourceType::Selector => match &source.selector {
                Some(selector) => self.selector(at, selector, SourceOutcome::new(source)),
                None => SourceOutcome::new(source).failed("selector is required"),
            },
            // The function skips unknown types.
            SourceType::Other(name) if self.profile == Profile::Function => {
                let mut sourced = SourceOutcome::new(source).skipped(format!("unknown type {}", quote(&name)));
                sourced.asked = false;
                sourced
            }
            SourceType::Other(name) => SourceOutcome::new(source).failed(format!("invalid type {}", quote(&name))),
        };
        if self.profile == Profile::Native117 {
            sourced.to_field_path = None;
        }
        sourced
    }

    fn reference(&self, at: usize, source: &EnvironmentSource) -> SourceOutcome {
        let mut sourced = SourceOutcome::new(source);
        let name = source.reference.as_ref().map(|reference| reference.name.as_str()).unwrap_or_default();
        if name.is_empty() {
            return sourced.failed("ref is required");
        }
        let is_optional = self.selection.policy.is_resolution_optional();
        match self.configs.find(name) {
            Some(found) => sourced.selected.push(found),
            None if is_optional => {
                sourced.missing = Some(name.to_owned());
                return sourced.skipped(format!("EnvironmentConfig {name:?} not found"));
            }
            None if self.profile == Profile::Native117 => return sourced.failed(not_fetched(name)),
            None => {
                let name = quote(name);
                return sourced.failed(format!(
                    "cannot get selected environment configs: cannot process environment config {name} by reference, \
                     \"environment-config-{at}\": Required environment config {name} not found"
                ));
            }
        }
        sourced
    }

    fn selector(&self, at: usize, selector: &Selector, mut sourced: SourceOutcome) -> SourceOutcome {
        let mut optional = None;
        for (index, matcher) in selector.match_labels.iter().enumerate() {
            match self.label_value(matcher) {
                Ok(Some(value)) => {
                    sourced.labels.insert(matcher.key.clone(), value);
                }
                Ok(None) => optional = matcher.value_from_field_path.clone(),
                Err(error) => return sourced.failed(self.label_error(at, index, matcher, &error)),
            }
        }
        if sourced.labels.is_empty() {
            return self.no_labels(at, selector, optional, sourced);
        }
        let labels: Vec<(&str, &str)> = sourced.labels.iter().map(|(key, value)| (&**key, &**value)).collect();
        let found = self.configs.matching(&labels);
        self.taken(at, selector, found, sourced)
    }

    /// Returns the result of a selector without labels. Such a selector selects no EnvironmentConfigs. In Crossplane
    /// 1.17, this is an error if the selector requires an EnvironmentConfig. function-environment-configs skips the
    /// selector, and the result contains the reason. `sourced` is the result before this call.
    ///
    /// `at` is the index of the selector in `environmentConfigs`. `optional` is the path of an optional label matcher
    /// that has no effect, because the composite has no value at this path. `None` if there is no such matcher.
    fn no_labels(
        &self,
        at: usize,
        selector: &Selector,
        optional: Option<String>,
        mut sourced: SourceOutcome,
    ) -> SourceOutcome {
        if self.profile == Profile::Native117 {
            return self.taken(at, selector, Vec::new(), sourced);
        }
        sourced.asked = false;
        let why = optional.map_or_else(
            || "the selector has no labels".to_owned(),
            |path| format!("the composite has no string at {path}"),
        );
        sourced.skipped(why)
    }

    /// Selects from `found`, the EnvironmentConfigs that match the labels of `selector`. Applies the mode, `minMatch`,
    /// `maxMatch` and the sort path of the selector. Returns `sourced` with the selected EnvironmentConfigs, or with an
    /// error. `at` is the index of the selector in `environmentConfigs`, for error messages.
    fn taken(
        &self,
        at: usize,
        selector: &Selector,
        mut found: Vec<Arc<Stored>>,
        mut sourced: SourceOutcome,
    ) -> SourceOutcome {
        let count = found.len() as u64;
        match selector.effective_mode() {
            Mode::Single if count == 1 => sourced.selected = found,
            Mode::Single => return sourced.failed(self.counted(at, Wanted::One, count)),
            Mode::Multiple => {
                if let Some(least) = selector.min_match.filter(|least| count < *least) {
                    return sourced.failed(self.counted(at, Wanted::AtLeast(least), count));
                }
                if let Err(error) = sort(self.profile, selector.sort_path(self.profile), &mut found) {
                    sourced.is_unsortable = true;
                    return sourced.failed(self.within_source(at, &error));
                }
                let most = selector.max_match.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
                sourced.cut = found.split_off(most.min(found.len()));
                sourced.selected = found;
            }
            Mode::Other(name) => {
                return sourced.failed(self.within_source(at, &format!("unknown selector mode {}", quote(&name))));
            }
        }
        sourced
    }

    fn counted(&self, at: usize, wanted: Wanted, found: u64) -> String {
        let text = match (self.profile, wanted) {
            (Profile::Native117, Wanted::One) => {
                format!("only 1 EnvironmentConfig can be selected in Single mode, found: {found}")
            }
            (Profile::Native117, Wanted::AtLeast(least)) => {
                format!("expected at least {least} EnvironmentConfig(s) with matching labels, found: {found}")
            }
            (Profile::Function, Wanted::One) => format!("expected exactly one required resource, got {found}"),
            (Profile::Function, Wanted::AtLeast(least)) => {
                format!("expected at least {least} required resources, got {found}")
            }
        };
        self.within_source(at, &text)
    }

    fn within_source(&self, at: usize, error: &str) -> String {
        match self.profile {
            Profile::Native117 => {
                format!("cannot select environment: failed to build reference at index {at}: {error}")
            }
            Profile::Function => format!(
                "cannot get selected environment configs: cannot process environment config \
                 \"environment-config-{at}\" by selector: {error}"
            ),
        }
    }

    /// Returns the value that a matcher requires for its label. `None` if the matcher is left out, for example because
    /// an optional value is missing. Returns an error if a required value is missing or cannot be used.
    fn label_value(&self, matcher: &LabelMatcher) -> Result<Option<String>, LabelError> {
        let object = match matcher.kind() {
            LabelMatcherType::Value => return matcher.value.clone().map(Some).ok_or(LabelError::Unset("value")),
            LabelMatcherType::FromCompositeFieldPath => self.composite,
            // The function skips matchers of unknown types.
            _ if self.profile == Profile::Function => return Ok(None),
            other => return Err(LabelError::Type(other.as_str().to_owned())),
        };
        let path = matcher.value_from_field_path.as_ref().ok_or(LabelError::Unset("valueFromFieldPath"))?;
        let value = Path::named(path).and_then(|path| path.get(object));
        match (self.profile, value) {
            (Profile::Native117, Ok(value)) => {
                Ok(Some(fmt::plain(&Any::Json(value.clone())).map_err(|error| LabelError::Value(error.to_string()))?))
            }
            (Profile::Native117, Err(error)) if matcher.is_optional() && error.is_not_found() => Ok(None),
            (Profile::Function, Ok(Value::String(text))) => Ok(Some(text.clone())),
            (Profile::Function, _) if matcher.is_optional() => Ok(None),
            (Profile::Function, Ok(_)) => Err(LabelError::Value(format!("{path}: not a string"))),
            (_, Err(error)) => Err(LabelError::Path(error)),
        }
    }

    fn label_error(&self, at: usize, index: usize, matcher: &LabelMatcher, error: &LabelError) -> String {
        let error = match error {
            LabelError::Unset(field) => format!("{field} is required"),
            LabelError::Type(name) => format!("invalid type {}", quote(name)),
            LabelError::Value(text) => text.clone(),
            LabelError::Path(error) => error.to_string(),
        };
        match self.profile {
            Profile::Native117 => {
                self.within_source(at, &format!("failed to resolve value for label at index {index}: {error}"))
            }
            Profile::Function => {
                let path = quote(matcher.value_from_field_path.as_deref().unwrap_or_default());
                format!("cannot build requirements: cannot get value from composite field path {path}: {error}")
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Wanted {
    One,
    AtLeast(u64),
}

/// The reason why the value of a required label cannot be determined.
enum LabelError {
    Unset(&'static str),
    Type(String),
    Value(String),
    Path(PathError),
}

/// Returns the error message of Crossplane up to 1.17 for a missing EnvironmentConfig.
pub(super) fn not_fetched(name: &str) -> String {
    format!(
        "cannot fetch environment: cannot fetch environment configs: failed to get config set from reference: \
         environmentconfigs.apiextensions.crossplane.io {} not found",
        quote(name)
    )
}

/// Returns a copy of the composite `object` for patches to read. Composition functions receive every number as a
/// float64, so all integers are converted for them. For Crossplane up to 1.17, the copy is unchanged.
pub(super) fn loaded(profile: Profile, object: &Value) -> Value {
    match profile {
        Profile::Native117 => object.clone(),
        Profile::Function => floats(object.clone()),
    }
}
