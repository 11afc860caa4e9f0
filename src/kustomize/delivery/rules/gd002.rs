//! GD002: a new revision of a Flux source that deletes too many objects, or objects of a protected kind, without an
//! approval.

use super::gd001::approval_command;
use crate::admission::{FieldPath, Finding, Level};
use crate::kustomize::delivery::{Artifact, RootOwner, limits};
use crate::kustomize::identity::{ObjectId, listed};
use crate::rule::RuleInfo;

/// The rule definition of GD002.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "GD002",
    name: "unapproved-revision",
    level: Level::Deny,
    summary: "a new revision of a Flux source with unapproved deletions of protected kinds, or beyond the limit",
    page: include_str!("../../../../docs/rules/GD002.md"),
};

/// The deletions that a new revision of a Flux source causes for one Kustomization, if they need an approval. There are
/// three reasons for an approval: an object of a protected kind is deleted, there are too many deletions, or the
/// revision renders no objects.
pub(in crate::kustomize::delivery) struct Excess<'a> {
    /// The Kustomization whose objects are deleted.
    pub(in crate::kustomize::delivery) owner: &'a RootOwner,
    /// The new artifact of the Kustomization's source.
    pub(in crate::kustomize::delivery) artifact: &'a Artifact,
    /// All objects that the revision no longer renders.
    pub(in crate::kustomize::delivery) deleted: Vec<&'a ObjectId>,
    /// The objects in `deleted` whose kind is protected.
    pub(in crate::kustomize::delivery) protected: Vec<&'a ObjectId>,
    /// The number of objects that the Kustomization applied.
    pub(in crate::kustomize::delivery) applied: usize,
    /// The limit on deletions without an approval. `None` if the number of objects in `deleted` does not exceed it.
    pub(in crate::kustomize::delivery) limit: Option<usize>,
    /// Whether the revision renders no object at all.
    pub(in crate::kustomize::delivery) is_empty: bool,
}

impl Excess<'_> {
    /// Returns the message of the finding, such as `Kustomization a/b: revision main@sha1:1 would delete …`.
    fn message(&self) -> String {
        let Self { owner, artifact, .. } = self;
        let reasons: Vec<_> = self.of_protected().into_iter().chain(self.of_number()).collect();
        format!("{owner}: revision {} would delete {}", artifact.short_revision(), reasons.join("; in all, "))
    }

    fn of_protected(&self) -> Option<String> {
        let first = self.protected.first()?;
        let along = match limits::takes_along(first) {
            Some(takes) if self.protected.len() == 1 => format!(", and with it {takes}"),
            _ => String::new(),
        };
        let kinds = if self.protected.len() == 1 { "its kind is protected" } else { "their kinds are protected" };
        Some(format!("{}{along}: {kinds}", listed(&self.protected)))
    }

    fn of_number(&self) -> Option<String> {
        let (count, applied) = (self.deleted.len(), self.applied);
        let beyond = match self.limit {
            Some(limit) => format!(", more than {limit}"),
            None if self.is_empty => ", and renders no objects".to_owned(),
            None => return None,
        };
        Some(format!("{count} of {applied} objects{beyond}: {}", listed(&self.deleted)))
    }
}

/// Returns the finding about deletions that nobody approved.
pub(in crate::kustomize::delivery) fn found(excess: &Excess<'_>) -> Finding {
    let RootOwner { namespace, name } = excess.owner;
    let command = approval_command("kustomization", (namespace, name), &excess.artifact.revision);
    let help = format!("if this is intended, approve it: {command}");
    RULE.finding(field(), excess.message()).help(help)
}

/// Returns a finding that records in the audit log that a user approved the deletions.
pub(in crate::kustomize::delivery) fn approved(excess: &Excess<'_>) -> Finding {
    recorded(format!("{}; this is approved", excess.message()))
}

/// Returns a finding which reports that Portcullis cannot determine which objects a new revision deletes. `owner` is
/// the name of the Kustomization that uses the revision, and `why` is the reason. The finding has the level `audit`, so
/// the user does not see it.
pub(in crate::kustomize::delivery) fn unknown(owner: &str, artifact: &Artifact, why: &str) -> Finding {
    recorded(format!("it is unknown which objects revision {} deletes for {owner}: {why}", artifact.short_revision()))
}

fn recorded(message: String) -> Finding {
    Finding::new(RULE.id, Level::Audit, field(), message)
}

fn field() -> FieldPath {
    FieldPath::of(["status", "artifact"])
}
