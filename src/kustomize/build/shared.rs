//! Scalars of an object that are one for kustomize.
//!
//! A label that kustomize adds to several places of an object is one node of its tree, not several equal ones; whoever
//! changes it in one place later, a patch, a replacement, an overlay's label, changes it in all.

use super::resource::Resource;
use crate::kustomize::node::{Kind, Node};

impl Resource {
    /// A number that no group of the object has.
    pub(super) fn next_group(&mut self) -> u32 {
        self.groups += 1;
        self.groups
    }

    /// Carries a change of one scalar to the others of its group. The last changed one wins.
    pub(super) fn spread(&mut self) {
        if self.shared.is_empty() {
            return;
        }
        let mut groups = std::mem::take(&mut self.shared);
        let mut has_changed = false;
        changed(&self.node, &mut groups, &mut has_changed);
        if has_changed {
            carry(&mut self.node, &groups);
        }
        self.shared = groups;
    }
}

/// Notes the new values of groups.
fn changed(node: &Node, groups: &mut [(u32, Node)], has_changed: &mut bool) {
    match &node.kind {
        Kind::Map(entries) => entries.iter().for_each(|entry| changed(&entry.value, groups, has_changed)),
        Kind::Seq(items) => items.iter().for_each(|item| changed(item, groups, has_changed)),
        Kind::Scalar(_) if node.shared == 0 => {}
        Kind::Scalar(_) => {
            let group = groups.iter_mut().find(|(group, _)| *group == node.shared);
            if let Some((_, value)) = group.filter(|(_, value)| differs(value, node)) {
                *value = node.clone();
                *has_changed = true;
            }
        }
    }
}

fn carry(node: &mut Node, groups: &[(u32, Node)]) {
    if !has_group(node) {
        return;
    }
    if let Some(entries) = node.entries_mut() {
        entries.iter_mut().for_each(|entry| carry(&mut entry.value, groups));
    } else if let Some(items) = node.items_mut() {
        items.iter_mut().for_each(|item| carry(item, groups));
    } else if let Some((_, value)) = groups.iter().find(|(group, _)| *group == node.shared) {
        node.assign(value.clone());
    }
}

fn has_group(node: &Node) -> bool {
    match &node.kind {
        Kind::Map(entries) => entries.iter().any(|entry| has_group(&entry.value)),
        Kind::Seq(items) => items.iter().any(has_group),
        Kind::Scalar(_) => node.shared > 0,
    }
}

fn differs(a: &Node, b: &Node) -> bool {
    a.text() != b.text() || a.tag != b.tag
}
