//! The command `portcullis conformance`: tests on a cluster whether a deployer fulfills its contract with Landscaper. A
//! deployer is a controller that processes Landscaper's DeployItems.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::lazy::Lazy;
use super::output::Output;
use super::{DENIED, OK, Unusable, inputs, pretty, print};
use crate::conformance::{self, Options, Report};
use crate::cryptography;
use crate::go::duration;
use crate::yaml;

/// The kind of program to test, such as a deployer.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Kit {
    /// Test whether a deployer fulfils the contract with Landscaper
    Deployer(Lazy<Args>),
}

/// Test a deployer on a cluster. The test itself acts as Landscaper.
///
/// The webhooks of portcullis must not deny writes in the namespace, because the test cannot observe denied writes.
/// Exit codes: 0 the deployer fulfils the contract, 1 it violates the contract, 2 it could not be tested.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The type of the DeployItems that the deployer processes
    #[arg(long = "type", value_name = "TYPE")]
    type_name: String,
    /// The namespace of the test
    #[arg(long, short, default_value = "default")]
    namespace: String,
    /// A YAML file with the spec.config of DeployItems that the deployer can deploy
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A YAML file with the spec.config of DeployItems that the deployer cannot deploy
    #[arg(long, value_name = "FILE")]
    failing_config: Option<PathBuf>,
    /// An additional annotation of the DeployItems; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = annotation)]
    annotation: Vec<(String, String)>,
    /// The name of a Target that the deployer serves
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// The name of a Target that the deployer does not serve
    #[arg(long, value_name = "NAME")]
    foreign_target: Option<String>,
    /// Maximum time in which the deployer must finish a job
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// Time that the test waits to confirm that the deployer does nothing
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = duration)]
    quiet: Duration,
    /// The output format of the report
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
    /// The kubeconfig of the cluster; default: kubectl's current context
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

pub(super) fn run(kit: &Kit) -> Result<u8, Unusable> {
    let Kit::Deployer(Lazy(args)) = kit;
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

/// Reads the `spec.config` of a DeployItem from a YAML file. Fails if the file cannot be read or parsed, if it does not
/// contain exactly one YAML document, or if this document is not a mapping.
fn configuration(path: &Path) -> Result<Value, Unusable> {
    let failed = |error: &dyn std::fmt::Display| Unusable::because(path.display(), error);
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    let mut documents = yaml::read(&text, &yaml::Limits::default()).map_err(|error| failed(&error))?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) if document.value.is_object() => Ok(document.value),
        _ => Err(failed(&"the file must contain exactly one YAML document, with a mapping")),
    }
}

fn annotation(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "expected KEY=VALUE".to_owned())
}

/// Parses a positive duration in Go's format.
fn duration(text: &str) -> Result<Duration, String> {
    let duration = duration::parse_unsigned(text).filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| "not a positive duration such as 30s or 5m".to_owned())
}
