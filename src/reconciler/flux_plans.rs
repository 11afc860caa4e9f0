//! Creates the message of an Event about a new revision for a Flux Kustomization. The message describes which objects
//! Flux will delete, which objects move to another Kustomization, and which objects another Kustomization also applies.

use std::sync::Arc;
use std::time::Instant;

use futures::future::join_all;

use super::{Failure, Tools};
use crate::admission::Finding;
use crate::catalog::{Reference, Stored};
use crate::kustomize::delivery::{
    DeletionLimits, Judge, Judged, Outcome, Plan, Root, deployed, is_planned, tree_findings, with_objects,
};
use crate::kustomize::identity::ObjectId;

/// The settings for findings about objects that a new revision deletes, moves or shares with other Kustomizations. They
/// determine which of these findings are reported.
#[derive(Debug, Clone, Default)]
pub struct PlanSettings {
    /// The limits beyond which deletions are reported as findings.
    pub limits: DeletionLimits,
    /// Ids of the rules whose level is below `warn`. Findings of these rules are not reported.
    pub silent: Vec<&'static str>,
}

/// The service that checks kustomize trees (`trees`), with the parameters of a check: the hosts from which archives may
/// be fetched, and the deadline (`last`).
pub(super) struct Judging<'a> {
    pub(super) trees: &'a dyn Judge,
    pub(super) hosts: &'a [String],
    pub(super) last: Instant,
}

/// Returns the Flux Kustomization `object`, and the message of an Event about it. The message names the objects that
/// the new revision deletes, moves, or shares with other Kustomizations. `root` is the folder that Flux builds for the
/// Kustomization, and `judged` is the result of checking it. `None` if there is nothing to report.
///
/// # Errors
///
/// Fails if the Kustomization cannot be read.
pub(super) async fn note(
    object: &Reference,
    (root, judged): (&Root, &Judged),
    judging: &Judging<'_>,
    settings: &PlanSettings,
    tools: &Tools,
) -> Result<Option<(Arc<Stored>, String)>, Failure> {
    let (Some(artifact), Some(rendered)) = (root.artifact(), &judged.rendered) else { return Ok(None) };
    let reference = Reference::new(&deployed::APPLIED, &object.namespace, &object.name);
    let applied = tools.catalog.read_live(&reference).await.map_err(Failure::Unknown)?;
    let Some(applied) = applied else { return Ok(None) };
    let siblings = deployed::siblings(&tools.catalog, applied.value(), artifact);
    let outcomes = siblings.iter().map(|sibling| judging.trees.judge(&sibling.root, judging.hosts, judging.last));
    let known = siblings.iter().cloned().zip(join_all(outcomes).await).filter_map(|(sibling, outcome)| match outcome {
        Outcome::Judged(judged) => Some((sibling, judged)),
        Outcome::Unknown(_) | Outcome::Unasked => None,
    });
    let known: Vec<_> = known.collect();
    let plan = Plan {
        kustomization: applied.value(),
        inventory: ObjectId::of_inventory(applied.value()),
        rendered,
        siblings: with_objects(&known),
        revision: artifact.short_revision(),
        limits: settings.limits.clone(),
    };
    let of_tree = tree_findings(root, judged).into_iter().filter(is_planned);
    let findings = plan.findings().into_iter().chain(of_tree);
    let findings: Vec<_> = findings.filter(|finding| !settings.silent.contains(&finding.rule)).collect();
    Ok(text(&findings).map(|note| (applied, note)))
}

/// Returns the message of an Event. It contains the first finding, and the number of further findings. `None` if there
/// are no findings.
fn text(findings: &[Finding]) -> Option<String> {
    let first = findings.first()?;
    let (message, more) = (&first.message, findings.len() - 1);
    let more = if more == 0 { String::new() } else { format!("\nand {more} more") };
    Some(format!("{} {message}{more}", first.rule))
}
