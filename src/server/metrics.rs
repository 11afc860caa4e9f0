//! What is counted. Every label set exists from the start, and a request touches only handles that are there already.

use std::collections::HashMap;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::admission::{Finding, Level, Operation, Outcome, Phase, Verdict};

pub use crate::process::registry;

/// From 50 µs, a request that is parsed and found in order, to the API server's longest deadline.
const LATENCY_BUCKETS: [f64; 15] =
    [50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.5, 1.0, 5.0, 30.0];

const PHASES: [Phase; 2] = [Phase::Mutate, Phase::Validate];
const OPERATIONS: [Operation; 4] = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
const LEVELS: [Level; 3] = [Level::Audit, Level::Warn, Level::Deny];

/// Classes of requests that get no decision because of what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadRequest {
    /// Another path than the webhooks'.
    Path,
    /// Another method than POST.
    Method,
    /// Another content type than JSON.
    ContentType,
    /// A body over the limit.
    TooLarge,
    /// A body that did not arrive in time.
    SlowBody,
    /// A body that broke off.
    BrokenBody,
    /// A body without a uid, answered with 400.
    NoUid,
    /// A body that could not be read but for its uid, answered with a denial.
    Unreadable,
    /// A request whose head did not arrive in time; its connection is closed.
    SlowHead,
    /// A head that is no HTTP/1.1 or too large; hyper answers it and closes.
    MalformedHead,
}

impl BadRequest {
    const WORDS: [&'static str; 10] = [
        "path",
        "method",
        "content_type",
        "too_large",
        "slow_body",
        "broken_body",
        "no_uid",
        "unreadable",
        "slow_head",
        "malformed_head",
    ];
}

/// What there was too much of when a request was sent away with 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shed {
    /// Requests in flight.
    InFlight,
    /// Bytes of bodies.
    BufferedBytes,
    /// Requests that wait for a turn at a processor.
    Waiting,
    /// Large bodies that wait to be decided about.
    Large,
}

impl Shed {
    const WORDS: [&'static str; 4] = ["in_flight", "buffered_bytes", "waiting", "large"];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::InFlight | Self::Waiting => "requests",
            Self::BufferedBytes => "bytes of bodies",
            Self::Large => "large bodies",
        }
    }
}

/// How a look at a changed certificate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// The new one is served.
    Loaded,
    /// The old one stays.
    Failed,
}

impl Reload {
    const WORDS: [&'static str; 2] = ["loaded", "failed"];
}

/// Why a client's handshake was refused, where client certificates are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedClient {
    /// It showed no certificate.
    NoCertificate,
    /// Its certificate is not of the CA, or not good now.
    Authority,
    /// None of its names is allowed.
    Name,
}

impl RefusedClient {
    const WORDS: [&'static str; 3] = ["no_certificate", "authority", "name"];
}

/// The server's metrics.
#[derive(Debug)]
pub struct Metrics {
    decisions: [[[Counter; 2]; 4]; 2],
    findings: HashMap<(&'static str, Level), Counter>,
    families: HashMap<&'static str, [[Counter; 3]; 4]>,
    latency: [Histogram; 2],
    unhandled: [Counter; 2],
    undecided: [Counter; 2],
    bad_requests: [Counter; 10],
    shed: [Counter; 4],
    reloads: [Counter; 2],
    shadowed: [Counter; 4],
    shadow: Gauge,
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

/// One more of something, until it is dropped.
#[derive(Debug)]
pub(super) struct Counted<'m>(&'m Gauge);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Registers the server's metrics; `rules` are the ids of all rules.
    pub fn register(registry: &mut Registry, rules: impl IntoIterator<Item = &'static str>) -> Self {
        let mut one = Registering(registry);
        let rules: Vec<_> = rules.into_iter().collect();
        Self {
            decisions: one.decisions(),
            findings: one.findings(&rules),
            families: one.families(&rules),
            latency: one.latency(),
            unhandled: one.by_phase("unhandled", "Requests that no rule looks at"),
            undecided: one.by_phase("undecided", "Requests refused as there was no decision in time"),
            bad_requests: one.counters("bad_requests", "Requests without a decision", "class", BadRequest::WORDS),
            shed: one.counters("shed", "Requests sent away with 429", "reason", Shed::WORDS),
            reloads: one.counters("certificate_reloads", "Changes of the certificate seen", "result", Reload::WORDS),
            shadowed: one.counters(
                "shadowed",
                "Decisions that were not spoken, as --shadow is set, by what they would have come to",
                "would",
                Outcome::ALL.map(Outcome::as_str),
            ),
            shadow: one.gauge("shadow", "1 where --shadow is set: every request goes on, unchanged"),
            client_ca_reloads: one.counters(
                "client_ca_reloads",
                "Changes of the clients' CA seen",
                "result",
                Reload::WORDS,
            ),
            refused_clients: one.counters(
                "refused_clients",
                "Handshakes refused because of the client's certificate",
                "reason",
                RefusedClient::WORDS,
            ),
            panics: one.counter("panics", "Decisions that panicked"),
            body_bytes: one.counter("body_bytes", "Bytes of request bodies read"),
            failed_handshakes: one.counter("failed_handshakes", "TLS handshakes that failed or took too long"),
            in_flight: one.gauge("requests_in_flight", "Requests being answered"),
            waiting: one.gauge("requests_waiting", "Requests that wait for a turn to be decided"),
            buffered_bytes: one.gauge("buffered_bytes", "Bytes of request bodies that are held"),
            connections: one.gauge("connections", "Open connections"),
            certificate_expiry: one.gauge(
                "certificate_expiry_timestamp_seconds",
                "When the certificate served expires, in seconds since 1970",
            ),
        }
    }

