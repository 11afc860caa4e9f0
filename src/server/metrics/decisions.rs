//! Counters of decisions by phase, operation, rule and outcome.

use std::collections::HashMap;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::registering::{Labels, Registering};
use crate::admission::{Finding, Level, Operation, Outcome, Phase, Verdict};

/// Buckets of the latency of decisions, in seconds. The smallest bucket is for a typical request without findings. The
/// largest one is the API server's longest timeout.
const LATENCY_BUCKETS: [f64; 15] =
    [50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.5, 1.0, 5.0, 30.0];

const PHASES: [Phase; 2] = [Phase::Mutate, Phase::Validate];
const OPERATIONS: [Operation; 4] = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
const LEVELS: [Level; 3] = [Level::Audit, Level::Warn, Level::Deny];

/// Counters of decisions and their findings, and a histogram of their latency.
#[derive(Debug)]
pub(in crate::server) struct Decisions {
    made: [[[Counter; 2]; 4]; 2],
    findings: HashMap<(&'static str, Level), Counter>,
    families: HashMap<&'static str, [[Counter; 3]; 4]>,
    latency: [Histogram; 2],
    unhandled: [Counter; 2],
    undecided: [Counter; 2],
    shadowed: [Counter; 4],
    shadow: Gauge,
}

impl Decisions {
    pub(super) fn register(one: &mut Registering<'_>, rules: &[&'static str]) -> Self {
        Self {
            made: one.decisions(),
            findings: one.findings(rules),
            families: one.families(rules),
            latency: one.latency(),
            unhandled: one.by_phase("unhandled", "Requests that no rule matches"),
            undecided: one.by_phase("undecided", "Requests denied because no decision was reached in time"),
            shadowed: one.counters(
                "shadowed",
                "Decisions that were not sent because of --shadow, by outcome",
                "would",
                Outcome::ALL.map(Outcome::as_str),
            ),
            shadow: one.gauge("shadow", "1 if --shadow is set: every request is admitted unchanged"),
        }
    }

    /// Counts a decision. `allowed` says whether the response admits the request. In shadow mode, `allowed` is always
    /// true.
    pub(in crate::server) fn made(
        &self,
        phase: Phase,
        operation: Operation,
        verdict: &Verdict,
        allowed: bool,
        took: Duration,
    ) {
        self.made[phase_index(phase)][operation_index(operation)][usize::from(allowed)].inc();
        self.latency[phase_index(phase)].observe(took.as_secs_f64());
        for finding in &verdict.findings {
            if let Some(counter) = self.findings.get(&(finding.rule, finding.level)) {
                counter.inc();
            }
        }
        self.families_decided(operation, &verdict.findings);
    }

    /// Counts a request once for each rule family with findings, by the highest level of these findings. A family is
    /// the letters of a rule id, such as `OW`.
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

    /// Sets the metric that shows whether the server runs in shadow mode, in which decisions are not enforced.
    pub(in crate::server) fn set_shadow(&self, shadow: bool) {
        self.shadow.set(i64::from(shadow));
    }

    pub(in crate::server) fn shadowed(&self, would: Outcome) {
        self.shadowed[would as usize].inc();
    }

    pub(in crate::server) fn unhandled(&self, phase: Phase) {
        self.unhandled[phase_index(phase)].inc();
    }

    pub(in crate::server) fn undecided(&self, phase: Phase) {
        self.undecided[phase_index(phase)].inc();
    }
}

impl Registering<'_> {
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
        let help = "Requests with findings of a family, by the highest level";
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
        let help = "Time from the request head to the decision";
        self.0.register("decision_duration_seconds", help, family.clone());
        PHASES.map(|phase| family.get_or_create_owned(&[("phase", phase.as_str())]))
    }
}

/// Returns the family of a rule. The family is the letters of the rule's id.
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
