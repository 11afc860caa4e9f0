//! What an item exports in a dry run, or everything that is wrong with it.

use serde_json::{Value, json};

use crate::admission::FieldPath;
use crate::landscaper::dry_run::export::{Deployer, Export, Failure};
use crate::landscaper::dry_run::item::items;
use crate::landscaper::export_path::{self, Path};

/// The API server takes objects of 1.5 MiB, and base64 makes four bytes of three.
const MAX_BYTES: usize = 1024 * 1024;
/// Further ones are counted: a message is read by people.
const MAX_TOLD: usize = 10;

/// The DryRunConfiguration of an item.
#[derive(Debug, Clone, Copy)]
pub enum Configuration<'v> {
    /// It names none.
    NotNamed,
    /// The one that it names does not exist.
    Missing(&'v str),
    /// There it is.
    Found(&'v Value),
}

/// Why a dry run of an item fails. Its text is what people read in `status.lastError`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It exports, and names no DryRunConfiguration.
    #[error(
        "it exports values, and the annotation landscaper.gardener.cloud/dry-run-configuration names nothing that they \
         could be read from: create a DryRunConfiguration, and name it at the root Installation"
    )]
    NotNamed,
    /// The DryRunConfiguration is not there.
    #[error("DryRunConfiguration {0:?} does not exist in this namespace: create it")]
    Missing(String),
    /// It is of a type that the dry-run deployer does not process.
    #[error(
        "the dry-run deployer does not process DeployItems of type {0:?}: leave them out of dry runs, or name the type in \
         --dry-run-type and in dryRun.types of the configuration"
    )]
    Type(String),
    /// Exports without a value.
    #[error("{0}")]
    Exports(String),
    /// The result is too large for a Secret.
    #[error("the exported values take {0} bytes, and a Secret holds {MAX_BYTES}")]
    TooLarge(usize),
    /// There is a Secret of that name which is not the item's.
    #[error("Secret {0:?} is in the way: it does not belong to this DeployItem, so it is not overwritten; remove it")]
    SecretOfOthers(String),
}

impl Trouble {
    /// The reason, in a word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Type(_) => "TypeNotProcessed",
            Self::NotNamed | Self::Missing(_) => "DryRunConfigurationMissing",
            Self::Exports(_) => "ExportWithoutValue",
            Self::TooLarge(_) => "ExportTooLarge",
            Self::SecretOfOthers(_) => "ExportSecretOfOthers",
        }
    }
}

/// The values that an item exports, as one; `None` where it exports none.
pub(super) fn values(item: &Value, configuration: Configuration<'_>) -> Result<Option<Value>, Trouble> {
    let exports: Vec<Export> = items(item).unwrap_or_default().into_iter().flat_map(|item| item.exports).collect();
    let reads = exports.iter().any(|export| export.from_resource.is_some());
    let nothing = Value::Null;
    let configuration = match configuration {
        Configuration::Found(configuration) => configuration,
        _ if !reads => &nothing,
        Configuration::NotNamed => return Err(Trouble::NotNamed),
        Configuration::Missing(name) => return Err(Trouble::Missing(name.to_owned())),
    };
    let mut result = None;
    let mut wrong = Vec::new();
    for export in &exports {
        match value(export, item, configuration) {
            Ok(None) => {}
            Ok(Some(built)) => export_path::merge(result.get_or_insert(Value::Null), built),
            Err(text) => wrong.push(text),
        }
    }
    if !wrong.is_empty() {
        return Err(Trouble::Exports(told(&wrong)));
    }
    let bytes = result.as_ref().map_or(0, |result| result.to_string().len());
    if bytes > MAX_BYTES { Err(Trouble::TooLarge(bytes)) } else { Ok(result) }
}

/// What an export adds to the result; `None` for one that the manifest deployer ignores.
fn value(export: &Export, item: &Value, configuration: &Value) -> Result<Option<Value>, String> {
    let found = match export.evaluate(configuration) {
        Ok(Some(value)) => value,
        Ok(None) if export.deployer == Deployer::Helm => chart_value(export, item)?,
        Ok(None) => return Ok(None),
        Err(failure) => return Err(problem(export, &failure)),
    };
    let built = export_path::construct(&export.key, &found);
    built.map(Some).map_err(|error| at(&export.field.key("key"), &error.to_string()))
}

/// The helm deployer reads an export without an object from what the chart is rendered with. Of that, what the item says
/// itself is known here; the chart's defaults are not.
///
/// Source: `constructExportsFromValues` in Landscaper's `pkg/deployer/helm`.
fn chart_value(export: &Export, item: &Value) -> Result<Value, String> {
    let part = |pointer| item.pointer(pointer).cloned().unwrap_or_else(|| json!({}));
    let release = json!({
        "Name": item.pointer("/spec/config/name"), "Namespace": item.pointer("/spec/config/namespace"), "Service": "Helm",
    });
    let rendered_with = json!({"Values": part("/spec/config/values"), "Release": release});
    let found = Path::parse(&export.json_path).and_then(|path| path.find(&rendered_with));
    found.map_err(|error| {
        let text = format!("{error}; a chart's defaults are not known in a dry run: say the value in config.values");
        at(&export.field.key("jsonPath"), &text)
    })
}

fn problem(export: &Export, failure: &Failure) -> String {
    match failure {
        Failure::Missing(identity) => {
            let text = format!(
                "there is no fragment of {identity} in the DryRunConfiguration: add {}",
                identity.to_fragment()
            );
            at(&export.field.key("fromResource"), &text)
        }
        Failure::Path { identity, second, error } => {
            let field = if *second { "fromObjectRef" } else { "jsonPath" };
            at(&export.field.key(field), &format!("{error}, on the fragment of {identity}"))
        }
        Failure::Reference { identity, problem } => {
            at(&export.field.key("jsonPath"), &format!("the value in {identity} names no object: {problem}"))
        }
        Failure::Key(error) => at(&export.field.key("key"), &error.to_string()),
    }
}

fn at(field: &FieldPath, text: &str) -> String {
    format!("{}: {text}", FieldPath::of(["spec", "config"]).join(field))
}

fn told(wrong: &[String]) -> String {
    let mut text = wrong.iter().take(MAX_TOLD).map(String::as_str).collect::<Vec<_>>().join("\n");
    if wrong.len() > MAX_TOLD {
        text.push_str(&format!("\nand {} more", wrong.len() - MAX_TOLD));
    }
    text
}
