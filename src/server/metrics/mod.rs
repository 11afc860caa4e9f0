//! The server's metrics. All combinations of label values are registered at startup, so that a request only updates
//! existing metrics.

mod decisions;
mod labels;
mod registering;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use decisions::Decisions;
pub use labels::{BadRequest, RefusedClient, Reload, Shed};
use registering::Registering;

pub use crate::process::registry;

/// The Prometheus metrics of the server, such as counters of decisions, invalid requests and rejections.
#[derive(Debug)]
pub struct Metrics {
    pub(super) decisions: Decisions,
    bad_requests: [Counter; 10],
    shed: [Counter; 4],
    reloads: [Counter; 2],
    client_ca_reloads: [Counter; 2],
    refused_clients: [Counter; 3],
    panics: Counter,
    body_bytes: Counter,
    failed_handshakes: Counter,
    in_flight: Gauge,
    waiting: Gauge,
    buffered_bytes: Gauge,
    connections: Gauge,
    certificate_expiry: Gauge,
}

/// A guard for one item that a gauge counts, such as an open connection. Subtracts one from the gauge when it is
/// dropped.
#[derive(Debug)]
pub(super) struct Counted<'m>(&'m Gauge);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Registers the server's metrics. `rules` are the ids of all rules.
    pub fn register(registry: &mut Registry, rules: impl IntoIterator<Item = &'static str>) -> Self {
        let mut one = Registering(registry);
        let rules: Vec<_> = rules.into_iter().collect();
        Self {
            decisions: Decisions::register(&mut one, &rules),
            bad_requests: one.counters("bad_requests", "Requests without a decision", "class", BadRequest::WORDS),
            shed: one.counters("shed", "Requests rejected with 429", "reason", Shed::WORDS),
            reloads: one.counters("certificate_reloads", "Reloads of the serving certificate", "result", Reload::WORDS),
            client_ca_reloads: one.counters("client_ca_reloads", "Reloads of the clients' CA", "result", Reload::WORDS),
            refused_clients: one.counters(
                "refused_clients",
                "Handshakes rejected because of the client's certificate",
                "reason",
                RefusedClient::WORDS,
            ),
            panics: one.counter("panics", "Decisions that panicked"),
            body_bytes: one.counter("body_bytes", "Bytes of request bodies read"),
            failed_handshakes: one.counter("failed_handshakes", "TLS handshakes that failed or took too long"),
            in_flight: one.gauge("requests_in_flight", "Requests in flight"),
            waiting: one.gauge("requests_waiting", "Requests in the queue for decisions"),
            buffered_bytes: one.gauge("buffered_bytes", "Bytes of request bodies in memory"),
            connections: one.gauge("connections", "Open connections"),
            certificate_expiry: one.gauge(
                "certificate_expiry_timestamp_seconds",
                "Expiry of the serving certificate, in seconds since 1970",
            ),
        }
    }

    pub(super) fn bad_request(&self, class: BadRequest) {
        self.bad_requests[class as usize].inc();
    }

    pub(super) fn shed(&self, reason: Shed) {
        self.shed[reason as usize].inc();
    }

    /// Counts an attempt to load a changed serving certificate from its files. `result` is its result: loaded or
    /// failed.
    pub fn reloaded(&self, result: Reload) {
        self.reloads[result as usize].inc();
    }

    pub(super) fn client_ca_reloaded(&self, result: Reload) {
        self.client_ca_reloads[result as usize].inc();
    }

    pub(super) fn refused_client(&self, reason: RefusedClient) {
        self.refused_clients[reason as usize].inc();
    }

    pub(super) fn panicked(&self) {
        self.panics.inc();
    }

    pub(super) fn read(&self, bytes: usize) {
        self.body_bytes.inc_by(bytes as u64);
    }

    pub(super) fn failed_handshake(&self) {
        self.failed_handshakes.inc();
    }

    pub(super) fn in_flight(&self) -> Counted<'_> {
        self.in_flight.inc();
        Counted(&self.in_flight)
    }

    pub(super) fn connection(&self) -> Counted<'_> {
        self.connections.inc();
        Counted(&self.connections)
    }

    pub(super) fn set_load(&self, waiting: usize, bytes: usize) {
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.buffered_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(super) fn certificate_expires(&self, at: i64) {
        self.certificate_expiry.set(at);
    }
}
