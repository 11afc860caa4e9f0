//! Strategic merge patches as kustomize applies them.
//!
//! A patch is an object whose fields replace those of another one. Mappings are merged, `null` removes, lists are replaced
//! unless the [schema](crate::kustomize::schema) names keys for them, and `$patch: delete`, `replace` or `merge` says what to
//! do with a mapping or list.
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
//! # What is particular
//!
//! * The whole object is walked, not only what the patch mentions: a field that is left empty (`a:`) vanishes, and so do
//!   elements of merged lists that equal others in their keys.
//! * New elements come first. With one key, those that exist move to the front too; with several keys they stay.
//! * With several keys, absent ones equal any other, which can lose elements.
//! * `$patch: replace` at the top of a patch and in an element of a list has no effect.
//! * `$setElementOrder`, `$deleteFromPrimitiveList` and `$retainKeys` are fields like others.
//!
//! # What differs
//!
//! kustomize works on pointers, so a node at two places changes at both. Here each place has its own copy.
//!
//! # What it costs
//!
//! One walk over the object. Unchanged parts are not copied.
//!
//! Source: `kyaml/yaml/merge2` and `kyaml/yaml/walk` of kustomize.

mod directive;
mod element;
mod error;
mod keys;
mod list;
mod settled;
mod walk;

use crate::kustomize::node::Node;
use crate::kustomize::schema::Schema;

pub use error::{MergeError, Problem};

use walk::{Side, Sources, Walker};

/// Merges a patch into an object. Nothing remains if the patch deletes the object.
///
/// # Errors
///
/// If the patch does not fit the object.
pub fn merge(object: &Node, patch: &Node, schema: &Schema) -> Result<Option<Node>, MergeError> {
    let sources = Sources::new(Some(object.clone()), Some(patch.clone()));
    let merged = Walker { schema }.walk(sources, None)?;
    Ok(match merged.side {
        Side::Dest => merged.node,
        // kustomize continues with the object itself, even if it is replaced.
        Side::Patch => merged.node.map(|_| object.clone()),
    })
}
