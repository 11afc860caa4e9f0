//! `portcullis conformance`: trials of programs that work together with Landscaper.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::deferred::Deferred;
use super::{DENIED, OK, Unusable, inputs, pretty, print};
use crate::conformance::{self, Options, Report};
use crate::cryptography;
use crate::landscaper::duration;
use crate::yaml;

/// What is tried.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Kit {
    /// A deployer: whether it keeps the contract with Landscaper
    Deployer(Deferred<Args>),
}

/// How the report is written.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Try a deployer that runs on a cluster, in Landscaper's place.
///
/// Exit code 1: it breaks a promise. Exit code 2: it could not be tried. The webhooks must let broken writes pass in the
/// namespace, or be absent: what they refuse cannot be seen.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The type of DeployItems that it serves
    #[arg(long = "type", value_name = "TYPE")]
    type_name: String,
    /// The namespace to try it in
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// spec.config of DeployItems that it can deploy, as YAML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// spec.config of DeployItems that it fails, as YAML
    #[arg(long, value_name = "FILE")]
    failing_config: Option<PathBuf>,
    /// A further annotation of the DeployItems; may be said several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = annotation)]
    annotation: Vec<(String, String)>,
    /// A Target that it serves
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// A Target that it does not serve
    #[arg(long, value_name = "NAME")]
    foreign_target: Option<String>,
    /// How long a job may take
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// How long nothing must happen where nothing may
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = duration)]
    quiet: Duration,
    /// How the report is written
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
    /// The cluster; without, the one that kubectl would use
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

pub(super) fn run(kit: &Kit) -> Result<u8, Unusable> {
    let Kit::Deployer(Deferred(args)) = kit;
    let report = inputs::runtime()?.block_on(args.report())?;
    print(&match args.output {
        Output::Text => report.to_text(),
        Output::Json => pretty(&report.to_json()),
    });
    Ok(if report.is_passed() { OK } else { DENIED })
}

impl Args {
    async fn report(&self) -> Result<Report, Unusable> {
        cryptography::install();
        let options = Options {
            type_name: self.type_name.clone(),
            namespace: self.namespace.clone(),
            config: self.config.as_deref().map(configuration).transpose()?,
            failing_config: self.failing_config.as_deref().map(configuration).transpose()?,
            annotations: self.annotation.clone(),
            target: self.target.clone(),
            foreign_target: self.foreign_target.clone(),
            timeout: self.timeout,
            quiet: self.quiet,
        };
        let client = inputs::client(self.kubeconfig.as_deref()).await?;
        conformance::run(client, options).await.map_err(|error| Unusable::new(error.to_string()))
    }
}

/// One YAML document.
fn configuration(path: &Path) -> Result<Value, Unusable> {
    let failed = |error: &dyn std::fmt::Display| Unusable::because(path.display(), error);
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    let mut documents = yaml::read(&text, &yaml::Limits::default()).map_err(|error| failed(&error))?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) if document.value.is_object() => Ok(document.value),
        _ => Err(failed(&"it is not one YAML document with an object")),
    }
}

fn annotation(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "it is not KEY=VALUE".to_owned())
}

/// A duration of more than nothing, as Go writes it.
fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = duration::nanoseconds(text).and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
    match nanoseconds.filter(|nanoseconds| *nanoseconds > 0) {
        Some(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        None => Err("it is no duration such as 30s or 5m".to_owned()),
    }
}
