//! The commands, one file each.
//!
//! Most commands use the same exit codes: 0 for success, 1 for a negative result, such as a denied object or a
//! difference, and 2 if the input or the arguments cannot be used.

mod api_client;
mod audit;
mod build;
mod certificates;
mod certs;
mod check;
mod check_config;
mod checkout;
mod configuration;
mod conformance;
mod diff;
mod explain;
mod families;
mod init;
mod inputs;
mod last_uses;
mod lazy;
mod logging;
mod manifests;
mod output;
mod page;
mod parallel;
mod plan;
mod reconcile;
mod registries;
mod replay;
mod report;
mod review;
mod rules;
mod serve;
mod trees;
mod unregister;
mod verify;
mod version;
mod walk;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use lazy::Lazy;

/// Exit code for success.
const OK: u8 = 0;
/// Exit code for a negative result, such as a denied object or a difference.
const DENIED: u8 = 1;
/// Exit code if the input or the arguments cannot be used.
const UNUSABLE: u8 = 2;

/// Admission control for composed Kubernetes configuration.
#[derive(Debug, Parser)]
#[command(name = "portcullis", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the admission webhooks over HTTPS
    Serve(Lazy<serve::Args>),
    /// Run the controllers that act after admission
    Reconcile(Lazy<reconcile::Args>),
    /// Check Kubernetes manifests in files before you apply them
    Check(Lazy<check::Args>),
    /// Write a configuration file, a pre-commit hook and a CI job for a repository
    Init(Lazy<init::Args>),
    /// Check a configuration file before a server reads it
    CheckConfig(Lazy<check_config::Args>),
    /// Print the output of `kustomize build`
    Build(Lazy<build::Args>),
    /// Show how a change of files affects the objects of kustomize roots
    Diff(Lazy<diff::Args>),
    /// Show which objects Flux will delete, create or move for a Kustomization of a cluster
    Plan(Lazy<plan::Args>),
    /// Run the admission rules on stored objects
    Audit(Lazy<audit::Args>),
    /// Answer an AdmissionReview from standard input
    Review(Lazy<review::Args>),
    /// Replay recorded requests, and show how the decisions differ
    Replay(Lazy<replay::Args>),
    /// Show how a decision was computed
    #[command(subcommand)]
    Explain(explain::Topic),
    /// Test whether a deployer of Landscaper conforms to the deployer contract
    #[command(subcommand)]
    Conformance(conformance::Kit),
    /// List the rules
    Rules(Lazy<rules::Args>),
    /// Write the webhook configurations, permissions and CRDs for the rules
    Manifests(Lazy<manifests::Args>),
    /// Delete the webhook configurations of portcullis, so that the API server stops calling it
    Unregister(Lazy<unregister::Args>),
    /// Check with dry runs that the API server calls portcullis
    Verify(Lazy<verify::Args>),
    /// Create a development CA and a serving certificate
    Certs(Lazy<certs::Args>),
    /// Print the supported version of kustomize, like `kustomize version`
    Version(Lazy<version::Args>),
    /// Write a completion script for a shell
    Completions {
        /// The shell for which the script is written
        shell: clap_complete::Shell,
    },
}

/// The reason why a command could not run.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

impl Unusable {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Creates an error about the subject `what`, such as the path of a file. `why` is the reason. The message looks
    /// like `config.yaml: not found`.
    fn because(what: impl std::fmt::Display, why: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }
}

/// Parses the arguments of the process, and runs the command that they name.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(unusable) => {
            say(&format!("error: {unusable}\n"));
            ExitCode::from(UNUSABLE)
        }
    }
}

fn run(command: Command) -> Result<u8, Unusable> {
    match command {
        Command::Serve(Lazy(args)) => serve::run(args),
        Command::Reconcile(Lazy(args)) => reconcile::run(&args),
        Command::Check(Lazy(args)) => check::run(&args),
        Command::Init(Lazy(args)) => init::run(&args),
        Command::CheckConfig(Lazy(args)) => check_config::run(&args),
        Command::Audit(Lazy(args)) => audit::run(&args),
        Command::Build(Lazy(args)) => build::run(&args),
        Command::Diff(Lazy(args)) => diff::run(&args),
        Command::Plan(Lazy(args)) => plan::run(&args),
        Command::Version(Lazy(args)) => version::run(&args),
        Command::Review(Lazy(args)) => review::run(&args),
        Command::Replay(Lazy(args)) => replay::run(&args),
        Command::Explain(topic) => explain::run(&topic),
        Command::Conformance(kit) => conformance::run(&kit),
        Command::Rules(Lazy(args)) => rules::run(&args),
        Command::Manifests(Lazy(args)) => manifests::run(&args),
        Command::Unregister(Lazy(args)) => unregister::run(&args),
        Command::Verify(Lazy(args)) => verify::run(&args),
        Command::Certs(Lazy(args)) => certs::run(&args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "portcullis", &mut std::io::stdout());
            Ok(OK)
        }
    }
}

/// Writes to standard output. Ignores errors, such as a closed pipe.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Passes a buffered writer for standard output to `write`. Ignores errors, such as a closed pipe.
fn print_with(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let _ = write(&mut out).and_then(|()| out.flush());
}

/// Writes to standard error.
fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Formats JSON with indentation and a trailing newline.
fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}
