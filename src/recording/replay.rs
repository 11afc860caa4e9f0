//! Replays a recording of admission decisions. Evaluates the recorded admission requests again, and compares the new
//! decisions with the recorded ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::compare::{self, Difference};
use super::line::{self, Decision, Header, Line};
use super::reads::{ReplayedReads, ReplayedTrees};
use super::{Answer, Aspect};
use crate::admission::Operation;
use crate::admission::review::{self, Review};
use crate::catalog::{Catalog, Kind};
use crate::config;
use crate::gate::{Gate, Policy, Registry};

/// The reason why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Malformed {
    /// The number of the line in the file, counted from one.
    pub line: usize,
    /// The reason why the line cannot be parsed or replayed.
    pub problem: String,
}

impl Malformed {
    fn new(line: usize, problem: impl ToString) -> Self {
        Self { line, problem: problem.to_string() }
    }
}

/// A parsed recording of decisions.
#[derive(Debug)]
pub struct Recording {
    header: Header,
    /// The lines after the header, with their numbers in the file, in the order of the replay.
    lines: Vec<(usize, Line)>,
}

/// A recorded decision, and the new decision about the same request.
#[derive(Debug)]
pub struct Replayed<'a> {
    /// The number of the decision's line in the recording, counted from one.
    pub line: usize,
    /// The recorded decision.
    pub decision: &'a Decision,
    /// A description of the request, such as `UPDATE contexts.landscaper.gardener.cloud demo/base by alice`.
    pub request: String,
    /// The new decision.
    pub now: Answer,
    /// The differences between the recorded and the new decision.
    pub differences: Vec<Difference>,
    /// The reason why the decisions cannot be compared; `None` if they can be compared. They cannot be compared if data
    /// that the rules read is missing from the recording. The new decision may then differ although the rules did not
    /// change.
    pub not_comparable: Option<&'static str>,
}

impl Replayed<'_> {
    /// Returns whether the new decision differs in more than wording. `false` if the recording is not complete enough
    /// for a comparison.
    pub fn differs(&self) -> bool {
        self.not_comparable.is_none() && self.differences.iter().any(|difference| difference.aspect != Aspect::Wording)
    }
}

impl Recording {
    /// Parses a recording of decisions. Ignores an incomplete last line, which a killed process may leave.
    ///
    /// # Errors
    ///
    /// Fails if a line cannot be parsed, or if the first line is not a header with the current format version. The
    /// error contains the number of the line.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut header = None;
        let mut lines = Vec::new();
        let all: Vec<_> = text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()).collect();
        let is_cut = !text.ends_with('\n');
        for (at, (number, text)) in all.iter().enumerate() {
            let number = number + 1;
            match serde_json::from_str(text) {
                Ok(Line::Recording(found)) if header.is_none() => header = Some(readable(number, found)?),
                Ok(line) if header.is_some() => lines.push((number, line)),
                Ok(_) => return Err(Malformed::new(number, "the recording does not begin with its header")),
                Err(_) if is_cut && at + 1 == all.len() && header.is_some() => {}
                Err(error) => return Err(Malformed::new(number, error)),
            }
        }
        let header =
            header.ok_or_else(|| Malformed::new(1, "the file is empty; a recording begins with its header"))?;
        // A decision is written when it ends. It is replayed with the state of the catalog at its beginning.
        lines.sort_by_key(|(_, line)| line.position());
        Ok(Self { header, lines })
    }

    /// Returns the header, which is the first line of the recording.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns a registry with only the rules that were enabled during the recording.
    pub fn registry(&self) -> Registry {
        let families: Vec<&str> = self.header.families.iter().map(String::as_str).collect();
        Registry::standard().only(&families)
    }

    /// Returns the text of the recording, with the new decisions in place of the recorded ones.
    ///
    /// # Errors
    ///
    /// Fails if a line with a decision cannot be parsed or serialized.
    pub fn accept(text: &str, replayed: &[Replayed<'_>]) -> Result<String, serde_json::Error> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for Replayed { line, now, .. } in replayed {
            let mut value: Line = serde_json::from_str(&lines[line - 1])?;
            if let Line::Decision(decision) = &mut value {
                decision.answer = Some(now.clone());
            }
            lines[line - 1] = serde_json::to_string(&value)?;
        }
        Ok(lines.join("\n") + "\n")
    }
}

fn readable(line: usize, header: Header) -> Result<Header, Malformed> {
    if header.format == line::FORMAT {
        return Ok(header);
    }
    let (found, ours) = (header.format, line::FORMAT);
    Err(Malformed::new(line, format!("the format is {found}, and this version reads {ours}")))
}

/// Evaluates every admission review in a recording again. Returns the new decisions, with their differences from the
/// recorded ones. Uses the configuration `policy`, or the configuration in the recording if `policy` is `None`.
///
/// # Errors
///
/// Fails if a review, its time, or a configuration in the recording cannot be parsed. The error contains the line
/// number.
pub async fn replay(recording: &Recording, policy: Option<Policy>) -> Result<Vec<Replayed<'_>>, Malformed> {
    let mut session = Session::new(recording, policy);
    let (mut replayed, mut overlapping) = (Vec::new(), Vec::new());
    for (number, line) in &recording.lines {
        if let Line::Decision(decision) = line {
            overlapping.extend(decision.changes_at_end.map(|_| replayed.len()));
            replayed.push(session.decide(*number, decision).await?);
        } else {
            session.apply(line).map_err(|problem| Malformed::new(*number, problem))?;
            overlapping.retain(|&at: &usize| is_overlapped(&replayed[at], line));
            for &at in &overlapping {
                session.decide_again(&mut replayed[at]).await?;
            }
        }
    }
    Ok(replayed)
}

