//! Logs decisions, one record each, without the contents of objects.

use std::fmt;
use std::time::Duration;

use crate::admission::{Finding, Outcome, Phase, Request, Verdict};

/// Maximum number of rule ids in one log record or span, so that these stay short. The response and the metrics contain
/// all rule ids.
pub(super) const RULES: usize = 16;

/// Logs a decision. In shadow mode, every request is admitted, and `shadow` is the outcome that would be sent without
/// shadow mode. Otherwise, `shadow` is `None`. `took` is the time from the request head to the decision. Values that
/// users choose, such as names, are logged as strings. The log formatter quotes and escapes strings, so that no value
/// can begin a new log record.
pub(super) fn decision(
    phase: Phase,
    request: &Request<'_>,
    verdict: &Verdict,
    shadow: Option<Outcome>,
    took: Duration,
) {
    if !tracing::enabled!(target: "decision", tracing::Level::INFO) {
        return;
    }
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let name = request.display_name();
    tracing::info!(
        target: "decision",
        uid = &*request.uid,
        webhook = phase.as_str(),
        operation = request.operation.as_str(),
        group = &*request.resource.group,
        resource = &*request.resource.plural,
        subresource = &*request.resource.subresource,
        namespace = &*request.namespace,
        name = name.as_str(),
        user = &*request.user.name,
        dry_run = request.dry_run,
        allowed = shadow.is_some() || verdict.is_allowed(),
        shadow = shadow.map(Outcome::as_str),
        rules = %Rules(&verdict.findings),
        micros,
    );
}

/// Logs a request to which no rule applies.
pub(super) fn unhandled(phase: Phase, request: &Request<'_>) {
    tracing::debug!(
        target: "decision",
        uid = &*request.uid,
        webhook = phase.as_str(),
        operation = request.operation.as_str(),
        group = &*request.resource.group,
        resource = &*request.resource.plural,
        "no rule matches"
    );
}

/// The rules with findings, formatted for the log, such as `KZ001=deny,KZ003=warn`.
struct Rules<'a>(&'a [Finding]);

impl fmt::Display for Rules<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, finding) in self.0.iter().take(RULES).enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{}={}", finding.rule, finding.level)?;
        }
        match self.0.len().saturating_sub(RULES) {
            0 => Ok(()),
            more => write!(f, ",+{more}"),
        }
    }
}
