//! Walks over an object and a patch to merge them.
//!
//! Source: `kyaml/yaml/walk` and `kyaml/yaml/merge2/merge2.go`.

use std::sync::Arc;

use super::directive::{self, Directive};
use super::element::wrong_kind;
use super::quotes::{quote, with_quotes};
use super::settled::{self, Mode, schema_of_kind};
use super::{MergeError, Problem};
use crate::kustomize::node::{Entry, Kind, Node, Origin, Tag};
use crate::kustomize::schema::{FieldSchema, Schema};

/// The nodes of the object and the patch that are merged with each other. `None` represents a missing node. A node with
/// the value null is not missing.
#[derive(Debug, Clone, Default)]
pub(super) struct Sources {
    /// The node of the object to which the patch is applied.
    pub(super) dest: Option<Node>,
    /// The node of the patch that is merged into `dest`; `None` if the patch does not have this node.
    pub(super) patch: Option<Node>,
    /// Whether `dest` and `patch` are the same node in kustomize's memory. This happens after kustomize has moved a
    /// part of the patch into the object, for example because the object did not have this part.
    pub(super) same: bool,
}

/// The side from which the result of a merge comes: the object (`Dest`) or the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Dest,
    Patch,
}

/// The result of merging a node of the object with a node of the patch.
#[derive(Debug)]
pub(super) struct Walked {
    /// The merged node; `None` if it is removed.
    pub(super) node: Option<Node>,
    pub(super) side: Side,
    /// Whether the field stays in the mapping if its merged value is `null`. If false, a field with the value `null` is
    /// removed.
    keeps_null: bool,
}

impl Walked {
    pub(super) fn removed() -> Self {
        Self { node: None, side: Side::Dest, keeps_null: false }
    }

    pub(super) fn from(side: Side, node: Option<Node>) -> Self {
        Self { node, side, keeps_null: false }
    }
}

impl Sources {
    pub(super) fn new(dest: Option<Node>, patch: Option<Node>) -> Self {
        Self { dest, patch, same: false }
    }

    /// Creates the input for a merge in which `node` is both the object's node and the patch's node. kustomize performs
    /// such a merge after it moves a node from the patch into the object, for example because the object has no such
    /// node.
    fn moved(node: Node) -> Self {
        Self { dest: Some(node.clone()), patch: Some(node), same: true }
    }

    /// Sets the YAML style of an empty mapping or list of the object to the style of the patch, such as block style or
    /// flow style (`{…}`). Does nothing if the object's node is a scalar or is not empty.
    fn take_style(&mut self) {
        if let (Some(dest), Some(patch)) = (&mut self.dest, &self.patch)
            && !dest.is_scalar()
            && dest.entries().is_empty()
            && dest.items().is_empty()
        {
            dest.style = patch.style;
        }
    }

    /// Returns the node of the object and the node of the patch. Skips a node that is missing or null.
    fn present(&self) -> impl Iterator<Item = &Node> {
        [&self.dest, &self.patch].into_iter().flatten().filter(|node| !node.is_null())
    }
}

/// A recursive merge of a patch into an object. `schema` defines by which keys the elements of lists are merged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walker<'s> {
    pub(super) schema: &'s Schema,
}

impl Walker<'_> {
    /// Merges a node of the object with a node of the patch. `schema` is the schema of the field that contains the
    /// nodes. A schema in a YAML comment of a node takes precedence over `schema`. If there is neither, uses the schema
    /// of the object's kind.
    pub(super) fn walk(self, sources: Sources, schema: Option<FieldSchema<'_>>) -> Result<Walked, MergeError> {
        let comment = sources.present().find_map(|node| Schema::fragment(node.comment.as_ref()?));
        if let Some(fragment) = comment {
            return self.walk_typed(sources, self.schema.of_comment(&fragment));
        }
        let schema = schema.or_else(|| sources.present().find_map(|node| schema_of_kind(self.schema, node)));
        self.walk_typed(sources, schema)
    }

    fn walk_typed(self, mut sources: Sources, schema: Option<FieldSchema<'_>>) -> Result<Walked, MergeError> {
        sources.take_style();
        let Some(first) = sources.present().next() else { return self.map(sources, schema) };
        let expected = super::error::kind_name(first);
        let is_same_kind = |node: &Node| super::error::kind_name(node) == expected;
        if let Some(wrong) = sources.present().find(|node| !is_same_kind(node)) {
            return Err(wrong_kind(expected, wrong).into());
        }
        match first.kind {
            Kind::Map(_) => self.map(sources, schema),
            Kind::Seq(_) if schema.is_some_and(FieldSchema::merges) => self.list(sources, schema),
            Kind::Seq(_) | Kind::Scalar(_) => Ok(replaced(sources)),
        }
    }

    fn map(self, mut sources: Sources, schema: Option<FieldSchema<'_>>) -> Result<Walked, MergeError> {
        if sources.patch.is_none()
            && let Some(dest) = &sources.dest
            && settled::is_settled(self.schema, dest, schema, Mode::Untouched)
        {
            return Ok(Walked::from(Side::Dest, sources.dest));
        }
        let side = match visit_map(&mut sources)? {
            Visited::Done(walked) => return Ok(walked),
            Visited::Merge(side) => side,
        };
        let Some(mut merged) = sources.dest.take() else { return Ok(Walked::removed()) };
        let patch = if sources.same { None } else { sources.patch.as_ref() };
        for name in names(&merged, patch) {
            self.field(&mut merged, patch, &name, schema, sources.same).map_err(|error| error.within(&name))?;
        }
        Ok(Walked::from(side, Some(merged)))
    }

    /// Merges the field `name` of two mappings. `merged` is the mapping of the object, to which the result is written,
    /// and `patch` is the mapping of the patch. `schema` is the schema of the mappings. `same` states whether both
    /// mappings are the same node in kustomize's memory.
    fn field(
        self,
        merged: &mut Node,
        patch: Option<&Node>,
        name: &str,
        schema: Option<FieldSchema<'_>>,
        same: bool,
    ) -> Result<(), MergeError> {
        let schema = schema.and_then(|schema| schema.field(name));
        let dest = merged.get(name);
        let entry = patch.and_then(|patch| patch.entries().iter().find(|entry| &*entry.key == name));
        let mode = if same { Mode::Moved } else { Mode::Untouched };
        let is_settled = |dest: &Node| settled::is_settled(self.schema, dest, schema, mode);
        if entry.is_none() && !name.is_empty() && dest.is_some_and(is_settled) {
            return Ok(());
        }
        let sources = match dest {
            Some(dest) if same => Sources::moved(dest.clone()),
            dest => Sources::new(dest.cloned(), entry.map(|entry| entry.value.clone())),
        };
        let walked = self.walk(sources, schema)?;
        if name.is_empty() {
            // for an empty name, kyaml returns the mapping itself instead of a field
            return Err(wrong_kind("a scalar", merged).into());
        }
        let is_own = same || walked.side == Side::Dest;
        set_field(merged, name, walked, entry.map_or(Tag::Str, |entry| entry.key_tag));
        if is_own && let Some(value) = merged.get_mut(name) {
            quote(value);
        }
        Ok(())
    }
}

