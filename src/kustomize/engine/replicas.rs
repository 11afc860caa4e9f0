//! The transformer for the field `replicas` of a kustomization, which sets replica counts.
//!
//! Source: kustomize's `ReplicaCountTransformer` and `api/filters/replicacount`.

use super::field_spec::{Create, FieldError, FieldSpec, kind_of};
use super::resmap::ResMap;
use super::setters::overwrite;
use crate::kustomize::file::Replica;
use crate::kustomize::node::{Kind, Node, Origin, Tag};

/// Sets the replica count of all objects with the name in `replica`, an entry of the field `replicas`. `specs` contains
/// the kinds of objects that have a replica count, and the path of its field. Returns `false` if no object of these
/// kinds has the name.
///
/// # Errors
///
/// If the field for the replica count is not a scalar, or its path leads through a scalar.
pub(super) fn set(
    map: &mut ResMap,
    replica: &Replica,
    specs: &[FieldSpec],
    origin: Origin,
) -> Result<bool, FieldError> {
    let mut has_found = false;
    for spec in specs {
        let found = map.matching_any_id(|id| id.name == replica.name && id.gvk.is_selected(&spec.gvk()));
        has_found |= !found.is_empty();
        for at in found {
            let Some(resource) = map.resources_mut().get_mut(at) else { continue };
            spec.apply(resource, Create::Scalar(Tag::Int), &mut |node| {
                if !node.is_scalar() {
                    let path = spec.path.clone();
                    return Err(FieldError::Kind { path, found: kind_of(node), expected: "a scalar" });
                }
                let count = Kind::Scalar(replica.count.to_string().into());
                overwrite(node, Node::new(count, Tag::Int).made_at(origin));
                Ok(())
            })?;
        }
    }
    Ok(has_found)
}