    /// Counts a decision; `allowed` is what is answered.
    pub(super) fn decided(&self, phase: Phase, operation: Operation, verdict: &Verdict, allowed: bool, took: Duration) {
        self.decisions[phase_index(phase)][operation_index(operation)][usize::from(allowed)].inc();
        self.latency[phase_index(phase)].observe(took.as_secs_f64());
        for finding in &verdict.findings {
            if let Some(counter) = self.findings.get(&(finding.rule, finding.level)) {
                counter.inc();
            }
        }
        self.families_decided(operation, &verdict.findings);
    }

    /// Counts a request once for each family that found something, by the highest level of that.
    fn families_decided(&self, operation: Operation, findings: &[Finding]) {
        for (at, finding) in findings.iter().enumerate() {
            let family = family_of(finding.rule);
            if findings[..at].iter().any(|before| family_of(before.rule) == family) {
                continue;
            }
            let highest = findings[at..].iter().filter(|one| family_of(one.rule) == family).map(|one| one.level).max();
            let index = LEVELS.iter().position(|level| Some(*level) == highest);
            if let (Some(counters), Some(index)) = (self.families.get(family), index) {
                counters[operation_index(operation)][index].inc();
            }
        }
    }

    /// Says whether the server only looks on.
    pub(super) fn shadowing(&self, shadow: bool) {
        self.shadow.set(i64::from(shadow));
    }

    pub(super) fn shadowed(&self, would: Outcome) {
        self.shadowed[would as usize].inc();
    }

    pub(super) fn unhandled(&self, phase: Phase) {
        self.unhandled[phase_index(phase)].inc();
    }

    pub(super) fn undecided(&self, phase: Phase) {
        self.undecided[phase_index(phase)].inc();
    }

    pub(super) fn bad_request(&self, class: BadRequest) {
        self.bad_requests[class as usize].inc();
    }

    pub(super) fn shed(&self, reason: Shed) {
        self.shed[reason as usize].inc();
    }

    /// Counts a look at a changed certificate. For whoever replaces certificates without a folder.
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

    pub(super) fn loaded_with(&self, waiting: usize, bytes: usize) {
        self.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.buffered_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(super) fn certificate_expires(&self, at: i64) {
        self.certificate_expiry.set(at);
    }
}

/// The letters of a rule's id.
fn family_of(rule: &'static str) -> &'static str {
    rule.trim_end_matches(|c: char| c.is_ascii_digit())
}

fn phase_index(phase: Phase) -> usize {
    match phase {
        Phase::Mutate => 0,
        Phase::Validate => 1,
    }
}

fn operation_index(operation: Operation) -> usize {
    match operation {
        Operation::Create => 0,
        Operation::Update => 1,
        Operation::Delete => 2,
        Operation::Connect => 3,
    }
}

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Registers metrics with all their label sets.
struct Registering<'r>(&'r mut Registry);

impl Registering<'_> {
    fn counter(&mut self, name: &str, help: &str) -> Counter {
        let counter = Counter::default();
        self.0.register(name, help, counter.clone());
        counter
    }

    fn gauge(&mut self, name: &str, help: &str) -> Gauge {
        let gauge = Gauge::default();
        self.0.register(name, help, gauge.clone());
        gauge
    }

    fn counters<const N: usize>(
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

    fn by_phase(&mut self, name: &str, help: &str) -> [Counter; 2] {
        self.counters(name, help, "phase", PHASES.map(Phase::as_str))
    }

    fn decisions(&mut self) -> [[[Counter; 2]; 4]; 2] {
        let family: Family<Labels<3>, Counter> = Family::default();
        self.0.register("decisions", "Decisions", family.clone());
        PHASES.map(|phase| {
            OPERATIONS.map(|operation| {
                ["false", "true"].map(|allowed| {
                    let labels = [("phase", phase.as_str()), ("operation", operation.as_str()), ("allowed", allowed)];
                    family.get_or_create_owned(&labels)
                })
            })
        })
    }

    fn findings(&mut self, rules: &[&'static str]) -> HashMap<(&'static str, Level), Counter> {
        let family: Family<Labels<2>, Counter> = Family::default();
        self.0.register("findings", "Findings of the rules", family.clone());
        let pairs = rules.iter().flat_map(|rule| LEVELS.map(|level| (*rule, level)));
        pairs
            .map(|(rule, level)| {
                let counter = family.get_or_create_owned(&[("rule", rule), ("level", level.as_str())]);
                ((rule, level), counter)
            })
            .collect()
    }

    fn families(&mut self, rules: &[&'static str]) -> HashMap<&'static str, [[Counter; 3]; 4]> {
        let counters: Family<Labels<3>, Counter> = Family::default();
        let help = "Requests about which rules of a family found something, by the highest level of that";
        self.0.register("family_decisions", help, counters.clone());
        let of = |family| {
            OPERATIONS.map(|operation| {
                LEVELS.map(|level| {
                    let labels = [("family", family), ("operation", operation.as_str()), ("level", level.as_str())];
                    counters.get_or_create_owned(&labels)
                })
            })
        };
        rules.iter().map(|rule| family_of(rule)).map(|family| (family, of(family))).collect()
    }

    fn latency(&mut self) -> [Histogram; 2] {
        let family: Family<Labels<1>, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS));
        let help = "From the head of a request to its decision";
        self.0.register("decision_duration_seconds", help, family.clone());
        PHASES.map(|phase| family.get_or_create_owned(&[("phase", phase.as_str())]))
    }
}
