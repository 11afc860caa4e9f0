//! The types of rules and mutators. A rule checks admission requests, and a mutator changes the object of a request.
//! The modules for kustomize, Landscaper and Crossplane define the rules and mutators.
//!
//! Each rule has its own file, with the definition `static RULE: Rule`. The function of a rule computes its findings
//! only from the request and the catalog, which is a cache of cluster objects. It performs no I/O and does not use the
//! current time.
//!
//! The cache may be outdated. If a rule must know the current state of an object, its field `live_reads` returns a
//! reference to the object. Portcullis reads this object from the API server before it calls the rule.

use crate::admission::patch::Draft;
use crate::admission::{FieldPath, Finding, Level, Operation, Path, Request};
use crate::catalog::{Declaration, Kind, Reference, View};

/// The description of a rule that checks requests or kustomize trees. It consists of id, name, default level, summary
/// and documentation page. It is used for the configuration, the labels of metrics, SARIF reports and the output of
/// `portcullis rules`.
#[derive(Debug)]
pub struct RuleInfo {
    /// Stable id of the rule, such as `OW001`. The meaning of an id never changes.
    pub id: &'static str,
    /// Stable name of the rule in words, such as `repository-context-not-an-object`.
    pub name: &'static str,
    /// Level of the rule's findings, unless the configuration sets another one.
    pub level: Level,
    /// Summary of what the rule reports, in one line.
    pub summary: &'static str,
    /// Text of the rule's page, `docs/rules/<ID>.md`, as Markdown.
    pub page: &'static str,
}

impl RuleInfo {
    /// Returns the family of the rule, which is the letters of its id, such as `OW`.
    pub fn family(&self) -> &'static str {
        self.id.trim_end_matches(|c: char| c.is_ascii_digit())
    }

    /// Returns a finding of this rule at its default level.
    pub fn finding(&self, field: FieldPath, message: impl Into<String>) -> Finding {
        Finding::new(self.id, self.level, field, message)
    }

    /// Returns the text below a heading of the second level on the rule's page. Empty if the page has no such heading.
    pub fn section(&self, heading: &str) -> &'static str {
        let mut sections = self.page.split("\n## ").filter_map(|section| section.split_once('\n'));
        sections.find(|(title, _)| *title == heading).map(|(_, text)| text.trim()).unwrap_or_default()
    }
}

/// A rule that checks requests.
pub struct Rule {
    /// Id, name, default level, summary and page of the rule.
    pub info: RuleInfo,
    /// The matchers of the requests that the rule checks.
    pub matchers: &'static [Match],
    /// The kinds of objects that the rule looks up in the catalog.
    pub looks_up: &'static [&'static Kind],
    /// Returns references to the objects that the rule needs from the API server. Portcullis reads these objects, and
    /// calls this function again with them, until the function returns no further references. Then Portcullis calls
    /// `check`. `None` if the rule needs no objects from the API server.
    pub live_reads: Option<fn(&Request<'_>, &View<'_>) -> Vec<Reference>>,
    /// Returns the findings of the rule for a request.
    pub check: fn(&Request<'_>, &View<'_>) -> Vec<Finding>,
}

impl Rule {
    /// Returns a finding of this rule at its default level.
    pub fn finding(&self, field: FieldPath, message: impl Into<String>) -> Finding {
        self.info.finding(field, message)
    }
}

/// A mutator. It computes a change of the object in a request, and the change is sent as a JSON Patch.
pub struct Mutator {
    /// Stable name of the mutator, such as `overwrite-patch`.
    pub name: &'static str,
    /// The rule family to which the mutator belongs. A family is the letters of a rule id, such as `OW`. The mutator
    /// runs only if this family is enabled.
    pub family: &'static str,
    /// Summary of what the mutator adds to the object, in one line.
    pub summary: &'static str,
    /// The request matchers that select the requests for which the mutator runs.
    pub matchers: &'static [Match],
    /// The kinds of objects that the mutator looks up in the catalog.
    pub looks_up: &'static [&'static Kind],
    /// Returns references to the objects that the mutator needs in their current state. Portcullis reads these objects
    /// from the API server before it calls `mutate`, because its own copies of objects may be out of date. The function
    /// is called as described in [`Rule::live_reads`]. `None` if the mutator needs no such objects.
    pub live_reads: Option<fn(&Request<'_>, &View<'_>) -> Vec<Reference>>,
    /// The mode of the mutator, unless the configuration sets another one.
    pub mode: Mode,
    /// Changes the object of the request by editing the `Draft`, from which the JSON Patch is computed. Returns
    /// messages for the user, or the finding that denies the request.
    pub mutate: fn(&Request<'_>, &View<'_>, Mode, &mut Draft<'_>) -> Mutated,
}

/// The result of a mutator: messages to the user, or the finding that denies the request.
pub type Mutated = Result<Vec<String>, Box<Finding>>;

/// A CustomResourceDefinition that Portcullis provides in its generated manifests. Some rules check or read objects of
/// the kind that it defines.
#[derive(Debug)]
pub struct Definition {
    /// The family of the rules that need the CustomResourceDefinition. A family is the letters of a rule id, such as
    /// `DR`. The CustomResourceDefinition is used only if this family is enabled.
    pub family: &'static str,
    /// The file name of the manifest of the CustomResourceDefinition.
    pub file: &'static str,
    /// The manifest of the CustomResourceDefinition as YAML.
    pub text: &'static str,
}