/// The remaining work to merge a mapping after its `$patch` directive was applied.
enum Visited {
    /// The merge of the mapping is complete. Contains the result.
    Done(Walked),
    /// The fields of the mapping must still be merged. Contains the side from which the result will come: the object or
    /// the patch.
    Merge(Side),
}

/// Applies the `$patch` directive of a mapping in a patch. Returns `Visited::Done` with the result if no further merge
/// is necessary, for example after `$patch: delete`. Returns `Visited::Merge` if the fields of the mapping must be
/// merged.
///
/// Source: `Merger.VisitMap`.
fn visit_map(sources: &mut Sources) -> Result<Visited, Problem> {
    let Some(dest) = sources.dest.as_ref().filter(|dest| !dest.is_null()) else { return Ok(visit_missing(sources)) };
    let Some(patch) = &mut sources.patch else { return Ok(Visited::Merge(Side::Dest)) };
    if patch.is_null() {
        return Ok(Visited::Done(Walked::removed()));
    }
    let directive = directive::take(patch)?;
    match directive {
        Directive::Delete => return Ok(Visited::Done(Walked::removed())),
        Directive::Merge if !sources.same => return Ok(Visited::Merge(Side::Dest)),
        Directive::Merge | Directive::Replace => {}
    }
    let side = if directive == Directive::Replace { Side::Patch } else { Side::Dest };
    *sources = Sources::moved(Node { style: dest.style, tagged: dest.tagged, ..patch.clone() });
    Ok(Visited::Merge(side))
}

/// Starts the merge of a mapping that is missing or null in the object. Returns `Visited::Done` if the mapping is also
/// missing in the patch, or if the patch deletes it.
///
/// Otherwise, kustomize moves the mapping from the patch into the object. The function then returns `Visited::Merge`,
/// because kustomize still processes each field of the mapping. For example, it removes fields that are null.
fn visit_missing(sources: &mut Sources) -> Visited {
    let Some(mut patch) = sources.patch.take() else {
        // an empty value (`a:`) is removed, an explicit null (`a: null`) stays
        let node = sources.dest.take().filter(|null| null.text().is_some_and(|text| !text.is_empty()));
        return Visited::Done(Walked { keeps_null: true, ..Walked::from(Side::Dest, node) });
    };
    // an unknown directive stays
    if directive::take(&mut patch) == Ok(Directive::Delete) {
        return Visited::Done(Walked::removed());
    }
    if patch.is_null() {
        return Visited::Done(Walked::removed());
    }
    *sources = Sources::moved(patch);
    Visited::Merge(Side::Patch)
}

/// Returns the patch's node, or the object's node if the patch has none.
fn replaced(sources: Sources) -> Walked {
    match sources.patch {
        Some(patch) => Walked::from(Side::Patch, Some(patch)),
        None => Walked::from(Side::Dest, sources.dest),
    }
}

/// Returns the keys of the merged mapping and of the patch's mapping, sorted and without duplicates.
fn names(merged: &Node, patch: Option<&Node>) -> Vec<Arc<str>> {
    let entries = merged.entries().iter().chain(patch.map(Node::entries).unwrap_or_default());
    let mut names: Vec<_> = entries.map(|entry| Arc::clone(&entry.key)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Writes `walked`, the result of merging the field `name`, to the mapping `map`. Removes the field if the result has
/// no value, or if its value is a null that must not stay in the mapping. Source: `FieldSetter` in `kyaml/yaml/fns.go`.
fn set_field(map: &mut Node, name: &str, walked: Walked, key_tag: Tag) {
    let Some(value) = walked.node.filter(|node| walked.keeps_null || !node.is_null()) else {
        map.remove(name);
        return;
    };
    match map.get_mut(name) {
        Some(old) => overwrite(old, value),
        None => {
            if let Some(entries) = map.entries_mut() {
                entries.push(Entry { key_tag, ..Entry::new(name, with_quotes(value)) });
            }
        }
    }
}

/// Replaces `old` with `new`, but keeps the style and the flag `tagged` of `old`. Also keeps the origin of `old` if
/// `new` has none.
pub(super) fn overwrite(old: &mut Node, new: Node) {
    let (style, tagged) = (old.style, old.tagged);
    let origin = if new.origin == Origin::default() { old.origin } else { new.origin };
    *old = Node { style, tagged, origin, ..new };
}
