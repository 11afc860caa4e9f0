//! Sets labels and annotations, key by key, in all fields that a list of field specs selects.
//!
//! Source: kustomize's `api/filters/labels` and `api/filters/annotations`.

use std::collections::BTreeMap;

use super::field_spec::{Create, FieldError, FieldSpec, kind_of};
use super::resource::Resource;
use super::setters::{overwrite, with_style};
use crate::kustomize::node::{Entry, Node, Origin};

/// Sets the labels or annotations `pairs` in all fields of an object that the field specs `specs` select. The new
/// values get the origin `origin`.
///
/// # Errors
///
/// If a field spec selects a value that is not a mapping, or its path leads through a scalar.
pub(super) fn set(
    resource: &mut Resource,
    pairs: &BTreeMap<String, String>,
    specs: &[FieldSpec],
    origin: Origin,
) -> Result<(), FieldError> {
    for (key, value) in pairs {
        let mut setter = Setter {
            key,
            value: with_style(Node::string(value.as_str()).made_at(origin)),
            group: resource.next_group(),
            added: 0,
        };
        let mut touches_group = false;
        for spec in specs {
            spec.apply(resource, Create::Map, &mut |node| {
                touches_group |= setter.set(node, spec)?;
                Ok(())
            })?;
        }
        if touches_group {
            resource.spread();
        }
        if setter.added > 1 {
            let Setter { value, group, .. } = setter;
            resource.shared.push((group, value));
        }
    }
    Ok(())
}

struct Setter<'p> {
    key: &'p str,
    value: Node,
    /// The ID of a group of fields: all fields to which this label or annotation is added. kustomize puts the same YAML
    /// node into all these fields, so a later change of one field also changes the other fields; see [`super::shared`].
    group: u32,
    added: usize,
}

impl Setter<'_> {
    /// Sets the label or annotation in the mapping `node`. Returns true if this replaces a value that kustomize shares
    /// between several fields of the object. The caller must then change the other fields too; see [`super::shared`].
    fn set(&mut self, node: &mut Node, spec: &FieldSpec) -> Result<bool, FieldError> {
        if node.is_null() {
            return Ok(false);
        }
        if !node.is_map() {
            let path = spec.path.clone();
            return Err(FieldError::Kind { path, found: kind_of(node), expected: "a mapping" });
        }
        match node.get_mut(self.key) {
            Some(old) => {
                overwrite(old, self.value.clone());
                Ok(old.shared > 0)
            }
            None => {
                let value = Node { shared: self.group, ..self.value.clone() };
                node.entries_mut().into_iter().for_each(|entries| entries.push(Entry::new(self.key, value.clone())));
                self.added += 1;
                Ok(false)
            }
        }
    }
}
