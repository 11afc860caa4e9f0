//! Strategic merge patches as kustomize applies them.
//!
//! A patch is an object whose fields replace the fields of another object. Mappings are merged. `null` removes a field.
//! A list is replaced, unless the [schema](crate::kustomize::schema) has merge keys for the list. `$patch: delete`,
//! `replace` or `merge` sets the operation on a mapping or list.
//!
//! ```
//! use portcullis::kustomize::merge::merge;
//! use portcullis::kustomize::node::printed;
//! use portcullis::kustomize::schema::Schema;
//! use portcullis::yaml::{Limits, node};
//!
//! let read = |text| node(text, 0, &Limits::default()).unwrap().unwrap();
//! let service = read("apiVersion: v1\nkind: Service\nspec: {type: NodePort, ports: [{port: 80}]}\n");
//! let patch = read("spec: {type: null, ports: [{port: 443}]}\n");
//! let merged = merge(&service, &patch, &Schema::built_in())?.unwrap();
//! assert!(merged.at_path(&["spec", "type"]).is_none());
//! assert_eq!(merged.at_path(&["spec", "ports"]).unwrap().items().len(), 2);
//! # Ok::<(), portcullis::kustomize::merge::MergeError>(())
//! ```
//!
//! # Behavior of kustomize
//!
//! * kustomize processes the whole object, not only the fields of the patch. It removes empty fields (`a:`), and
//!   duplicate elements of merged lists.
//! * New elements come first. If a list has one merge key, existing elements that are also in the patch move to the
//!   front too. If it has several merge keys, existing elements do not move.
//! * If a list has several merge keys, a missing key equals any value. So elements can be lost.
//! * `$patch: replace` has no effect at the top level of a patch or in an element of a list.
//! * `$setElementOrder`, `$deleteFromPrimitiveList` and `$retainKeys` are ordinary fields.
//!
//! # Differences
//!
//! kustomize works on pointers. If the object and the patch contain the same node in memory, a change of one also
//! changes the other. Portcullis works on separate copies.
//!
//! # Cost
//!
//! A merge walks over the object once. Unchanged parts are not copied.
//!
//! Source: `kyaml/yaml/merge2` and `kyaml/yaml/walk` of kustomize.

mod directive;
mod element;
mod error;
mod keys;
mod list;
mod quotes;
mod settled;
mod walk;

use crate::kustomize::node::Node;
use crate::kustomize::schema::Schema;

pub use error::{MergeError, Problem};

use walk::{Side, Sources, Walker};

/// Merges a patch into an object. Returns `None` if the patch deletes the object.
///
/// # Errors
///
/// If the same field has different types in the object and the patch, such as a list and a mapping, or if a `$patch`
/// directive is unknown.
pub fn merge(object: &Node, patch: &Node, schema: &Schema) -> Result<Option<Node>, MergeError> {
    let sources = Sources::new(Some(object.clone()), Some(patch.clone()));
    let merged = Walker { schema }.walk(sources, None)?;
    Ok(match merged.side {
        Side::Dest => merged.node,
        // kustomize continues with the object itself, even if it is replaced.
        Side::Patch => merged.node.map(|_| object.clone()),
    })
}
