//! Computes the effect of overwrites on an Installation, from its Context and the overwrites that the Context names.

use std::sync::Arc;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, ReplaceOperation, TestOperation};
use serde_json::Value;

use crate::admission::Metadata;
use crate::catalog::{self, View};
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::components::descriptor::Reference;
use crate::landscaper::components::inline::Inline;
use crate::landscaper::components::patch;
use crate::landscaper::context::Context;
use crate::landscaper::installation::{self, Location};
use crate::landscaper::kinds::{CONTEXTS, OVERWRITES};
use crate::landscaper::substitution::{self, Entry, Substitution};

/// A ComponentVersionOverwrites object that a Context names.
#[derive(Debug, Clone)]
pub struct Overwrites {
    /// `metadata.name` of the ComponentVersionOverwrites object.
    pub name: String,
    /// `metadata.generation` of the ComponentVersionOverwrites object, if the API server has set one.
    pub generation: Option<i64>,
    /// The entries of the object's list `overwrites`, in order.
    pub entries: Arc<Vec<Entry>>,
}

/// The result of looking up and applying the overwrites of an Installation.
#[derive(Debug, Clone)]
pub enum Evaluation {
    /// The Installation has no component descriptor, so there is nothing to overwrite.
    NoComponent,
    /// The Context or the overwrites are not known, for example because the catalog is still loading.
    Unknown,
    /// The Context of the Installation does not exist. Contains the name of the Context.
    NoContext(String),
    /// The Context of the Installation names no ComponentVersionOverwrites object. Contains the name of the Context.
    NoOverwrites(String),
    /// The Context names a ComponentVersionOverwrites object that does not exist.
    MissingOverwrites {
        /// The name of the Installation's Context.
        context: String,
        /// The name of the missing ComponentVersionOverwrites object.
        overwrites: String,
    },
    /// The overwrites exist and were applied to the Installation's component reference. They may still change nothing.
    Overwritten(Box<Effect>),
}

/// The changes that overwrites make to the component references of one Installation: its own component reference, and
/// those in its inline component descriptors. Also contains the data from which the changes were computed.
#[derive(Debug, Clone)]
pub struct Effect {
    /// The name of the Installation's Context.
    pub context: String,
    /// The overwrites that the Context names.
    pub overwrites: Overwrites,
    /// The field of the Installation that contains the component reference: `spec.componentDescriptor.ref` or
    /// `spec.componentDescriptor.inline`.
    pub location: Location,
    /// Whether the Installation's component reference itself contains a repository context. If not, the repository
    /// context comes from the Installation's Context object.
    pub own_repository_context: bool,
    /// The Installation's component reference before and after the overwrites are applied to it.
    pub substitution: Substitution,
    /// The component references in the Installation's inline component descriptors, but only those that the overwrites
    /// change.
    pub references: Vec<InlineReference>,
}

/// A component reference in an inline component descriptor, and the change that the overwrites make to it.
#[derive(Debug, Clone)]
pub struct InlineReference {
    /// JSON pointer to the component reference, such as
    /// `/spec/componentDescriptor/inline/component/componentReferences/0`. It begins at the top of the Installation.
    pub pointer: String,
    /// The component reference as it is written in the inline component descriptor, before the overwrites are applied.
    /// It also contains the digest and the number of labels.
    pub reference: Reference,
    /// The component reference in the inline component descriptor, before and after the overwrites are applied to it.
    pub substitution: Substitution,
}

/// Maximum size of a patch in an annotation, in bytes. Kubernetes limits all annotations of an object together to 256
/// KiB.
const MAX_PATCH: usize = 100 * 1024;

