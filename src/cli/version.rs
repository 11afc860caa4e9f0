//! `portcullis version`: prints the version of this program, or of kustomize.

use serde_json::json;

use super::{OK, Unusable, pretty, print};
use crate::kustomize::options;

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// The version of kustomize, as `kustomize version` prints it: tools that call kustomize read it
    Text,
    /// The version of this program with its commit, features and target, for programs
    Json,
}

/// Print the version of kustomize that is followed, as `kustomize version` does; or what this program was built from.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The form of the output
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
}

/// The optional cargo features that this program was built with.
const FEATURES: &[&str] = if cfg!(feature = "otlp") { &["otlp"] } else { &[] };

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let kustomize = format!("v{}", options::Version::DEFAULT);
    match args.output {
        Output::Text => print(&format!("{kustomize}\n")),
        Output::Json => print(&pretty(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "commit": option_env!("PORTCULLIS_COMMIT"),
            "target": env!("PORTCULLIS_TARGET"),
            "features": FEATURES,
            "kustomize": kustomize,
        }))),
    }
    Ok(OK)
}
