//! Reads the exports of DeployItems, and of the DeployItem templates in Executions.

use serde_json::Value;

use super::export::{self, Export};
use crate::admission::FieldPath;
use crate::landscaper::execution::{self, Unreadable};
use crate::landscaper::kinds::EXECUTIONS;

/// A DeployItem, or a DeployItem template in an Execution.
#[derive(Debug, Clone)]
pub struct Item {
    /// The name of the DeployItem template; `None` for a DeployItem.
    pub template: Option<String>,
    /// The name of the Target; empty if there is none.
    pub target: String,
    /// The field of the DeployItem or Execution that contains `config`, the configuration for the deployer.
    pub config: Place,
    /// The exports in `config`. Each export copies a value from an object on the target cluster into the result of the
    /// DeployItem.
    pub exports: Vec<Export>,
}

/// The location of `config`, the configuration that a deployer reads. A DeployItem has one `config`. An Execution has
/// one in each of its DeployItem templates.
#[derive(Debug, Clone)]
pub enum Place {
    /// The path of the field that contains `config` as its value, such as `spec.deployItems[0].config`.
    Field(FieldPath),
    /// The configuration is in one of the compressed templates in this field. A field path cannot point into compressed
    /// data.
    Compressed(FieldPath),
}

/// Returns one item if `object` is a DeployItem, or one item for each DeployItem template if `object` is an Execution.
///
/// # Errors
/// Fails if Landscaper cannot read the templates of an Execution, or if they exceed the size limit of Portcullis.
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
    /// Converts `of`, the path of a field in the deployer's configuration, to a path in the DeployItem or Execution.
    ///
    /// A path cannot point into compressed data. If the configuration is in a compressed DeployItem template, returns
    /// the path of the field that contains the compressed templates.
    pub fn field(&self, of: &FieldPath) -> FieldPath {
        match &self.config {
            Place::Compressed(field) => field.clone(),
            Place::Field(config) => config.join(of),
        }
    }

    /// Returns `text` as a message for the user. For a DeployItem template, the message begins with the name of the
    /// template.
    ///
    /// `of` is the path of the field that the message is about, in the deployer's configuration. The message contains
    /// `of` only if the template is compressed, because [`Item::field`] then returns only the path of the field that
    /// contains all compressed templates.
    pub fn message(&self, of: &FieldPath, text: &str) -> String {
        match (&self.config, &self.template) {
            (Place::Compressed(_), Some(template)) => format!("template {template:?}, config.{of}: {text}"),
            (_, Some(template)) => format!("template {template:?}: {text}"),
            _ => text.to_owned(),
        }
    }
}
