//! Which Targets a deployer serves.
//!
//! Source: `MatchOne` in Landscaper's `pkg/deployer/lib/targetselector/selector.go`, and `labels.Requirement` in
//! apimachinery: selectors are alternatives, the parts of one hold together.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A selector of Targets, as in the configuration of Landscaper's deployers. Without any part it selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TargetSelector {
    /// The Target is one of these; any where there is none.
    pub targets: Vec<TargetName>,
    /// All of these hold for its annotations.
    pub annotations: Vec<Requirement>,
    /// All of these hold for its labels.
    pub labels: Vec<Requirement>,
}

/// Names a Target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetName {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

/// Something that is asked of a label or an annotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Its key.
    pub key: String,
    /// How its value relates to [`Self::values`].
    pub operator: Operator,
    /// The values.
    #[serde(default)]
    pub values: Vec<String>,
}

/// How a value relates to others; spelled as in apimachinery's `selection.Operator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// It is one of them.
    #[serde(rename = "in", alias = "=", alias = "==")]
    In,
    /// It is none of them, or there is none.
    #[serde(rename = "notin", alias = "!=")]
    NotIn,
    /// There is one.
    #[serde(rename = "exists")]
    Exists,
    /// There is none.
    #[serde(rename = "!")]
    DoesNotExist,
    /// It is a greater number.
    #[serde(rename = "gt")]
    Greater,
    /// It is a smaller number.
    #[serde(rename = "lt")]
    Less,
}

impl TargetSelector {
    /// Whether it selects a Target.
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

    /// What is wrong with it, as apimachinery would say when it reads it.
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
        (!is_right)
            .then(|| format!("the requirement on {key:?} has {} values, which its operator cannot use", values.len()))
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
    fn parts_hold_together() {
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
