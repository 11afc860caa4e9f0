//! What every face that runs for long has: the log, the plain port for probes and metrics, and how it is told to end.
//! Knows neither webhooks nor controllers.

pub mod admin;
mod changes;
mod line;
mod outlet;
pub mod readiness;
pub mod signal;
pub mod telemetry;

use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub use admin::{Admin, Report};
pub use changes::Changes;
pub use readiness::{Condition, Readiness};
pub use signal::signalled;
pub use telemetry::{Format, Telemetry};

/// Has `registry` show how many lines of the log were lost.
pub fn show_log(registry: &mut Registry, telemetry: &Telemetry) {
    registry.register("log_lines_dropped", "Log lines that could not be written", telemetry.lost());
}

/// A registry whose names begin with `portcullis_`, with the version in it.
pub fn registry() -> Registry {
    let mut registry = Registry::with_prefix("portcullis");
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "This build", version);
    registry
}
