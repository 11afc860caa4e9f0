//! Selectors of the Targets that a deployer serves.
//!
//! Source: `MatchOne` in Landscaper's `pkg/deployer/lib/targetselector/selector.go`, and `labels.Requirement` in
//! apimachinery. A deployer with selectors serves a Target if at least one selector matches the Target. A selector
//! matches a Target if the Target meets all conditions of the selector: `targets`, `annotations` and `labels`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A selector of Targets, as in the configuration of Landscaper's deployers. An empty selector selects all Targets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TargetSelector {
    /// The Targets that the selector can match, by name and namespace. If the list is empty, the selector can match any
    /// Target.
    pub targets: Vec<TargetName>,
    /// Requirements on the annotations of the Target. All of them must be met.
    pub annotations: Vec<Requirement>,
    /// Requirements on the labels of the Target. All of them must be met.
    pub labels: Vec<Requirement>,
}

/// A reference to a Target, by name and namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetName {
    /// The name of the Target.
    pub name: String,
    /// The namespace of the Target.
    pub namespace: String,
}

/// A requirement on a label or an annotation of a Target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The key of the label or annotation.
    pub key: String,
    /// How the value of the label or annotation is compared with [`Self::values`].
    pub operator: Operator,
    /// The values with which the value of the label or annotation is compared.
    #[serde(default)]
    pub values: Vec<String>,
}

/// An operator of a requirement, spelled as in apimachinery's `selection.Operator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// The value of the label or annotation is one of the listed values.
    #[serde(rename = "in", alias = "=", alias = "==")]
    In,
    /// The value of the label or annotation is none of the listed values, or the label or annotation is missing.
    #[serde(rename = "notin", alias = "!=")]
    NotIn,
    /// The label or annotation exists.
    #[serde(rename = "exists")]
    Exists,
    /// The label or annotation is missing.
    #[serde(rename = "!")]
    DoesNotExist,
    /// The value of the label or annotation is a number greater than the number in [`Requirement::values`].
    #[serde(rename = "gt")]
    Greater,
    /// The value of the label or annotation is a number less than the number in [`Requirement::values`].
    #[serde(rename = "lt")]
    Less,
}

impl TargetSelector {
    /// Reports whether the selector matches a Target.
    pub fn selects(&self, target: &Value) -> bool {
        let metadata = target.get("metadata").unwrap_or(&Value::Null);
        let is = |key: &str, text: &str| metadata.get(key).and_then(Value::as_str) == Some(text);
        let is_named = self.targets.is_empty()
            || self.targets.iter().any(|target| is("name", &target.name) && is("namespace", &target.namespace));
        let hold = |requirements: &[Requirement], texts: &str| {
            requirements.iter().all(|requirement| requirement.holds_for(metadata.get(texts)))
        };
        is_named && hold(&self.annotations, "annotations") && hold(&self.labels, "labels")
    }

    /// Returns a description of the first invalid requirement of the selector; `None` if all requirements are valid. A
    /// requirement is invalid if its operator does not allow its values, such as `exists` with a value. Kubernetes'
    /// apimachinery library, which deployers use, rejects such a requirement.
    pub fn problem(&self) -> Option<String> {
        self.annotations.iter().chain(&self.labels).find_map(Requirement::problem)
    }
}

impl Requirement {
    fn holds_for(&self, texts: Option<&Value>) -> bool {
        let value = texts.and_then(|texts| texts.get(&self.key)?.as_str());
        let is_one = || value.is_some_and(|value| self.values.iter().any(|one| one == value));
        let number = |text: &str| text.parse::<i64>().ok();
        let compared = || Some((number(value?)?, number(self.values.first()?)?));
        match self.operator {
            Operator::In => is_one(),
            Operator::NotIn => !is_one(),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Greater => compared().is_some_and(|(value, bound)| value > bound),
            Operator::Less => compared().is_some_and(|(value, bound)| value < bound),
        }
    }

    fn problem(&self) -> Option<String> {
        let Self { key, values, .. } = self;
        let number = |text: &String| text.parse::<i64>().is_ok();
        let is_right = match self.operator {
            Operator::In | Operator::NotIn => !values.is_empty(),
            Operator::Exists | Operator::DoesNotExist => values.is_empty(),
            Operator::Greater | Operator::Less => values.len() == 1 && values.iter().all(number),
        };
        (!is_right).then(|| {
            format!("the requirement on {key:?} has {} values, which is invalid for its operator", values.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(selector: Value) -> bool {
        let target = json!({"metadata": {
            "name": "t", "namespace": "n", "labels": {"zone": "a", "size": "5"}, "annotations": {"environment": "fenced"},
        }});
        serde_json::from_value::<TargetSelector>(selector).unwrap().selects(&target)
    }

    #[test]
    fn matches_targets_that_meet_all_parts() {
        let zone = |operator: &str, values: &[&str]| json!({"key": "zone", "operator": operator, "values": values});
        assert!(selects(json!({})));
        assert!(selects(json!({"targets": [{"name": "t", "namespace": "n"}], "labels": [zone("in", &["a", "b"])]})));
        assert!(!selects(json!({"targets": [{"name": "t", "namespace": "other"}]})));
        assert!(selects(json!({"labels": [zone("notin", &["b"]), zone("exists", &[])]})));
        assert!(!selects(json!({"labels": [zone("!", &[])]})));
        assert!(!selects(
            json!({"labels": [zone("in", &["a"])], "annotations": [{"key": "no", "operator": "exists"}]})
        ));
        let size = |operator: &str| json!({"labels": [{"key": "size", "operator": operator, "values": ["4"]}]});
        assert!(selects(size("gt")) && !selects(size("lt")));
    }
}