/// Returns whether the decision `replayed` must be repeated after `change`, a line of the recording. This is the case
/// if `replayed` differs from the recorded decision, and the change occurred while the recorded decision was being
/// made. The recorded decision may have used the state after the change.
fn is_overlapped(replayed: &Replayed<'_>, change: &Line) -> bool {
    let at_end = replayed.decision.changes_at_end.unwrap_or_default();
    change.position().0 <= at_end && !replayed.differences.is_empty()
}

/// The state of the server during a replay.
struct Session {
    gate: Gate,
    reads: Arc<ReplayedReads>,
    trees: Arc<ReplayedTrees>,
    /// The time of the current decision, in seconds since 1970.
    now: Arc<AtomicI64>,
    is_policy_given: bool,
    has_lost_changes: bool,
}

impl Session {
    fn new(recording: &Recording, policy: Option<Policy>) -> Self {
        let registry = recording.registry();
        let trees = Arc::new(ReplayedTrees::new(registry.ids()));
        let reads = Arc::new(ReplayedReads::default());
        let mut catalog = registry.catalog();
        catalog.set_live_reader(reads.clone());
        let catalog = Arc::new(catalog);
        reads.over(&catalog);
        let now = Arc::new(AtomicI64::new(0));
        let clock = now.clone();
        let is_policy_given = policy.is_some();
        let gate = Gate::new(registry, policy.unwrap_or_default(), catalog).with_trees(trees.clone());
        let gate = gate.with_clock(move || {
            OffsetDateTime::from_unix_timestamp(clock.load(Ordering::Relaxed)).unwrap_or(OffsetDateTime::UNIX_EPOCH)
        });
        Self { gate, reads, trees, now, is_policy_given, has_lost_changes: false }
    }

    /// Applies `line`, a line of the recording, to the state of the replay. The line may change the configuration, or
    /// the catalog, which contains the known objects of the cluster. Lines with decisions have no effect.
    fn apply(&mut self, line: &Line) -> Result<(), String> {
        let catalog = self.gate.catalog();
        match line {
            Line::Configuration(line) if !self.is_policy_given => {
                let policy = config::parse(&line.text, "the recorded configuration", &Registry::standard());
                self.gate.set_policy(policy.map_err(|error| error.to_string())?);
            }
            // Kinds that no rule looks up any more are skipped.
            Line::Coverage(line) => {
                kind(catalog, &line.kind).into_iter().for_each(|kind| catalog.set_coverage(kind, line.coverage))
            }
            Line::Stored(line) => {
                kind(catalog, &line.kind).into_iter().for_each(|kind| catalog.insert(kind, line.object.clone()))
            }
            Line::Deleted(line) => {
                kind(catalog, &line.kind).into_iter().for_each(|kind| catalog.remove(kind, &line.namespace, &line.name))
            }
            Line::Lost(line) => self.has_lost_changes |= line.changes > 0,
            Line::Configuration(_) | Line::Recording(_) | Line::Decision(_) => {}
        }
        Ok(())
    }

    /// Repeats the decision in `replayed` with the current catalog and configuration. Call this function after you
    /// apply a change that occurred while the recorded decision was made. Replaces `replayed` if the new result has
    /// fewer differences from the recorded decision.
    async fn decide_again(&self, replayed: &mut Replayed<'_>) -> Result<(), Malformed> {
        let again = self.decide(replayed.line, replayed.decision).await?;
        if again.differences.len() < replayed.differences.len() {
            *replayed = again;
        }
        Ok(())
    }

    async fn decide<'a>(&self, line: usize, decision: &'a Decision) -> Result<Replayed<'a>, Malformed> {
        self.reads.answer(&decision.live_reads);
        self.trees.answer(&decision.trees);
        let at = OffsetDateTime::parse(&decision.at, &Rfc3339).map_err(|error| Malformed::new(line, error))?;
        self.now.store(at.unix_timestamp(), Ordering::Relaxed);
        let review = review::read(decision.review.get().as_bytes());
        let Review { request, .. } = review.map_err(|error| Malformed::new(line, error))?;
        let now = Answer::from(&self.gate.decide(decision.phase, &request).await);
        let object = request.object.whole().unwrap_or(&Value::Null);
        let differences = match &decision.answer {
            Some(before) => compare::differences(before, &now, object),
            None => Vec::new(),
        };
        let not_comparable = if self.has_lost_changes {
            Some("changes of the catalog are missing in the recording")
        } else if !decision.redacted.is_empty() {
            Some("fields of the object are redacted")
        } else {
            None
        };
        let request = described(decision, &request);
        Ok(Replayed { line, decision, request, now, differences, not_comparable })
    }
}

fn kind(catalog: &Catalog, name: &str) -> Option<&'static Kind> {
    let kinds: Vec<_> = catalog.kinds().chain(catalog.declared()).collect();
    line::find_kind(kinds.into_iter(), name)
}

fn described(decision: &Decision, request: &crate::admission::Request<'_>) -> String {
    let resource = &request.resource;
    let group = if resource.group.is_empty() { String::new() } else { format!(".{}", resource.group) };
    let part = if resource.subresource.is_empty() { String::new() } else { format!("/{}", resource.subresource) };
    let namespace = if request.namespace.is_empty() { String::new() } else { format!("{}/", request.namespace) };
    let (phase, operation) = (decision.phase.as_str(), Operation::as_str(request.operation));
    let (plural, name, user) = (&resource.plural, request.display_name(), &request.user.name);
    format!("{phase} {operation} {plural}{group}{part} {namespace}{name} by {user}")
}
