//! Registers metrics. A metric with a label is registered with all values of the label, so that it is exported with the
//! value 0 before the first event.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

pub(super) type Labels<const N: usize> = [(&'static str, &'static str); N];

/// A wrapper around the registry. It registers metrics and returns their handles.
pub(super) struct Registering<'r>(pub(super) &'r mut Registry);

impl Registering<'_> {
    pub(super) fn counter(&mut self, name: &str, help: &str) -> Counter {
        let counter = Counter::default();
        self.0.register(name, help, counter.clone());
        counter
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str) -> Gauge {
        let gauge = Gauge::default();
        self.0.register(name, help, gauge.clone());
        gauge
    }

    pub(super) fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: [&'static str; N],
    ) -> [Counter; N] {
        let family: Family<Labels<1>, Counter> = Family::default();
        self.0.register(name, help, family.clone());
        values.map(|value| family.get_or_create_owned(&[(label, value)]))
    }
}
