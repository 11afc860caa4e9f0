//! The metrics of the self-managed CA.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::steps::Step;

const STEPS: [&str; 7] = ["prepared", "announced", "withdrawn", "switched", "retired", "restored", "trusted"];

/// The metrics of the self-managed CA.
#[derive(Debug, Clone)]
pub struct Metrics {
    steps: [Counter; 7],
    leaves: Counter,
    bundles: Counter,
    errors: Counter,
    expiry: Gauge,
}

impl Metrics {
    /// Creates the metrics and registers them in `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let family: Family<[(&'static str, &'static str); 1], Counter> = Family::default();
        registry.register("ca_steps", "Steps of CA rotations that this replica took", family.clone());
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let leaves = counter("leaves_signed", "Serving certificates that this replica signed for itself");
        let bundles = counter("ca_bundles_written", "caBundles that this replica corrected");
        let errors = counter("ca_errors", "Failed iterations of the CA control loop; retried within 30 seconds");
        let expiry = Gauge::default();
        let help = "Expiry of the signing CA, in seconds since 1970; 0 if there is none";
        registry.register("ca_expiry_timestamp_seconds", help, expiry.clone());
        let steps = STEPS.map(|step| family.get_or_create_owned(&[("step", step)]));
        Self { steps, leaves, bundles, errors, expiry }
    }

    pub(super) fn took(&self, step: &Step) {
        let at = match step {
            Step::Prepare => 0,
            Step::Announce => 1,
            Step::Withdraw => 2,
            Step::Switch => 3,
            Step::Retire => 4,
            Step::Restore(_) => 5,
            Step::Trust(_) => 6,
            Step::AnnounceProvided | Step::Keep(_) | Step::Publish(_) | Step::Redate | Step::Rest(_) | Step::Use(_) => {
                return;
            }
        };
        self.steps[at].inc();
    }

    pub(super) fn signed(&self) {
        self.leaves.inc();
    }

    pub(super) fn published(&self, bundles: usize) {
        self.bundles.inc_by(bundles as u64);
    }

    pub(super) fn failed(&self) {
        self.errors.inc();
    }

    pub(super) fn ca_expires(&self, at: i64) {
        self.expiry.set(at);
    }
}
