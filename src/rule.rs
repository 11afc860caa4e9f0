//! The types of rules and mutators, which systems define and the gate runs.
//!
//! A rule is one file with one definition: a `static RULE: Rule`. Its function is pure: it maps the request and the
//! catalog to findings, without I/O and clock. If a stale answer of the catalog would be unsafe, the rule names objects
//! to read live, and the gate reads them from the API server before it runs the rule.

use crate::admission::patch::Draft;
use crate::admission::{FieldPath, Finding, Level, Operation, Path, Request};
use crate::catalog::{Declaration, Kind, Reference, View};

/// The definition of a rule, of a check of requests or of trees. Everything that names rules is derived from definitions:
/// levels in the configuration, metrics labels, `portcullis rules`, SARIF.
#[derive(Debug)]
pub struct RuleInfo {
    /// Stable id, such as `OW001`. It never changes its meaning.
    pub id: &'static str,
    /// Stable name in words, such as `repository-context-not-an-object`.
    pub name: &'static str,
    /// Level of its findings unless the configuration sets another one.
    pub level: Level,
    /// A summary of what it reports, in one line.
    pub summary: &'static str,
    /// Its page, `docs/rules/<ID>.md`, as Markdown.
    pub page: &'static str,
}

impl RuleInfo {
    /// Returns the family, which is the letters of the id: `OW`.
    pub fn family(&self) -> &'static str {
        self.id.trim_end_matches(|c: char| c.is_ascii_digit())
    }

    /// Returns a finding of this rule at its default level.
    pub fn finding(&self, field: FieldPath, message: impl Into<String>) -> Finding {
        Finding::new(self.id, self.level, field, message)
    }

    /// Returns the text below a heading of the second level on the page, empty if there is no such heading.
    pub fn section(&self, heading: &str) -> &'static str {
        let mut sections = self.page.split("\n## ").filter_map(|section| section.split_once('\n'));
        sections.find(|(title, _)| *title == heading).map(|(_, text)| text.trim()).unwrap_or_default()
    }
}

/// A rule about requests.
pub struct Rule {
    /// Its definition.
    pub info: RuleInfo,
    /// The requests that it matches.
    pub matchers: &'static [Match],
    /// The kinds that it looks up.
    pub looks_up: &'static [&'static Kind],
    /// The objects to read live, given the live reads so far; called again until it returns no more.
    pub live_reads: Option<fn(&Request<'_>, &View<'_>) -> Vec<Reference>>,
    /// Returns its findings.
    pub check: fn(&Request<'_>, &View<'_>) -> Vec<Finding>,
}

impl Rule {
    /// Returns a finding of this rule at its default level.
    pub fn finding(&self, field: FieldPath, message: impl Into<String>) -> Finding {
        self.info.finding(field, message)
    }
}

/// A mutator: computes a change of the object, which is sent as a JSON Patch.
pub struct Mutator {
    /// Stable name, such as `overwrite-patch`.
    pub name: &'static str,
    /// The family of rules with which it is on or off, such as `OW`.
    pub family: &'static str,
    /// A summary of what it adds, in one line.
    pub summary: &'static str,
    /// The requests that it matches.
    pub matchers: &'static [Match],
    /// The kinds that it looks up.
    pub looks_up: &'static [&'static Kind],
    /// The objects to read live, as for a rule.
    pub live_reads: Option<fn(&Request<'_>, &View<'_>) -> Vec<Reference>>,
    /// The default mode.
    pub mode: Mode,
    /// Changes the draft.
    pub mutate: fn(&Request<'_>, &View<'_>, Mode, &mut Draft<'_>) -> Mutated,
}

/// The result of a mutator: messages to the user, or the finding that denies the request.
pub type Mutated = Result<Vec<String>, Box<Finding>>;

/// A CustomResourceDefinition that a system adds.
#[derive(Debug)]
pub struct Definition {
    /// The family of rules with which it is on or off, such as `DR`.
    pub family: &'static str,
    /// Its file name.
    pub file: &'static str,
    /// The manifest.
    pub text: &'static str,
}

/// The group of a [`Match`] for declared kinds, whose plural name is then the name of their [`Declaration`].
pub const DECLARED: &str = "*";

/// The group and the plural name of a [`Match`] for all resources.
pub const ANY: &str = "*";

/// A request matcher: requests of one resource, or of all.
#[derive(Debug)]
pub struct Match {
    /// API group, or [`DECLARED`].
    pub group: &'static str,
    /// API versions; the API server converts others (`matchPolicy: Equivalent`).
    pub versions: &'static [&'static str],
    /// Plural name, or the name of a declaration.
    pub plural: &'static str,
    /// Kind of its objects.
    pub kind: &'static str,
    /// Subresource, empty for the main resource.
    pub subresource: &'static str,
    /// The operations.
    pub operations: &'static [Operation],
    /// The failure policy for these requests.
    pub failure_policy: FailurePolicy,
    /// The parts of the object, besides its metadata, that the rule or mutator reads; `None` for the whole object.
    pub reads: Option<&'static [Path]>,
}

/// The webhook's `failurePolicy`: the result of a request if no replica answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailurePolicy {
    /// The request is denied (`Fail`): admitting it would cause lasting harm.
    Fail,
    /// The request is denied, unless the match condition holds for it.
    FailUnless(&'static MatchCondition),
    /// The request is admitted (`Ignore`).
    Ignore,
}

impl FailurePolicy {
    /// Returns whether requests are denied, all or some.
    pub fn fails(self) -> bool {
        self != Self::Ignore
    }
}

/// A match condition for requests that need not be denied if no replica answers.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MatchCondition {
    /// The name of the condition, such as `roots`.
    pub name: &'static str,
    /// A CEL expression of `object` and `oldObject`. It may be false for a request that need not be denied, but must
    /// not be true for one that must be.
    pub expression: &'static str,
}

/// The use of a mutator's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is off.
    Off,
    /// It writes the result into annotations, and does not change other fields.
    Annotate,
    /// It patches the object itself, and records the original in annotations.
    Apply,
}

impl Match {
    /// Matches creations and updates of a resource, which are admitted if no replica answers.
    pub const fn create_or_update(
        group: &'static str,
        versions: &'static [&'static str],
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        let operations = &[Operation::Create, Operation::Update];
        Self {
            group,
            versions,
            plural,
            kind,
            subresource: "",
            operations,
            failure_policy: FailurePolicy::Ignore,
            reads: None,
        }
    }

    /// Restricts the parsed parts of objects to metadata and `parts`. Parsing an object is most of the work on it.
    #[must_use]
    pub const fn reading(self, parts: &'static [Path]) -> Self {
        Self { reads: Some(parts), ..self }
    }

    /// Returns whether it matches declared kinds.
    pub fn is_declared(&self) -> bool {
        self.group == DECLARED && self.plural != ANY
    }

    /// Returns whether it matches a request; `declared_as` is the declaration of the request's kind, if any.
    pub fn covers(&self, request: &Request<'_>, declared_as: Option<&Declaration>) -> bool {
        let resource = &request.resource;
        let is_named = match declared_as {
            Some(declaration) if self.is_declared() => declaration.name == self.plural,
            _ if self.plural == ANY => true,
            _ => resource.plural == self.plural && resource.group == self.group,
        };
        is_named && resource.subresource == self.subresource && self.operations.contains(&request.operation)
    }
}
