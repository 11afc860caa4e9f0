//! Runs the rules on Flux Kustomizations in the build output of kustomize roots. Checks the objects of each cluster
//! separately. So if a rule looks up another Kustomization, it finds only those of the same cluster.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use futures::executor::block_on;

use super::super::Unusable;
use super::super::report::{Located, Report};
use super::trees::Trees;
use super::{Args, objects, unused};
use crate::admission::{Finding, Level, Phase};
use crate::gate::{Gate, Policy, Registry};
use crate::kustomize::checkout::{Member, Object};

/// Runs the rules on the rendered Flux Kustomizations of every cluster, and adds the findings to `report`. If the same
/// finding occurs in several clusters, adds it only once.
pub(super) fn judge(trees: &Trees, args: &Args, policy: &Policy, report: &mut Report) -> Result<(), Unusable> {
    let known = Registry::standard();
    let (mut sources, mut reported) = (trees.sources(&known, policy), HashSet::new());
    for cluster in &trees.survey.clusters {
        let registry = Registry::standard();
        let catalog = objects::catalog(&registry, args)?;
        catalog.insert_all(cluster.objects().map(|object| &object.value));
        let gate = Gate::new(registry, policy.clone(), Arc::new(catalog));
        let is_rendered = |member: &&Member| trees.survey.rendered.contains(&member.object.file);
        for Member { object, is_applied, .. } in cluster.members.iter().filter(is_rendered) {
            let Some(request) = objects::request(&object.value, None, &gate) else { continue };
            for finding in block_on(gate.decide(Phase::Validate, &request)).findings {
                let site = object.site(sources.tree(), &finding.field);
                let place = (finding.rule, site.file.clone(), site.place.start, finding.message.clone());
                if finding.level != Level::Off && reported.insert(place) {
                    let source = sources.get(&site.file);
                    let located = located(finding, object, source, site.place);
                    let is_used = *is_applied || !trees.used.is_known();
                    report.findings.push(Rc::new(if is_used { located } else { unused::lowered(located) }));
                }
            }
        }
    }
    Ok(())
}

fn located(
    finding: Finding,
    object: &Object,
    source: Arc<crate::catalog::manifests::Source>,
    place: crate::yaml::Place,
) -> Located {
    let Finding { rule, level, field, message, location: within, found, allowed, help, .. } = finding;
    let message = within.map(|within| format!("{message} ({within})")).unwrap_or(message);
    let (path, object) = (field.to_string(), super::super::report::identity(&object.value));
    Located { rule, level, source, place, path, message, found, allowed, help, object, is_unused: false }
}
