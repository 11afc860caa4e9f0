//! Components that a tree holds in different versions because an entry of the overwrites matches only some references.

use std::collections::BTreeMap;

use super::closure::{Closure, Step};
use crate::landscaper::component_reference::Attribute;
use crate::landscaper::overwrites::substitution::Outcome;

/// Two versions of one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split<'c> {
    /// The component.
    pub component: &'c str,
    /// A reference that an entry gave this name or version.
    pub matched: &'c Step,
    /// The entry.
    pub entry: usize,
    /// A reference to another version, for which the entry is not.
    pub other: &'c Step,
}

/// The splits of a tree: one for each component, the first that is met.
pub fn splits(closure: &Closure) -> Vec<Split<'_>> {
    let mut by_name: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
    for step in &closure.steps {
        let result = &step.substitution.result;
        let met = by_name.entry(&result.component_name).or_default();
        // One reference stands for all that lead to the same version by the same entries.
        if !met
            .iter()
            .any(|other| other.substitution.result.version == result.version && setters(other) == setters(step))
        {
            met.push(step);
        }
    }
    by_name.into_iter().filter_map(|(component, met)| split(component, &met)).collect()
}

fn split<'c>(component: &'c str, met: &[&'c Step]) -> Option<Split<'c>> {
    met.iter().find_map(|matched| {
        setters(matched).into_iter().flatten().find_map(|entry| {
            let is_other = |other: &&&Step| {
                other.substitution.result.version != matched.substitution.result.version
                    && matches!(other.substitution.trace.get(entry), Some(Outcome::NotMatched { .. }))
            };
            met.iter().find(is_other).map(|other| Split { component, matched, entry, other })
        })
    })
}

/// The entries that made a reference one to this component and version, where they changed it.
fn setters(step: &Step) -> [Option<usize>; 2] {
    [Attribute::ComponentName, Attribute::Version]
        .map(|part| step.substitution.set_by(part).filter(|_| step.substitution.changes(part)))
}

impl Split<'_> {
    /// What is split, in one sentence.
    pub fn sentence(&self, closure: &Closure) -> String {
        let version = |step: &Step| step.substitution.result.version.clone();
        format!(
            "component {} is in the tree as {} ({}, by overwrites[{}]) and as {} ({}, which that entry does not match)",
            self.component,
            version(self.matched),
            closure.way(self.matched),
            self.entry,
            version(self.other),
            closure.way(self.other),
        )
    }
}
