//! DeployItems, and the templates of them in Executions: what has exports.

use serde_json::Value;

use super::export::{self, Export};
use crate::admission::FieldPath;
use crate::landscaper::execution::{self, Unreadable};
use crate::landscaper::kinds::EXECUTIONS;

/// A DeployItem, or a template of one.
#[derive(Debug, Clone)]
pub struct Item {
    /// The template's name; `None` for a DeployItem.
    pub template: Option<String>,
    /// The name of its Target, empty without.
    pub target: String,
    /// Where its configuration stands.
    pub config: Place,
    /// Its exports.
    pub exports: Vec<Export>,
}

/// Where a configuration stands.
#[derive(Debug, Clone)]
pub enum Place {
    /// At a field.
    Field(FieldPath),
    /// In the compressed templates, where nothing has a place.
    Compressed(FieldPath),
}

/// The DeployItem that an object is, or the templates that it has.
///
/// # Errors
/// When Landscaper cannot read the templates either, or they are too large.
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
    /// Where a field of its configuration stands in the object.
    pub fn field(&self, of: &FieldPath) -> FieldPath {
        match &self.config {
            Place::Compressed(field) => field.clone(),
            Place::Field(config) => config.join(of),
        }
    }

    /// A message about a field of its configuration, with what the place does not say.
    pub fn message(&self, of: &FieldPath, text: &str) -> String {
        match (&self.config, &self.template) {
            (Place::Compressed(_), Some(template)) => format!("template {template:?}, config.{of}: {text}"),
            (_, Some(template)) => format!("template {template:?}: {text}"),
            _ => text.to_owned(),
        }
    }
}
