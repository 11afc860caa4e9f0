//! EnvironmentConfigs that pipeline steps require by name or labels.

use serde_json::Value;

use crate::crossplane::api::GROUP;

/// EnvironmentConfigs that a pipeline step requests in the field `requirements.requiredResources` of Crossplane 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Required {
    /// The EnvironmentConfig with this name.
    Named(String),
    /// The EnvironmentConfigs with these labels.
    Labelled(Vec<(String, String)>),
}

/// Returns the EnvironmentConfigs that the pipeline steps of a Composition require, by name or by labels.
pub fn required(composition: &Value) -> Vec<Required> {
    let steps = composition.pointer("/spec/pipeline").and_then(Value::as_array).into_iter().flatten();
    let lists = steps.filter_map(|step| step.get("requirements")?.get("requiredResources")?.as_array());
    lists.flatten().filter_map(one_required).collect()
}

fn one_required(resource: &Value) -> Option<Required> {
    let text = |key: &str| resource.get(key).and_then(Value::as_str);
    let is_of_group = text("apiVersion")?.split_once('/').is_some_and(|(group, _)| group == GROUP);
    if !is_of_group || text("kind") != Some("EnvironmentConfig") {
        return None;
    }
    if let Some(name) = text("name").filter(|name| !name.is_empty()) {
        return Some(Required::Named(name.to_owned()));
    }
    let labels = resource.get("matchLabels")?.as_object().filter(|labels| !labels.is_empty())?;
    let label = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    Some(Required::Labelled(labels.iter().map(label).collect::<Option<_>>()?))
}
