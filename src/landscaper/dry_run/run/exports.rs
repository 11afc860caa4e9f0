//! Computes the exported values of a DeployItem in a dry run. If several exports fail, reports them together in one
//! error.

use serde_json::{Value, json};

use crate::admission::FieldPath;
use crate::landscaper::dry_run::export::{Deployer, Export, Failure};
use crate::landscaper::dry_run::item::items;
use crate::landscaper::export_path::{self, Path};

/// The maximum size of the exported values, in bytes. Kubernetes allows 1 MiB of data in a Secret. When the Secret is
/// stored, base64 makes the data a third larger, and etcd accepts objects of up to 1.5 MiB.
const MAX_BYTES: usize = 1024 * 1024;
/// The maximum number of errors that a message lists, to keep the message short. Further errors are only counted.
const MAX_REPORTED: usize = 10;

/// The DryRunConfiguration of a DeployItem, or the reason why there is none. An annotation of the DeployItem contains
/// the name of the DryRunConfiguration.
#[derive(Debug, Clone, Copy)]
pub enum Configuration<'v> {
    /// The DeployItem does not name a DryRunConfiguration.
    NotNamed,
    /// The DryRunConfiguration with this name does not exist.
    Missing(&'v str),
    /// The DryRunConfiguration that the DeployItem names.
    Found(&'v Value),
}

/// The reason why the dry run of a DeployItem fails. Users read the message in `status.lastError` of the DeployItem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The DeployItem exports values, but does not name a DryRunConfiguration.
    #[error(
        "this DeployItem exports values, but has no annotation landscaper.gardener.cloud/dry-run-configuration: create a \
         DryRunConfiguration, and name it in this annotation of the root Installation"
    )]
    NotNamed,
    /// The named DryRunConfiguration does not exist.
    #[error("DryRunConfiguration {0:?} does not exist in this namespace: create it")]
    Missing(String),
    /// The dry-run deployer does not process DeployItems of this type.
    #[error(
        "the dry-run deployer does not process DeployItems of type {0:?}: leave them out of dry runs, or name the type in \
         --dry-run-type and in dryRun.types of the configuration"
    )]
    Type(String),
    /// Some exports have no value. Contains a message that lists these exports with the reasons.
    #[error("{0}")]
    Exports(String),
    /// The exported values are too large for a Secret. Contains their size in bytes.
    #[error("the exported values have {0} bytes, and the limit is {MAX_BYTES}")]
    TooLarge(usize),
    /// A Secret with this name exists, but the DeployItem does not own it.
    #[error("Secret {0:?} already exists and does not belong to this DeployItem, so it is not overwritten: delete it")]
    SecretOfOthers(String),
}

impl RunError {
    /// Returns the text for `status.lastError.reason` of the DeployItem, such as `ExportTooLarge`.
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

/// Returns the exported values of a DeployItem, merged into one JSON object; `None` if it exports nothing. Fails if an
/// export has no value, if a required DryRunConfiguration is missing, or if the values are too large.
pub(super) fn values(item: &Value, configuration: Configuration<'_>) -> Result<Option<Value>, RunError> {
    let exports: Vec<Export> = items(item).unwrap_or_default().into_iter().flat_map(|item| item.exports).collect();
    let reads = exports.iter().any(|export| export.from_resource.is_some());
    let nothing = Value::Null;
    let configuration = match configuration {
        Configuration::Found(configuration) => configuration,
        _ if !reads => &nothing,
        Configuration::NotNamed => return Err(RunError::NotNamed),
        Configuration::Missing(name) => return Err(RunError::Missing(name.to_owned())),
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
        return Err(RunError::Exports(joined(&wrong)));
    }
    let bytes = result.as_ref().map_or(0, |result| result.to_string().len());
    if bytes > MAX_BYTES { Err(RunError::TooLarge(bytes)) } else { Ok(result) }
}

/// Evaluates an export of the DeployItem `item`. Returns a JSON object that contains the exported value at the path in
/// `export.key`; `None` if the manifest deployer ignores the export. `configuration` is the DryRunConfiguration, from
/// which the value is read. Fails with a message for users if the export has no value.
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

/// Evaluates an export of the helm deployer without `fromResource`. Such an export reads the values of the chart.
///
/// Only the values in the DeployItem are known here. The defaults of the chart are not known.
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
        let text =
            format!("{error}; the defaults of the chart are not known in a dry run: set the value in config.values");
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
            at(&export.field.key("jsonPath"), &format!("the value in {identity} does not name an object: {problem}"))
        }
        Failure::Key(error) => at(&export.field.key("key"), &error.to_string()),
    }
}

fn at(field: &FieldPath, text: &str) -> String {
    format!("{}: {text}", FieldPath::of(["spec", "config"]).join(field))
}

fn joined(wrong: &[String]) -> String {
    let mut text = wrong.iter().take(MAX_REPORTED).map(String::as_str).collect::<Vec<_>>().join("\n");
    if wrong.len() > MAX_REPORTED {
        text.push_str(&format!("\nand {} more", wrong.len() - MAX_REPORTED));
    }
    text
}