/// The value of [`Match::group`] for kinds that are known only at run time, because objects in the cluster define them.
/// For example, CompositeResourceDefinitions define the kinds of composites. [`Match::plural`] then contains the name
/// of the [`Declaration`], such as `composites`.
pub const DECLARED: &str = "*";

/// The value of [`Match::group`] and [`Match::plural`] in a matcher for all resources.
pub const ANY: &str = "*";

/// A request matcher, which selects requests for one resource, or for all resources.
#[derive(Debug)]
pub struct Match {
    /// API group of the resource. [`ANY`] stands for all resources. [`DECLARED`] stands for kinds that other objects in
    /// the cluster define, such as the composites that a CompositeResourceDefinition defines.
    pub group: &'static str,
    /// API versions of the resource. The API server converts objects of other versions to one of these versions
    /// (`matchPolicy: Equivalent`).
    pub versions: &'static [&'static str],
    /// Plural name of the resource, such as `installations`. [`ANY`] stands for all resources. If `group` is
    /// `DECLARED`, this is the name of a [`Declaration`] instead. For example, `composites` stands for all kinds that
    /// CompositeResourceDefinitions declare.
    pub plural: &'static str,
    /// Kind of the resource's objects, such as `Installation`.
    pub kind: &'static str,
    /// Subresource, such as `status`. Empty for the main resource.
    pub subresource: &'static str,
    /// The operations of the requests that the matcher selects, such as create and update.
    pub operations: &'static [Operation],
    /// Determines whether the API server admits or denies the selected requests if no replica of the webhook answers.
    pub failure_policy: FailurePolicy,
    /// The parts of the object, besides its metadata, that the rule or mutator reads; `None` for the whole object.
    pub reads: Option<&'static [Path]>,
}

/// The webhook's `failurePolicy`. It determines the result of a request if no replica answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailurePolicy {
    /// If no replica of the webhook answers, requests are denied (`failurePolicy: Fail`). This value is for requests
    /// that could cause lasting harm if they were admitted unchecked.
    Fail,
    /// If no replica of the webhook answers, requests are denied (`failurePolicy: Fail`). As an exception, a request
    /// for which the match condition is true is admitted.
    FailUnless(&'static MatchCondition),
    /// If no replica of the webhook answers, requests are admitted (`failurePolicy: Ignore`).
    Ignore,
}

impl FailurePolicy {
    /// Returns whether requests can be denied because no replica of the webhook answers. This is the case for all
    /// policies except [`Ignore`](Self::Ignore).
    pub fn fails(self) -> bool {
        self != Self::Ignore
    }
}

/// A CEL condition that is true for requests that are safe to admit unchecked. It belongs to the failure policy
/// `FailUnless`. While no replica of the webhook answers, the API server admits the requests for which the condition is
/// true, and denies all other requests. This is implemented with two webhooks. The first has `failurePolicy: Ignore`,
/// and its `matchConditions` contain the condition. The second has `failurePolicy: Fail`, and its `matchConditions`
/// contain the negation.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MatchCondition {
    /// A short name for the CEL condition. It becomes part of a name in the webhook's `matchConditions`. For example,
    /// `without-overwrites` becomes part of `only-without-overwrites-of-contexts`.
    pub name: &'static str,
    /// A CEL expression over `object` and `oldObject`, the new and the old state of the object in the request. It is
    /// true if the request is safe to admit without an answer of the webhook. If this is not certain, the expression
    /// must be false.
    pub expression: &'static str,
}

/// The mode of a mutator: whether it is off, writes only annotations, or patches the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The mutator is off.
    Off,
    /// The mutator writes its result into annotations, and does not change other fields.
    Annotate,
    /// The mutator patches the object itself, and records the original in annotations.
    Apply,
}

impl Match {
    /// Creates a matcher for requests that create or update objects of one resource type. The failure policy of the
    /// matcher is `Ignore`. So the API server admits these requests if no replica of the webhook answers.
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

    /// Returns the matcher with [`Match::reads`] set to `parts`. Then only the metadata and `parts` of objects are
    /// parsed. This saves time, because parsing takes most of the processing time of an object.
    #[must_use]
    pub const fn reading(self, parts: &'static [Path]) -> Self {
        Self { reads: Some(parts), ..self }
    }

    /// Returns whether the matcher covers kinds that objects in the cluster declare at run time. For example,
    /// CompositeResourceDefinitions declare the kinds of composites.
    pub fn is_declared(&self) -> bool {
        self.group == DECLARED && self.plural != ANY
    }

    /// Returns whether this matcher matches `request`. `declared_as` describes the object that defines the requested
    /// kind, such as a CompositeResourceDefinition, or is `None` if there is no such object.
    pub fn covers(&self, request: &Request<'_>, declared_as: Option<&Declaration>) -> bool {
        let resource = &request.resource;
        let is_named = || match declared_as {
            Some(declaration) if self.is_declared() => declaration.name == self.plural,
            _ if self.plural == ANY => true,
            _ => resource.plural == self.plural && resource.group == self.group,
        };
        self.covers_operation(request) && is_named()
    }

    /// Returns whether this matcher matches the operation and the subresource of `request`. Ignores the resource.
    pub fn covers_operation(&self, request: &Request<'_>) -> bool {
        // Most subresources are empty. Comparing empty texts can be slower than a hundred other comparisons, because
        // glibc may use AVX-512 to read at their dangling addresses, and the processor then suppresses a fault.
        let (own, other) = (self.subresource, &*request.resource.subresource);
        let is_same = own.len() == other.len() && (own.is_empty() || own == other);
        is_same && self.operations.contains(&request.operation)
    }
}
