//! Scalars that kustomize shares between several fields of an object.
//!
//! kustomize puts one YAML node into several fields of an object, for example when it adds a label. If a later step,
//! such as a patch or a replacement, changes one of these fields, all of them change.
//!
//! Portcullis has a separate node for each field. The scalars that are one node in kustomize form a group: they have
//! the same group ID ([`Node::shared`]). If one scalar of a group changes, Portcullis copies the new value to the
//! others.

use super::resource::Resource;
use crate::kustomize::node::{Kind, Node};

impl Resource {
    /// Creates a group of fields that share one value, and returns its ID. For example, kustomize puts one YAML node
    /// into all fields to which it adds the same label. If one of these fields changes, the others change too.
    pub(super) fn next_group(&mut self) -> u32 {
        self.groups += 1;
        self.groups
    }

    /// Copies the new value of a changed field to all fields that share its YAML node in kustomize. kustomize puts one
    /// YAML node into several fields, for example when it adds a label, so a change of one field changes the others. If
    /// several of these fields have changed, all of them get the new value of the last changed field.
    pub(super) fn spread(&mut self) {
        if self.shared.is_empty() {
            return;
        }
        let mut new = Vec::new();
        changed(&self.node, &self.shared, &mut new);
        if !new.is_empty() {
            carry(&mut self.node, &new);
        }
        for (group, value) in new {
            if let Some((_, old)) = self.shared.iter_mut().find(|(own, _)| *own == group) {
                *old = value;
            }
        }
    }
}

/// Finds the groups of fields in `node` whose value has changed, and adds the ID and the new value of each to `new`.
///
/// The fields of a group had the same value before, because kustomize puts one YAML node into all of them. `groups`
/// contains the ID and this old value for each group. A group has changed if any of its fields has another value now.
/// If several of its fields have changed, the value of the last one counts.
fn changed(node: &Node, groups: &[(u32, Node)], new: &mut Vec<(u32, Node)>) {
    match &node.kind {
        Kind::Map(entries) => {
            // A merge sets the fields of a mapping in the order of their names.
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by(|a, b| a.key.cmp(&b.key));
            entries.into_iter().for_each(|entry| changed(&entry.value, groups, new));
        }
        Kind::Seq(items) => items.iter().for_each(|item| changed(item, groups, new)),
        Kind::Scalar(_) if node.shared == 0 => {}
        Kind::Scalar(_) => {
            let is_other = groups.iter().any(|(group, value)| *group == node.shared && differs(value, node));
            if is_other {
                new.retain(|(group, _)| *group != node.shared);
                new.push((node.shared, node.clone()));
            }
        }
    }
}

/// Puts the fields of `new` into the same groups as in `old`. `old` is an object before a patch was merged into it, and
/// `new` is the result of the merge. This function is needed because the merge does not keep all groups.
///
/// The fields of a group share one value. For example, if kustomize adds a label to several fields, these fields are a
/// group: if a later step changes one of them, the others change too.
pub(super) fn keep(new: &mut Node, old: &Node) {
    if !has_group(old) {
        return;
    }
    if new.is_scalar() && old.is_scalar() {
        new.shared = old.shared;
        return;
    }
    for entry in new.entries_mut().into_iter().flatten() {
        if let Some(old) = old.get(&entry.key) {
            keep(&mut entry.value, old);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::node::Entry;

    #[test]
    fn a_change_of_one_scalar_changes_its_group_wherever_it_stands() {
        for changed in 0..3 {
            let label = |text: &str| Node { shared: 1, ..Node::string(text) };
            let entries = (0..3).map(|at| Entry::new(at.to_string(), label(if at == changed { "new" } else { "old" })));
            let mut resource = Resource::new(Node::map(entries.collect()));
            resource.shared.push((1, Node::string("old")));
            resource.spread();
            let texts: Vec<_> = resource.node.entries().iter().filter_map(|entry| entry.value.text()).collect();
            assert_eq!(texts, ["new"; 3]);
        }
    }

    #[test]
    fn of_several_changes_the_last_field_by_name_wins() {
        let label = |text: &str| Node { shared: 1, ..Node::string(text) };
        let entries =
            vec![Entry::new("template".to_owned(), label("b")), Entry::new("selector".to_owned(), label("a"))];
        let mut resource = Resource::new(Node::map(entries));
        resource.shared.push((1, Node::string("old")));
        resource.spread();
        let texts: Vec<_> = resource.node.entries().iter().filter_map(|entry| entry.value.text()).collect();
        assert_eq!(texts, ["b"; 2]);
    }
}
