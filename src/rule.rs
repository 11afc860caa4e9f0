//! The shape of a rule and of a mutator: what a system hands to the gate.
//!
//! A rule is one file with one row: a `pub static RULE: Rule`. Its function is pure: the request and the catalog in,
//! findings out. It does no I/O and knows no clock; where a stale answer of the catalog would be unsafe, it names the
//! objects it wants confirmed, and the gate asks the API server for them before the rule speaks.

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
    /// One line: what it reports.
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
    /// The requests it looks at.
    pub scope: &'static [Match],
    /// The kinds it looks up.
    pub looks_up: &'static [&'static Kind],
    /// The objects it wants confirmed, given what is confirmed already; asked again until it wants nothing more.
    pub confirm: Option<fn(&Request<'_>, &View<'_>) -> Vec<Reference>>,
    /// What it finds.
    pub check: fn(&Request<'_>, &View<'_>) -> Vec<Finding>,
}

impl Rule {
    /// Returns a finding of this rule at its default level.
    pub fn finding(&self, field: FieldPath, message: impl Into<String>) -> Finding {
        self.info.finding(field, message)
    }
}

/// A change of objects: computed for every request, sent back as a JSON Patch.
pub struct Mutator {
    /// Stable name, such as `overwrite-patch`.
    pub name: &'static str,
    /// The family of rules that it belongs to, such as `OW`: on and off with it.
    pub family: &'static str,
    /// One line: what it adds.
    pub summary: &'static str,
    /// The requests it looks at.
    pub scope: &'static [Match],
    /// The kinds it looks up.
    pub looks_up: &'static [&'static Kind],
    /// The objects it wants confirmed, as for a rule.
    pub confirm: Option<fn(&Request<'_>, &View<'_>) -> Vec<Reference>>,
    /// What it does where the configuration says nothing.
    pub mode: Mode,
    /// Makes the draft the object as it should be.
    pub mutate: fn(&Request<'_>, &View<'_>, Mode, &mut Draft<'_>) -> Mutated,
}

/// What became of a mutation: what the user should know of it, or why the request cannot go on without it.
pub type Mutated = Result<Vec<String>, Box<Finding>>;

/// A CustomResourceDefinition of ours: a kind that a system adds.
#[derive(Debug)]
pub struct Definition {
    /// The family of rules that it belongs to, such as `DR`: on and off with it.
    pub family: &'static str,
    /// The file that it is written to.
    pub file: &'static str,
    /// The manifest.
    pub text: &'static str,
}

/// In place of a [`Match`]'s group: the kinds that objects in the catalog declare, under the name of their
/// [`Declaration`].
pub const DECLARED: &str = "*";

/// Requests of one resource that a rule or mutator looks at.
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
    /// What becomes of such a request while nobody answers.
    pub outage: Outage,
    /// Where in the object, besides its metadata, the rule or mutator looks; `None` for all of it.
    pub reads: Option<&'static [Path]>,
}

/// What the API server does with a request while no replica of ours answers: the webhook's `failurePolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outage {
    /// The request is refused (`Fail`): letting it through does harm that is not mended by itself.
    Refuse,
    /// The same, but for some that nothing is to be done about, which go on.
    RefuseUnless(&'static Spared),
    /// The request goes on (`Ignore`).
    Admit,
}

impl Outage {
    /// Returns whether requests are refused, some or all.
    pub fn refuses(self) -> bool {
        self != Self::Admit
    }
}

/// Requests of a resource that an outage does not stop.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spared {
    /// What they are, as the name of a condition: `roots`.
    pub name: &'static str,
    /// CEL that holds for them, of `object` and `oldObject`. For what it wrongly leaves out nothing is lost; it must hold for nothing else.
    pub expression: &'static str,
}

/// What a mutator does with what it worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nothing.
    Off,
    /// Writes it into annotations of ours; everything else stays as the user wrote it.
    Annotate,
    /// Patches the object itself, and says in annotations what it was.
    Apply,
}

impl Match {
    /// Whatever is created or updated of a resource. It goes on while nobody answers.
    pub const fn written(
        group: &'static str,
        versions: &'static [&'static str],
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        let operations = &[Operation::Create, Operation::Update];
        Self { group, versions, plural, kind, subresource: "", operations, outage: Outage::Admit, reads: None }
    }

    /// Returns the same requests, of whose objects only metadata and what stands at `parts` is looked at. Reading an
    /// object is most of the work on it.
    #[must_use]
    pub const fn reading(self, parts: &'static [Path]) -> Self {
        Self { reads: Some(parts), ..self }
    }

    /// Returns whether it is about kinds that are declared.
    pub fn is_declared(&self) -> bool {
        self.group == DECLARED
    }

    /// Returns whether a request is one of these; `declared_as` is the declaration of its kind, where it has one.
    pub fn covers(&self, request: &Request<'_>, declared_as: Option<&Declaration>) -> bool {
        let resource = &request.resource;
        let is_named = match declared_as {
            Some(declaration) if self.is_declared() => declaration.name == self.plural,
            _ => resource.plural == self.plural && resource.group == self.group,
        };
        is_named && resource.subresource == self.subresource && self.operations.contains(&request.operation)
    }
}
