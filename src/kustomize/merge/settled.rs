//! Detects parts of an object that a patch leaves unchanged when kustomize applies it. Portcullis skips these parts
//! when it merges the patch.
//!
//! Portcullis must check even the parts that the patch does not mention, because kustomize can change these parts too.
//! For example, kustomize removes empty fields.

use std::collections::HashSet;

use super::directive;
use super::element::{is_empty, text};
use super::quotes::needs_quotes;
use crate::kustomize::node::{Kind, Node};
use crate::kustomize::schema::{FieldSchema, Schema};

/// The reason why a patch has no new value for a part of an object. The merge can change the part nevertheless. For
/// example, kustomize removes empty fields. Which changes are possible depends on the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The patch has no value for this part of the object.
    Untouched,
    /// kustomize has moved this part from the patch into the object, for example because the object had no such part.
    /// kustomize then uses the same node as the patch and as the object, so it merges the node with itself.
    Moved,
}

/// Returns whether kustomize certainly leaves `node` unchanged when it merges a patch that has no new value for `node`.
/// `mode` says why the patch has no new value. If the merge might change `node` or fail, returns `false`.
pub(super) fn is_settled(schemas: &Schema, node: &Node, schema: Option<FieldSchema<'_>>, mode: Mode) -> bool {
    if node.comment.is_some() {
        return false;
    }
    match &node.kind {
        Kind::Scalar(_) if needs_quotes(node) => false,
        Kind::Scalar(text) => !node.is_null() || (mode == Mode::Untouched && !text.is_empty()),
        Kind::Map(_) => is_settled_map(schemas, node, schema, mode),
        Kind::Seq(items) => match schema.filter(|schema| schema.merges()) {
            Some(schema) => is_settled_list(schemas, items, schema, mode),
            None => true,
        },
    }
}

fn is_settled_map(schemas: &Schema, node: &Node, schema: Option<FieldSchema<'_>>, mode: Mode) -> bool {
    if mode == Mode::Moved && node.get(directive::KEY).is_some() {
        return false;
    }
    let schema = schema.or_else(|| schema_of_kind(schemas, node));
    let is_settled_field =
        |key: &str, value: &Node| is_settled(schemas, value, schema.and_then(|schema| schema.field(key)), mode);
    node.entries().iter().all(|entry| !entry.key.is_empty() && is_settled_field(&entry.key, &entry.value))
}

/// Returns whether the list `items` certainly stays unchanged when kustomize merges a patch. The patch has no new value
/// for this list; `mode` says why. Returns `true` only if the list has exactly one merge key, each element has a
/// different value of this key, and each element certainly stays unchanged.
fn is_settled_list(schemas: &Schema, items: &[Node], schema: FieldSchema<'_>, mode: Mode) -> bool {
    let mut keys = schema.keys();
    let (Some(key), None) = (keys.next(), keys.next()) else { return false };
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().all(|item| {
        let value = item.get(key).filter(|value| !value.is_null()).map(text).unwrap_or_default();
        let is_element = !is_empty(item) && !value.is_empty() && item.get(directive::KEY).is_none();
        is_element && seen.insert(value) && is_settled(schemas, item, schema.elements(), mode)
    })
}

/// Returns the schema of an object by its `apiVersion` and `kind`.
pub(super) fn schema_of_kind<'s>(schemas: &'s Schema, node: &Node) -> Option<FieldSchema<'s>> {
    let text = |key: &str| node.get(key).filter(|value| !value.is_null()).and_then(Node::text);
    schemas.of_kind(text("apiVersion")?, text("kind")?)
}
