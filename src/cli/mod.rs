//! The commands, one file each.
//!
//! Exit codes are the same everywhere: 0 when all is well, 1 when something is denied (or differs), 2 when the input or
//! the arguments cannot be used.

mod audit;
mod build;
mod certificates;
mod certs;
mod check;
mod configuration;
mod conformance;
mod deferred;
mod explain;
mod families;
mod inputs;
mod logging;
mod manifests;
mod parallel;
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
mod walk;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use deferred::Deferred;

/// All is well.
const OK: u8 = 0;
/// Something is denied, or differs.
const DENIED: u8 = 1;
/// The input or the arguments cannot be used.
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
    Serve(Deferred<serve::Args>),
    /// Act after admission: bring what is stored to what it should be
    Reconcile(Deferred<reconcile::Args>),
    /// Judge Kubernetes manifests in files, before anything is applied
    Check(Deferred<check::Args>),
    /// Print what `kustomize build` prints
    Build(Deferred<build::Args>),
    /// Judge what a cluster holds already, by the rules of admission
    Audit(Deferred<audit::Args>),
    /// Answer an AdmissionReview from standard input
    Review(Deferred<review::Args>),
    /// Decide what was recorded again, and show what would be decided otherwise
    Replay(Deferred<replay::Args>),
    /// Show the working behind a decision
    #[command(subcommand)]
    Explain(explain::Topic),
    /// Try out programs that work together with Landscaper
    #[command(subcommand)]
    Conformance(conformance::Kit),
    /// List the rules
    Rules(Deferred<rules::Args>),
    /// Write the webhook configurations, permissions and CRDs that fit the rules
    Manifests(Deferred<manifests::Args>),
    /// Delete our webhook configurations from a cluster, so that nobody is asked any more
    Unregister(Deferred<unregister::Args>),
    /// Ask the API server, in dry runs, whether portcullis answers
    Verify(Deferred<verify::Args>),
    /// Make a development CA and a serving certificate
    Certs(Deferred<certs::Args>),
    /// Print the version of kustomize that is followed, as `kustomize version` does
    Version,
    /// Write a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

impl Unusable {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// What failed, and on what.
    fn because(what: impl std::fmt::Display, why: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {why}"))
    }
}

/// Runs the command that the process was started with.
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
        Command::Serve(Deferred(args)) => serve::run(args),
        Command::Reconcile(Deferred(args)) => reconcile::run(&args),
        Command::Check(Deferred(args)) => check::run(&args),
        Command::Audit(Deferred(args)) => audit::run(&args),
        Command::Build(Deferred(args)) => build::run(&args),
        Command::Version => {
            print(&format!("v{}\n", crate::kustomize::options::Version::DEFAULT));
            Ok(OK)
        }
        Command::Review(Deferred(args)) => review::run(&args),
        Command::Replay(Deferred(args)) => replay::run(&args),
        Command::Explain(topic) => explain::run(&topic),
        Command::Conformance(kit) => conformance::run(&kit),
        Command::Rules(Deferred(args)) => rules::run(&args),
        Command::Manifests(Deferred(args)) => manifests::run(&args),
        Command::Unregister(Deferred(args)) => unregister::run(&args),
        Command::Verify(Deferred(args)) => verify::run(&args),
        Command::Certs(Deferred(args)) => certs::run(&args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "portcullis", &mut std::io::stdout());
            Ok(OK)
        }
    }
}

/// Writes to standard output. A reader that went away, as `head` does, is no failure.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes to standard output bit by bit, as [`print`].
fn print_with(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let _ = write(&mut out).and_then(|()| out.flush());
}

/// Writes to standard error.
fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// JSON for people and programs: indented, with a line break at its end.
fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}
