//! Finds components that have several versions in a component tree, because an entry of a ComponentVersionOverwrites
//! matches only some references to the component.

use std::collections::BTreeMap;

use super::closure::{Closure, Step};
use crate::landscaper::component_reference::Attribute;
use crate::landscaper::substitution::Outcome;

/// A component that has two versions in a component tree, because an entry of a ComponentVersionOverwrites object
/// matches only some references to the component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split<'c> {
    /// The name of the component that has several versions in the tree.
    pub component: &'c str,
    /// A component reference to which an entry of the ComponentVersionOverwrites applies. The entry replaces the
    /// component name or the version of the reference.
    pub matched: &'c Step,
    /// The index of the `overwrites` entry that matches the reference `matched`, but not the reference `other`. This is
    /// why the component has two versions in the component tree.
    pub entry: usize,
    /// Another reference to the component. It leads to a different version than the reference `matched`, because the
    /// `overwrites` entry with the index `entry` does not match it.
    pub other: &'c Step,
}

/// Finds components that have two versions in a component tree because of overwrites. This happens if an entry of a
/// ComponentVersionOverwrites object changes one reference to a component, but does not match another reference to it.
/// The result contains one such pair of references for each component.
pub fn splits(closure: &Closure) -> Vec<Split<'_>> {
    let mut by_name: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
    for step in &closure.steps {
        let result = &step.substitution.result;
        let met = by_name.entry(&result.component_name).or_default();
        // Of several references to the same version that the same entries changed, one is enough.
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

/// Returns the index of the ComponentVersionOverwrites entry that changed the component name of a reference, and the
/// index of the entry that changed its version. Each index is `None` if no entry changed the value.
fn setters(step: &Step) -> [Option<usize>; 2] {
    [Attribute::ComponentName, Attribute::Version]
        .map(|part| step.substitution.set_by(part).filter(|_| step.substitution.changes(part)))
}

impl Split<'_> {
    /// Returns a sentence that explains to users why the component has two versions in the component tree. It contains
    /// the two versions, the path to each version in the tree, and the index of the `overwrites` entry that causes the
    /// difference.
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
