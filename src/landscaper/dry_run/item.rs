//! DeployItems, and DeployItem templates in Executions: the objects that have exports.

use serde_json::Value;

use super::export::{self, Export};
use crate::admission::FieldPath;
use crate::landscaper::execution::{self, Unreadable};
use crate::landscaper::kinds::EXECUTIONS;

/// A DeployItem or a DeployItem template.
#[derive(Debug, Clone)]
pub struct Item {
    /// The name of the template; `None` for a DeployItem.
    pub template: Option<String>,
    /// The name of the Target; empty if there is none.
    pub target: String,
    /// The place of the configuration in the object.
    pub config: Place,
    /// The exports in the configuration.
    pub exports: Vec<Export>,
}

/// The place of a configuration in an object.
#[derive(Debug, Clone)]
pub enum Place {
    /// The configuration is at this field.
    Field(FieldPath),
    /// The configuration is inside this field with compressed templates. Field paths cannot point into it.
    Compressed(FieldPath),
}

/// Returns the DeployItem itself, or the templates of an Execution.
///
/// # Errors
/// Fails if the templates are too large, or if Landscaper cannot read them either.
pub fn items(object: &Value) -> Result<Vec<Item>, Unreadable> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    if !EXECUTIONS.is_kind_of(object) {
        let config = spec.get("config").unwrap_or(&Value::Null);
        let place = Place::Field(FieldPath::of(["spec", "config"]));
        let target = object.pointer("/spec/target/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        return Ok(vec![Item { template: None, target, config: place, exports: export::exports(config) }]);
    }
    let templates = execution::templates(spec)?;
    let place = |at| match templates.compressed {
        true => Place::Compressed(FieldPath::of(["spec", "deployItemsCompressed"])),
        false => Place::Field(FieldPath::of(["spec", "deployItems"]).index(at).key("config")),
    };
    let item = |(at, template): (usize, &execution::Template)| Item {
        template: Some(template.name.clone()),
        target: template.target.clone(),
        config: place(at),
        exports: export::exports(&template.config),
    };
    Ok(templates.items.iter().enumerate().map(item).collect())
}

impl Item {
    /// Returns the field path in the object for a field of the configuration; the compressed field, if it is inside
    /// that.
    pub fn field(&self, of: &FieldPath) -> FieldPath {
        match &self.config {
            Place::Compressed(field) => field.clone(),
            Place::Field(config) => config.join(of),
        }
    }

    /// Prefixes a message with the parts of the place that the field path does not contain: the name of the template,
    /// and the field inside compressed templates.
    pub fn message(&self, of: &FieldPath, text: &str) -> String {
        match (&self.config, &self.template) {
            (Place::Compressed(_), Some(template)) => format!("template {template:?}, config.{of}: {text}"),
            (_, Some(template)) => format!("template {template:?}: {text}"),
            _ => text.to_owned(),
        }
    }
}
