//! GD001: reports unapproved deletions by Flux and Argo CD.
//!
//! A deletion must be approved if the object is of a protected kind, or if too many objects are deleted.

use crate::admission::{FieldPath, Finding, Level};
use crate::kustomize::delivery::APPROVAL_ANNOTATION;
use crate::kustomize::identity::{ObjectId, listed};
use crate::rule::RuleInfo;

/// The rule definition of GD001.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "GD001",
    name: "unapproved-deletion",
    level: Level::Deny,
    summary: "an unapproved deletion by Flux or Argo CD of an object of a protected kind, or beyond the limit",
    page: include_str!("../../../../docs/rules/GD001.md"),
};

/// The Kustomization or Application that deletes an object.
pub(in crate::kustomize::delivery) struct Owner {
    /// The cause of the deletion, such as `revision main@sha1:1f3c of Kustomization flux-system/shop`.
    pub(in crate::kustomize::delivery) what: String,
    /// The namespace of the Kustomization or Application.
    pub(in crate::kustomize::delivery) namespace: String,
    /// The resource type for kubectl, such as `applications.argoproj.io`.
    pub(in crate::kustomize::delivery) resource: &'static str,
    /// The name of the Kustomization or Application.
    pub(in crate::kustomize::delivery) name: String,
    /// The value of the annotation that approves the deletion.
    pub(in crate::kustomize::delivery) approval: String,
}

impl Owner {
    fn help(&self) -> String {
        let Self { namespace, resource, name, approval, .. } = self;
        format!("if this is intended, approve it: {}", approval_command(resource, (namespace, name), approval))
    }
}

/// Returns the `kubectl` command with which a user approves the deletions by a Kustomization or Application. `resource`
/// is the resource type for kubectl, such as `kustomization`. `approval` is the value of the annotation.
pub(in crate::kustomize::delivery) fn approval_command(
    resource: &str,
    (namespace, name): (&str, &str),
    approval: &str,
) -> String {
    format!("kubectl -n {namespace} annotate {resource} {name} --overwrite {APPROVAL_ANNOTATION}={approval}")
}

/// Returns the finding about the deletion of an object of a protected kind. `takes` describes what is deleted together
/// with the object, such as `its pods`.
pub(in crate::kustomize::delivery) fn protected(id: &ObjectId, takes: Option<&str>, owner: &Owner) -> Finding {
    let along = takes.map(|takes| format!(", and with it {takes}")).unwrap_or_default();
    let message = format!("{} deletes {id}{along}: its kind is protected", owner.what);
    RULE.finding(FieldPath::root(), message).help(owner.help())
}

/// Returns a finding which reports that `owner`, a Flux Kustomization or an Argo CD Application, deletes too many
/// objects. `all` contains the deleted objects. `applied` is the number of objects that the owner had applied before.
///
/// The message contains the reason: the number of deleted objects exceeds `limit`, or the owner no longer renders any
/// object.
pub(in crate::kustomize::delivery) fn many(all: &[&ObjectId], applied: usize, limit: usize, owner: &Owner) -> Finding {
    let (count, what) = (all.len(), &owner.what);
    let more = if count > limit { format!(", more than {limit}") } else { ", and renders no objects".to_owned() };
    let message = format!("{what} deletes {count} of {applied} objects{more}: {}", listed(all));
    RULE.finding(FieldPath::root(), message).help(owner.help())
}

/// Returns a finding which reports that Flux deletes an object of a protected kind, and that the Kustomization of the
/// object cannot be read. `owner` is namespace and name of this Kustomization, and `why` is the error.
pub(in crate::kustomize::delivery) fn unread(id: &ObjectId, owner: &str, why: &str) -> Finding {
    let message = format!("{id} is of a protected kind, and Kustomization {owner} cannot be read: {why}");
    RULE.finding(FieldPath::root(), message).help("Flux retries the deletion at its next interval")
}

/// Returns a finding that records in the audit log that the deletion of the object `id` is approved.
pub(in crate::kustomize::delivery) fn approved(id: &ObjectId, owner: &Owner) -> Finding {
    let message = format!("the deletion of {id} by {} is approved", owner.what);
    Finding::new(RULE.id, Level::Audit, FieldPath::root(), message)
}
