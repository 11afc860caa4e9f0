//! `portcullis version`: prints the version of this program, or of kustomize.

use serde_json::json;

use super::{OK, Unusable, pretty, print};
use crate::kustomize::options;

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// Only the supported version of kustomize, as `kustomize version` prints it, for tools that call kustomize
    Text,
    /// JSON with the version, commit, features and target of portcullis, and the supported version of kustomize
    Json,
}

/// Print the supported version of kustomize, like `kustomize version`. With `-o json`, also print the version of
/// portcullis.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The output format
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
