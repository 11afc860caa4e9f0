//! How what is found in a tree is told to whoever applies an object.

use super::source::Artifact;
use super::{Content, Judged, Root, kz041};
use crate::admission::{FieldPath, Finding};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rules::kz040;
use crate::yaml::Place;

/// Findings about the object that names `root`.
pub fn told(root: &Root, judged: &Judged) -> Vec<Finding> {
    let mut findings: Vec<_> = judged.findings.iter().map(|finding| one(root, finding)).collect();
    if judged.left_out > 0 {
        let text = format!("{} more findings are not shown", judged.left_out);
        findings.push(one(root, &kz040::found(Site::of_file(super::super::tree::TreePath::root()), &text)));
    }
    findings
}

fn one(root: &Root, finding: &TreeFinding) -> Finding {
    let TreeFinding { rule, level, site, message, found, allowed, help, .. } = finding.clone();
    let is_of_object = is_of_object(&site.field);
    let message = match (is_of_object || site.field.is_root(), root.of.is_some()) {
        (true, false) => message,
        _ => format!("{}: {message}", site.field),
    };
    let message = match &root.of {
        Some(whose) => format!("{whose}: {message}"),
        None => message,
    };
    let field = if is_of_object && root.of.is_none() { site.field.clone() } else { root.field.clone() };
    Finding { found, allowed, help, place: Some(place(&site, root)), ..Finding::new(rule, level, field, message) }
}

/// Whether a field is one of the object that points at the tree, rather than of a file in it.
fn is_of_object(field: &FieldPath) -> bool {
    field.to_string().starts_with("spec.components[")
}

/// `apps/kustomization.yaml:6:5 of main@sha1:3f2c…`
fn place(site: &Site, root: &Root) -> String {
    let Place { line, column, .. } = site.place;
    let revision = match &root.content {
        Content::Artifact(Artifact { revision, digest, .. }) if revision.is_empty() => format!(" of {digest}"),
        Content::Artifact(Artifact { revision, .. }) => format!(" of {revision}"),
        Content::Carried(_) => String::new(),
    };
    format!("{}:{line}:{column}{revision}", site.file)
}

/// A finding that a tree could not be judged, and why; `others` roots of the object share that.
pub fn not_judged(root: &Root, why: &str, others: usize) -> Finding {
    let also = if others == 0 { String::new() } else { format!(" (and {others} more)") };
    let whose = root.of.as_ref().map(|of| format!("{of}{also}: ")).unwrap_or_default();
    match &root.content {
        Content::Artifact(Artifact { revision, .. }) => {
            kz041::found(root.field.clone(), &format!("{whose}{revision} is not judged: {why}"))
        }
        Content::Carried(_) => kz041::found(root.field.clone(), &format!("{whose}the tree is not judged: {why}")),
    }
}
