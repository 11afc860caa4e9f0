//! Finds components with several versions in a tree, because an entry of the overwrites matches only some references.

use std::collections::BTreeMap;

use super::closure::{Closure, Step};
use crate::landscaper::component_reference::Attribute;
use crate::landscaper::substitution::Outcome;

/// Two versions of one component in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split<'c> {
    /// The name of the component.
    pub component: &'c str,
    /// A reference whose name or version the entry set.
    pub matched: &'c Step,
    /// The index of the entry in the overwrites.
    pub entry: usize,
    /// A reference to another version, which the entry does not match.
    pub other: &'c Step,
}

/// Returns the splits of a tree: for each component the first one found.
pub fn splits(closure: &Closure) -> Vec<Split<'_>> {
    let mut by_name: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
    for step in &closure.steps {
        let result = &step.substitution.result;
        let met = by_name.entry(&result.component_name).or_default();
        // One reference is enough for each version and set of entries.
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

/// Returns the indexes of the entries that changed the component name and the version of a reference.
fn setters(step: &Step) -> [Option<usize>; 2] {
    [Attribute::ComponentName, Attribute::Version]
        .map(|part| step.substitution.set_by(part).filter(|_| step.substitution.changes(part)))
}

impl Split<'_> {
    /// Describes the split in one sentence.
    pub fn sentence(&self, closure: &Closure) -> String {
        let version = |step: &Step| step.substitution.result.version.clone();
        format!(
            "component {} is in the tree as {} ({}, by overwrites[{}]) and as {} ({}, which that entry does not match)",
            self.component,
            version(self.matched),
            closure.path_to(self.matched),
            self.entry,
            version(self.other),
            closure.path_to(self.other),
        )
    }
}