/// Looks up the overwrites that an Installation's Context names, and applies them to the Installation's component
/// reference.
pub fn of(installation: &Value, namespace: &str, view: &View<'_>) -> Evaluation {
    let Some((location, reference)) = installation::component_reference(installation, &mut Vec::new()) else {
        return Evaluation::NoComponent;
    };
    let context_name = installation::context_name(installation);
    let Some(stored) = view.find(&CONTEXTS, namespace, context_name) else {
        let missing = Evaluation::NoContext(context_name.to_owned());
        return if view.is_missing(&CONTEXTS, namespace, context_name) { missing } else { Evaluation::Unknown };
    };
    let context = stored.view(Context::of);
    let Some(name) = &context.overwrites else { return Evaluation::NoOverwrites(context_name.to_owned()) };
    let Some(overwrites) = find(namespace, name, view) else {
        let missing = Evaluation::MissingOverwrites { context: context_name.to_owned(), overwrites: name.clone() };
        return if view.is_missing(&OVERWRITES, namespace, name) { missing } else { Evaluation::Unknown };
    };
    let own_repository_context = reference.repository_context.is_some();
    let original = reference.or_repository_context(context.repository_context.as_ref());
    let substitution = Substitution::of(&overwrites.entries, original);
    let references = match location {
        Location::Ref => Vec::new(),
        Location::Inline { .. } => inline_references(installation, &overwrites.entries, &substitution.result),
    };
    Evaluation::Overwritten(Box::new(Effect {
        context: context_name.to_owned(),
        overwrites,
        location,
        own_repository_context,
        substitution,
        references,
    }))
}

/// Applies the overwrites in `entries` to each component reference in an Installation's inline component descriptors,
/// and returns the references that change. `root` is the Installation's own component reference, with the overwrites
/// already applied. References in a descriptor have no repository context, so each of them gets that of `root`.
fn inline_references(installation: &Value, entries: &[Entry], root: &ComponentReference) -> Vec<InlineReference> {
    let Some(Ok(inline)) = Inline::of(installation) else { return Vec::new() };
    let mut found = Vec::new();
    for placed in &inline.descriptors {
        for (at, reference) in placed.descriptor.references.iter().enumerate() {
            let original = ComponentReference {
                repository_context: root.repository_context.clone(),
                component_name: reference.component_name.clone(),
                version: reference.version.clone(),
            };
            let substitution = Substitution::of(entries, original);
            if substitution.changed().next().is_some() {
                let pointer = format!("{}{}", placed.pointer, placed.descriptor.pointer(at));
                found.push(InlineReference { pointer, reference: reference.clone(), substitution });
            }
        }
    }
    found
}

/// Returns references to objects that must be read from the API server before [`of`] can apply overwrites to an
/// Installation. The list contains the Context of the Installation, or the ComponentVersionOverwrites object that the
/// Context names. The list is empty if the catalog, a cache of objects, already contains all required objects.
pub fn live_reads(installation: &Value, namespace: &str, view: &View<'_>) -> Vec<catalog::Reference> {
    let name = installation::context_name(installation);
    let Some(stored) = view.find(&CONTEXTS, namespace, name) else {
        return view.unless_found(&CONTEXTS, namespace, name).into_iter().collect();
    };
    let overwrites = stored.view(Context::of).overwrites;
    overwrites.and_then(|name| view.unless_found(&OVERWRITES, namespace, &name)).into_iter().collect()
}

/// Finds the ComponentVersionOverwrites object `name` in the catalog; `None` if the catalog does not contain it.
pub fn find(namespace: &str, name: &str, view: &View<'_>) -> Option<Overwrites> {
    let stored = view.find(&OVERWRITES, namespace, name)?;
    Some(Overwrites {
        name: name.to_owned(),
        generation: Metadata::of(stored.value()).generation(),
        entries: stored.view(entries),
    })
}

/// Returns the entries of a ComponentVersionOverwrites object. Values that Landscaper cannot decode count as
/// unspecified.
pub fn entries(object: &Value) -> Arc<Vec<Entry>> {
    Arc::new(substitution::read_entries(object, &mut Vec::new()))
}

impl Effect {
    /// Reports whether the overwrites change any component reference in the Installation: its own component reference,
    /// or a reference in its inline component descriptors.
    pub fn changes_anything(&self) -> bool {
        self.substitution.changed().next().is_some() || !self.references.is_empty()
    }

