//! Converts findings in kustomization files to findings about a Kubernetes object, such as a Flux Kustomization. The
//! object contains these files or refers to them.

use super::rules::kz041;
use super::source::Artifact;
use super::{Content, Judged, Root};
use crate::admission::{FieldPath, Finding, Level};
use crate::kustomize::finding::{InTree, Site, TreeFinding};
use crate::kustomize::rules::{kz004, kz040, kz064};
use crate::kustomize::tree::TreePath;

/// Converts the findings in `judged`, the result of checking the folder `root`, to findings about the object that
/// refers to this folder or contains it.
///
/// Adds a finding with the number of omitted findings, if there were too many to list in `judged`. Adds a finding for
/// the audit log if findings in the folder would deny the request, but are only warnings for the reason in `root.late`.
pub fn tree_findings(root: &Root, judged: &Judged) -> Vec<Finding> {
    let mut findings: Vec<_> = judged.findings.iter().map(|finding| one(root, finding)).collect();
    if judged.left_out > 0 {
        let text = format!("{} more findings are not shown", judged.left_out);
        findings.push(one(root, &kz040::found(Site::of_file(TreePath::root()), &text)));
    }
    let is_capped = |finding: &TreeFinding| finding.level > Level::Warn;
    if let Some(why) = root.late.filter(|_| judged.findings.iter().any(is_capped)) {
        findings.push(kz041::capped(root.field.clone(), why));
    }
    findings
}

/// Returns whether the Event about a new revision may contain `finding`, a finding in a kustomize tree. This Event
/// describes the effects of the revision on the cluster. Of the findings in the tree, it contains only those of KZ064,
/// which reports that `targetNamespace` of a Flux Kustomization renames a Namespace.
pub fn is_planned(finding: &Finding) -> bool {
    finding.rule == kz064::RULE.id
}

fn one(root: &Root, finding: &TreeFinding) -> Finding {
    let level = finding.level.min(max_level(root, finding));
    let (own_field, message) = (&finding.field, finding.message.clone());
    let is_of_object = is_of_object(own_field) || kz004::is_absent_root(finding);
    let own = root.of.is_none();
    let message = match (is_of_object, is_of_object && own || own_field.is_root()) {
        (true, true) => format!("{message}{}", revision(root)),
        (true, false) => format!("{own_field}: {message}{}", revision(root)),
        (false, true) => message,
        (false, false) => format!("{own_field}: {message}"),
    };
    let message = match &root.of {
        Some(whose) => format!("{whose}: {message}"),
        None => message,
    };
    let keeps_field = is_of_object && own && !own_field.is_root();
    let field = if keeps_field { own_field.clone() } else { root.field.clone() };
    let location = (!is_of_object).then(|| position(&finding.location, root));
    Finding { level, field, message, ..finding.clone().with_location(location) }
}

/// Returns the maximum level of a finding. This is `warn` if a later revision may fix the reported error, otherwise
/// `deny`.
fn max_level(root: &Root, finding: &TreeFinding) -> Level {
    let names_object = is_of_object(&finding.field);
    let is_missing = kz004::is_absent_root(finding) || names_object && finding.rule == kz004::RULE.id;
    let may_change = root.follows_revision && names_object;
    let is_fetched = root.artifact().is_some();
    if root.late.is_some() || is_fetched && (is_missing || may_change) { Level::Warn } else { Level::Deny }
}

/// Returns whether `field` is a field of the Kubernetes object that refers to the tree, such as `spec.path` of a Flux
/// Kustomization. Returns `false` for fields of files in the tree.
fn is_of_object(field: &FieldPath) -> bool {
    field.to_string().starts_with("spec.")
}

/// Returns a text such as ` (revision main@sha1:3f2c…)` for the end of a message. It contains the revision of the
/// artifact with the files of `root`. The text is empty if the files are stored in an object such as a ConfigMap,
/// because they then have no revision.
///
/// Messages about a field of an object need the revision, because another revision may not have the error.
fn revision(root: &Root) -> String {
    match &root.content {
        Content::Artifact(artifact) => format!(" (revision {})", artifact.short_revision()),
        Content::Carried(_) => String::new(),
    }
}

/// Returns the position of a finding in a file of the tree, as text for a message: `apps/kustomization.yaml:6:5 of
/// main@sha1:3f2c…`.
fn position(location: &InTree, root: &Root) -> String {
    let revision = match &root.content {
        Content::Artifact(Artifact { revision, digest, .. }) if revision.is_empty() => format!(" of {digest}"),
        Content::Artifact(Artifact { revision, .. }) => format!(" of {revision}"),
        Content::Carried(_) => String::new(),
    };
    format!("{location}{revision}")
}

/// Returns a finding which reports that a tree is not checked. `why` is the reason. `others` is the number of other
/// roots that are not checked for the same reason.
pub fn not_judged(root: &Root, why: &str, others: usize) -> Finding {
    let also = if others == 0 { String::new() } else { format!(" (and {others} more)") };
    let whose = root.of.as_ref().map(|of| format!("{of}{also}: ")).unwrap_or_default();
    match &root.content {
        Content::Artifact(Artifact { revision, .. }) => {
            kz041::found(root.field.clone(), &format!("{whose}{revision} is not checked: {why}"))
        }
        Content::Carried(_) => kz041::found(root.field.clone(), &format!("{whose}the tree is not checked: {why}")),
    }
}
