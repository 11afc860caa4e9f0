//! Common parts of long-running commands: the log, the plain HTTP port for health probes and metrics, and signal
//! handling. Does not depend on webhooks or controllers.

pub mod admin;
mod changes;
mod listen;
mod log_format;
mod log_writer;
pub mod readiness;
pub mod signal;
pub mod telemetry;

use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub use admin::{Admin, Report};
pub use changes::Changes;
pub use listen::listen;
pub use readiness::{Condition, Readiness};
pub use signal::signalled;
pub use telemetry::{Format, Telemetry};

/// Adds the counter of dropped log records to `registry`.
pub fn register_log(registry: &mut Registry, telemetry: &Telemetry) {
    registry.register("log_lines_dropped", "Log records that could not be written", telemetry.dropped());
}

/// Returns a metrics registry with the prefix `portcullis_` and the build information.
pub fn registry() -> Registry {
    let mut registry = Registry::with_prefix("portcullis");
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "This build", version);
    registry
}