    /// Returns an RFC 6902 JSON Patch that applies the overwrites to the component reference of the Installation.
    ///
    /// The patch tests each value before it replaces the value. So the patch fails if one of these values has changed
    /// in the meantime. The patch also changes the references in inline component descriptors, unless this would make
    /// the patch too large for an annotation.
    pub fn patch(&self) -> Patch {
        let (own, inline) = (self.own_operations(), self.inline_operations());
        if inline.is_empty() {
            return Patch(own);
        }
        let whole = Patch([own.as_slice(), &inline].concat());
        if is_too_large(&whole) { Patch(own) } else { whole }
    }

    fn inline_operations(&self) -> Vec<PatchOperation> {
        let of = |at: &InlineReference| patch::operations_of(&at.pointer, &at.reference, &at.substitution);
        self.references.iter().flat_map(of).collect()
    }

    fn own_operations(&self) -> Vec<PatchOperation> {
        let mut operations = Vec::new();
        for attribute in self.substitution.changed() {
            // Locations always return valid JSON pointers, so no attribute is skipped.
            let Ok(path) = PointerBuf::parse(self.location.pointer(attribute)) else { continue };
            let value = self.location.wrap(attribute, self.substitution.result.value(attribute));
            if self.is_in_object(attribute) {
                let old = self.substitution.original.value(attribute);
                operations.push(PatchOperation::Test(TestOperation { path: path.clone(), value: old }));
                operations.push(PatchOperation::Replace(ReplaceOperation { path, value }));
            } else {
                operations.push(PatchOperation::Add(AddOperation { path, value }));
            }
        }
        operations
    }

    fn is_in_object(&self, attribute: Attribute) -> bool {
        match attribute {
            Attribute::RepositoryContext => self.own_repository_context,
            Attribute::ComponentName => !self.substitution.original.component_name.is_empty(),
            Attribute::Version => !self.substitution.original.version.is_empty(),
        }
    }

    /// Describes what the overwrites change, one line per attribute: the old value, the new value, and the entry that
    /// sets it.
    ///
    /// The lines about the Installation's own component reference come first, then the lines about the references in
    /// its inline component descriptors. If a JSON Patch of the inline component descriptors is too large for an
    /// annotation of the Installation, a last line says so.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.lines_of(&self.substitution);
        for at in &self.references {
            let name = &at.reference.name;
            lines.extend(self.lines_of(&at.substitution).into_iter().map(|line| format!("reference {name:?}: {line}")));
        }
        if !self.references.is_empty() && is_too_large(&Patch(self.inline_operations())) {
            lines.push("the patch of the inline descriptor's references is too large for an annotation".to_owned());
        }
        lines
    }

    /// Describes how `substitution` changes a component reference. Returns one line for each changed attribute.
    pub fn lines_of(&self, substitution: &Substitution) -> Vec<String> {
        let Substitution { original, result, .. } = substitution;
        let line = |attribute: Attribute| {
            let by = substitution.set_by(attribute).map(|at| format!("overwrites[{at}]")).unwrap_or_default();
            let (old, new) = (original.brief(attribute), result.brief(attribute));
            [attribute.as_str(), " ", &old, " -> ", &new, " (", &by, " of ", &self.overwrites.name, ")"].concat()
        };
        substitution.changed().map(line).collect()
    }

    /// Returns the sorted indexes of the ComponentVersionOverwrites entries that set an attribute of the Installation's
    /// own component reference, or of a reference in its inline component descriptors.
    pub fn entries(&self) -> Vec<usize> {
        let all = std::iter::once(&self.substitution).chain(self.references.iter().map(|at| &at.substitution));
        let mut entries: Vec<_> =
            all.flat_map(|one| Attribute::ALL.into_iter().filter_map(|attribute| one.set_by(attribute))).collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }
}

fn is_too_large(patch: &Patch) -> bool {
    // A patch can always be written as JSON.
    serde_json::to_string(patch).unwrap_or_default().len() > MAX_PATCH
}
