//! Computes the labels that an EnvironmentConfig must have so that a selector in a Composition selects it for a
//! composite.
//!
//! Source: `buildEnvironmentConfigRefFromSelector` in Crossplane 1.17's `environment_selector.go`, and `fn.go` of
//! function-environment-configs.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::crossplane::environment::{LabelMatcherType, Profile, Selector};
use crate::crossplane::field_path::Path;
use crate::go::{Any, fmt};

/// Returns the labels that an EnvironmentConfig must have so that `selector` selects it for `composite`. `None` if the
/// value of a label cannot be computed from the composite.
///
/// If two matchers have the same key, the last one wins. An optional matcher is left out if the composite has no value
/// at its path. For function-environment-configs, an optional matcher is also left out if its value cannot be used for
/// another reason, for example because the value is not a string.
pub fn wanted(selector: &Selector, composite: &Value, profile: Profile) -> Option<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    for matcher in &selector.match_labels {
        let value = match matcher.kind() {
            LabelMatcherType::Value => matcher.value.clone()?,
            LabelMatcherType::FromCompositeFieldPath => {
                match value_of(matcher.value_from_field_path.as_deref()?, composite, profile) {
                    Ok(value) => value,
                    Err(is_missing) if matcher.is_optional() && (is_missing || profile == Profile::Function) => {
                        continue;
                    }
                    Err(_) => return None,
                }
            }
            _ => return None,
        };
        labels.insert(matcher.key.clone(), value);
    }
    Some(labels)
}

/// Returns the value at a path of the composite as text. Crossplane up to 1.17 formats a value of any type, but
/// function-environment-configs accepts only strings. The error is `true` if the value is missing, and `false` for any
/// other reason.
fn value_of(path: &str, composite: &Value, profile: Profile) -> Result<String, bool> {
    let path = Path::parse(path).map_err(|_| false)?;
    let value = path.get(composite).map_err(|error| error.is_not_found())?;
    match (profile, value) {
        (_, Value::String(text)) => Ok(text.clone()),
        (Profile::Native117, value) => fmt::plain(&Any::Json(value.clone())).map_err(|_| false),
        (Profile::Function, _) => Err(false),
    }
}
