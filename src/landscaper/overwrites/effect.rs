//! What overwrites do to an Installation: the substitution with everything around it that decides it.

use std::sync::Arc;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, ReplaceOperation, TestOperation};
use serde_json::Value;

use super::substitution::{self, Entry, Substitution};
use crate::catalog::{self, View};
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::components::descriptor::Reference;
use crate::landscaper::components::inline::Inline;
use crate::landscaper::components::patch;
use crate::landscaper::context::Context;
use crate::landscaper::installation::{self, Location};
use crate::landscaper::kinds::{CONTEXTS, OVERWRITES};

/// The overwrites that a context uses.
#[derive(Debug, Clone)]
pub struct Overwrites {
    /// Name of the object.
    pub name: String,
    /// Its `metadata.generation`, where the API server set one.
    pub generation: Option<i64>,
    /// Its entries.
    pub entries: Arc<Vec<Entry>>,
}

/// What decides the substitution of an Installation.
#[derive(Debug, Clone)]
pub enum Setting {
    /// The Installation has no component descriptor: there is nothing to overwrite.
    NoComponent,
    /// Something that decides it is not known yet, because the catalog is still being filled.
    NotKnown,
    /// Its Context does not exist.
    NoContext(String),
    /// Its Context names no overwrites.
    NoOverwrites(String),
    /// Its Context names overwrites that do not exist.
    MissingOverwrites {
        /// The Context.
        context: String,
        /// What it names.
        overwrites: String,
    },
    /// There are overwrites.
    Overwritten(Box<Effect>),
}

/// The substitution of one Installation, and what it was worked out from.
#[derive(Debug, Clone)]
pub struct Effect {
    /// Name of the Context.
    pub context: String,
    /// The overwrites that it names.
    pub overwrites: Overwrites,
    /// Where the reference stands.
    pub location: Location,
    /// Whether the reference has a repository context of its own.
    pub own_repository_context: bool,
    /// The substitution.
    pub substitution: Substitution,
    /// What becomes of the references of an inline descriptor.
    pub references: Vec<InlineReference>,
}

/// A reference of a descriptor that stands in the Installation, which becomes another.
#[derive(Debug, Clone)]
pub struct InlineReference {
    /// JSON pointer in the Installation.
    pub pointer: String,
    /// The reference.
    pub reference: Reference,
    /// What becomes of it.
    pub substitution: Substitution,
}

/// The largest patch that is written into an annotation, in bytes: all annotations of an object have 256 KiB together.
const MAX_PATCH: usize = 100 * 1024;

/// Finds out what overwrites do to an Installation.
pub fn of(installation: &Value, namespace: &str, view: &View<'_>) -> Setting {
    let Some((location, reference)) = installation::component_reference(installation, &mut Vec::new()) else {
        return Setting::NoComponent;
    };
    let context_name = installation::context_name(installation);
    let Some(stored) = view.find(&CONTEXTS, namespace, context_name) else {
        let missing = Setting::NoContext(context_name.to_owned());
        return if view.is_missing(&CONTEXTS, namespace, context_name) { missing } else { Setting::NotKnown };
    };
    let context = stored.view(Context::of);
    let Some(name) = &context.overwrites else { return Setting::NoOverwrites(context_name.to_owned()) };
    let Some(overwrites) = find(namespace, name, view) else {
        let missing = Setting::MissingOverwrites { context: context_name.to_owned(), overwrites: name.clone() };
        return if view.is_missing(&OVERWRITES, namespace, name) { missing } else { Setting::NotKnown };
    };
    let own_repository_context = reference.repository_context.is_some();
    let original = reference.or_repository_context(context.repository_context.as_ref());
    let substitution = Substitution::of(&overwrites.entries, original);
    let references = match location {
        Location::Ref => Vec::new(),
        Location::Inline { .. } => inline_references(installation, &overwrites.entries, &substitution.result),
    };
    Setting::Overwritten(Box::new(Effect {
        context: context_name.to_owned(),
        overwrites,
        location,
        own_repository_context,
        substitution,
        references,
    }))
}

/// The references of inline descriptors that become others. An unreadable descriptor has none.
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

/// What to confirm before the effect on an Installation is told: the Context and the overwrites, where the catalog does
/// not have them.
pub fn confirm(installation: &Value, namespace: &str, view: &View<'_>) -> Vec<catalog::Reference> {
    let name = installation::context_name(installation);
    let Some(stored) = view.find(&CONTEXTS, namespace, name) else {
        return view.unless_found(&CONTEXTS, namespace, name).into_iter().collect();
    };
    let overwrites = stored.view(Context::of).overwrites;
    overwrites.and_then(|name| view.unless_found(&OVERWRITES, namespace, &name)).into_iter().collect()
}

/// The overwrites of that name.
pub fn find(namespace: &str, name: &str, view: &View<'_>) -> Option<Overwrites> {
    let stored = view.find(&OVERWRITES, namespace, name)?;
    Some(Overwrites {
        name: name.to_owned(),
        generation: stored.value().get("metadata").and_then(|metadata| metadata.get("generation")?.as_i64()),
        entries: stored.view(entries),
    })
}

/// The entries of a ComponentVersionOverwrites object.
pub fn entries(object: &Value) -> Arc<Vec<Entry>> {
    Arc::new(substitution::read_entries(object, &mut Vec::new()))
}

impl Effect {
    /// Whether the Installation gets another component, or its inline descriptor another reference.
    pub fn changes_anything(&self) -> bool {
        self.substitution.changed().next().is_some() || !self.references.is_empty()
    }

    /// The substitution as an RFC 6902 patch of the Installation: each replaced value is tested first, so that the patch
    /// does not fit an Installation that was changed since. Of an inline descriptor, its references are patched too.
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
            // Paths of our own making are pointers; an attribute without one would be left out.
            let Ok(path) = PointerBuf::parse(self.location.pointer(attribute)) else { continue };
            let value = self.location.wrap(attribute, self.substitution.result.value(attribute));
            if self.stands_in_object(attribute) {
                let old = self.substitution.original.value(attribute);
                operations.push(PatchOperation::Test(TestOperation { path: path.clone(), value: old }));
                operations.push(PatchOperation::Replace(ReplaceOperation { path, value }));
            } else {
                operations.push(PatchOperation::Add(AddOperation { path, value }));
            }
        }
        operations
    }

    fn stands_in_object(&self, attribute: Attribute) -> bool {
        match attribute {
            Attribute::RepositoryContext => self.own_repository_context,
            Attribute::ComponentName => !self.substitution.original.component_name.is_empty(),
            Attribute::Version => !self.substitution.original.version.is_empty(),
        }
    }

    /// One line for each attribute that becomes another, of the Installation's own reference and then of those in its
    /// inline descriptor: from what to what, by which entry of which object.
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

    /// One line for each attribute of a reference that becomes another.
    pub fn lines_of(&self, substitution: &Substitution) -> Vec<String> {
        let Substitution { original, result, .. } = substitution;
        let line = |attribute: Attribute| {
            let by = substitution.set_by(attribute).map(|at| format!("overwrites[{at}]")).unwrap_or_default();
            let (old, new) = (original.brief(attribute), result.brief(attribute));
            [attribute.as_str(), " ", &old, " -> ", &new, " (", &by, " of ", &self.overwrites.name, ")"].concat()
        };
        substitution.changed().map(line).collect()
    }

    /// The entries that set something.
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
    // It holds nothing that JSON could not say.
    serde_json::to_string(patch).unwrap_or_default().len() > MAX_PATCH
}
