//! Computes the component tree of an Installation: all component references that Landscaper follows, directly or
//! indirectly. The tree contains each reference before and after the overwrites are applied to it.
//!
//! The tree is built as in Landscaper:
//!
//! - The tree starts with the reference in the Installation itself. The overwrites are applied to it first.
//! - All other references come from component descriptors. Each of them gets the repository context that the first
//!   reference has after the overwrites. The overwrites are then applied to each of them, too.
//! - If several references lead to the same component version, the references in its descriptor are added only once.
//!   Two component versions are the same if they have the same name and version, even in different repositories.
//!
//! There is one difference. Landscaper stops at the first component descriptor that it cannot read. This module records
//! the reason, and continues with the next reference.
//!
//! Source: `getTransitiveComponentReferencesRecursively` and `GetReferencedComponentVersion` in Landscaper's
//! `pkg/components`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::descriptor::Descriptor;
use crate::landscaper::component_reference::ComponentReference;
use crate::landscaper::repository_context::RepositoryContext;
use crate::landscaper::substitution::{Entry, Substitution};

/// Maximum depth of a component tree. The limit is needed because each level is a recursive call. Real trees have fewer
/// than ten levels. Overwrites cannot create an endless tree, because the references of each component version are
/// added only once.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of references in a component tree that are looked up, to bound the cost of one Installation.
pub const MAX_STEPS: usize = 20_000;

/// The result of looking up a component version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The component version exists, with this descriptor.
    Descriptor(Arc<Descriptor>),
    /// The component version does not exist.
    Missing {
        /// The existing versions of the component that are closest to the missing version. Empty if the existing
        /// versions are unknown.
        nearest: Vec<String>,
    },
    /// The descriptor of the component version cannot be read. Contains the reason.
    Unreadable(String),
    /// The descriptor of the component version has not been fetched yet.
    Pending,
}

/// A non-blocking look-up of component versions.
pub trait Lookup {
    /// Looks up the component version that `reference` names, without waiting for a fetch.
    fn find(&self, reference: &ComponentReference) -> Found;
}

impl<F: Fn(&ComponentReference) -> Found> Lookup for F {
    fn find(&self, reference: &ComponentReference) -> Found {
        self(reference)
    }
}

/// A component version in a component tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// The first reference to the component version, after the overwrites are applied.
    pub reference: ComponentReference,
    /// The descriptor of the component version.
    pub descriptor: Arc<Descriptor>,
    /// The index in [`Closure::steps`] of the first reference to the component version.
    pub step: usize,
}

/// A component reference in the component tree of an Installation, before and after a ComponentVersionOverwrites object
/// is applied to it. Contains the component version that the reference leads to, or the reason why that version was not
/// read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The index in [`Closure::components`] of the component whose descriptor contains the reference; `None` for the
    /// Installation's own reference.
    pub from: Option<usize>,
    /// The index of the reference in the descriptor that contains it; 0 for the Installation's own reference.
    pub at: usize,
    /// The name of the reference in the descriptor; empty for the Installation's own reference.
    pub name: String,
    /// The depth of the reference in the component tree; 0 for the Installation's own reference.
    pub depth: usize,
    /// The reference before and after overwrites were applied to it. Overwrites are the entries of a
    /// ComponentVersionOverwrites object.
    pub substitution: Substitution,
    /// The component version that the reference leads to, or the reason why that version was not read.
    pub to: Target,
}

/// The component version that a component reference leads to, or the reason why that version was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// No earlier reference in the component tree leads to this component version. Contains the index of the version in
    /// [`Closure::components`].
    New(usize),
    /// The reference leads to a component version that is already in the tree. The references in the descriptor of this
    /// version are not added again. Contains the index of this version in [`Closure::components`].
    Again(usize),
    /// The component version was not read. Contains the reason.
    Gap(Gap),
}

/// The reason why a component version is missing from a component tree, although a component reference in the tree
/// names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// The component version does not exist.
    Missing {
        /// The existing versions of the component that are closest to the missing one; empty if they are unknown.
        nearest: Vec<String>,
    },
    /// The descriptor of the component version cannot be read. Contains the reason.
    Unreadable(String),
    /// The descriptor of the component version has not been fetched yet.
    Pending,
    /// The reference is deeper than [`MAX_DEPTH`].
    TooDeep,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { nearest } if nearest.is_empty() => f.write_str("it does not exist"),
            Self::Missing { nearest } => {
                write!(f, "it does not exist; the closest versions are {}", nearest.join(", "))
            }
            Self::Unreadable(why) => write!(f, "it cannot be read: {why}"),
            Self::Pending => f.write_str("it is not known yet"),
            Self::TooDeep => write!(f, "the tree is deeper than {MAX_DEPTH} levels"),
        }
    }
}

/// The component tree of an Installation. It contains the component versions that the Installation's component
/// reference leads to, directly or through other component versions. It also contains the references between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closure {
    /// The component versions in the tree, in the order in which Landscaper reads their descriptors.
    pub components: Vec<Component>,
    /// All component references in the component tree, in the order in which Landscaper looks them up. The first one is
    /// in the Installation, all others are in component descriptors. Each of them names a component version.
    pub steps: Vec<Step>,
    /// Whether the component tree is incomplete because it has more than [`MAX_STEPS`] references.
    pub is_cut: bool,
}

impl Closure {
    /// Computes the component tree of an Installation. `root` is the Installation's own reference, with the repository
    /// context of the Installation's Context. The overwrites `entries` are applied to each reference. `lookup` finds
    /// the descriptors of the component versions.
    pub fn of(root: ComponentReference, entries: &[Entry], lookup: &dyn Lookup) -> Self {
        let substitution = Substitution::of(entries, root);
        let repository_context = substitution.result.repository_context.clone();
        let mut walk = Walk { entries, lookup, repository_context, met: HashMap::new(), closure: Self::default() };
        walk.follow(Place { from: None, at: 0, name: String::new(), depth: 0 }, substitution);
        walk.closure
    }

    /// Returns the first reference of the component tree. This is the component reference in the Installation itself;
    /// all others are in component descriptors. `None` if the tree is empty.
    pub fn root(&self) -> Option<&Step> {
        self.steps.first()
    }

    /// Returns the references whose component version was not read, each with the reason, such as [`Gap::Missing`].
    pub fn gaps(&self) -> impl Iterator<Item = (&Step, &Gap)> {
        self.steps.iter().filter_map(|step| match &step.to {
            Target::Gap(gap) => Some((step, gap)),
            _ => None,
        })
    }

    /// Returns the references in the tree that lead to a component version that has not been fetched yet.
    pub fn pending(&self) -> impl Iterator<Item = &ComponentReference> {
        self.gaps().filter(|(_, gap)| **gap == Gap::Pending).map(|(step, _)| &step.substitution.result)
    }

    /// Reports whether the component tree is complete. In a complete tree, the component version of every reference was
    /// read, and the number of references did not exceed [`MAX_STEPS`].
    pub fn is_complete(&self) -> bool {
        !self.is_cut && self.gaps().next().is_none()
    }

    /// Returns the references in the descriptor of a component. `component` is the index of the component in
    /// [`Closure::components`].
    pub fn references_of(&self, component: usize) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |step| step.from == Some(component))
    }

    /// Returns the references in the descriptor of each component, in the order of [`Closure::components`].
    pub fn by_component(&self) -> Vec<Vec<&Step>> {
        let mut lists = vec![Vec::new(); self.components.len()];
        for step in &self.steps {
            if let Some(list) = step.from.and_then(|from| lists.get_mut(from)) {
                list.push(step);
            }
        }
        lists
    }

    /// Returns an error message, in Landscaper's format, for the first reference whose component version was not read.
    /// Returns `None` if all versions were read. For [`Gap::Pending`] and [`Gap::TooDeep`], which Landscaper does not
    /// have, the message contains a text of Portcullis.
    pub fn failure(&self) -> Option<String> {
        let (step, gap) = self.gaps().next()?;
        let mut text = match gap {
            Gap::Missing { .. } => "component version not found".to_owned(),
            Gap::Unreadable(why) => why.clone(),
            Gap::Pending => "the component descriptor is not known yet".to_owned(),
            Gap::TooDeep => format!("the tree is deeper than {MAX_DEPTH} levels"),
        };
        if step.from.is_some() {
            let original = &step.substitution.original;
            text = format!(
                "unable to resolve component reference {} with component name {} and version {}: {text}",
                step.name, original.component_name, original.version
            );
        }
        for above in self.above(step) {
            let (name, version) = (&above.name, &above.substitution.original.version);
            text = format!(
                "unable to resolve component references for component descriptor {name} with version {version}: {text}"
            );
        }
        Some(text)
    }

    /// Returns the ancestors of `step` in the component tree, beginning with its parent. Omits the root of the tree,
    /// which is the component reference in the Installation.
    fn above<'c>(&'c self, step: &'c Step) -> impl Iterator<Item = &'c Step> {
        std::iter::successors(self.parent(step), |step| self.parent(step)).filter(|step| step.from.is_some())
    }

    fn parent(&self, step: &Step) -> Option<&Step> {
        self.steps.get(self.components.get(step.from?)?.step)
    }

    /// Returns the names of the references on the path from the root of the component tree to a reference. The result
    /// is text for messages, such as `db → store`.
    pub fn path_to(&self, step: &Step) -> String {
        let mut names: Vec<&str> = self.above(step).map(|step| step.name.as_str()).collect();
        names.reverse();
        if step.from.is_some() {
            names.push(&step.name);
        }
        if names.is_empty() { "the Installation's own reference".to_owned() } else { names.join(" → ") }
    }
}

struct Place {
    from: Option<usize>,
    at: usize,
    name: String,
    depth: usize,
}

struct Walk<'w> {
    entries: &'w [Entry],
    lookup: &'w dyn Lookup,
    repository_context: Option<RepositoryContext>,
    met: HashMap<(String, String), usize>,
    closure: Closure,
}

impl Walk<'_> {
    fn follow(&mut self, place: Place, substitution: Substitution) {
        let found = self.lookup.find(&substitution.result);
        let number = self.closure.steps.len();
        let depth = place.depth;
        let to = self.target(found, &substitution.result, number, depth);
        let next = match to {
            Target::New(component) => Some(component),
            _ => None,
        };
        let Place { from, at, name, depth: _ } = place;
        self.closure.steps.push(Step { from, at, name, depth, substitution, to });
        if let Some(component) = next {
            self.references(component, depth + 1);
        }
    }

    fn references(&mut self, component: usize, depth: usize) {
        let Some(descriptor) = self.closure.components.get(component).map(|met| met.descriptor.clone()) else { return };
        for (at, reference) in descriptor.references.iter().enumerate() {
            if self.closure.steps.len() >= MAX_STEPS {
                self.closure.is_cut = true;
                return;
            }
            let original = ComponentReference {
                repository_context: self.repository_context.clone(),
                component_name: reference.component_name.clone(),
                version: reference.version.clone(),
            };
            let place = Place { from: Some(component), at, name: reference.name.clone(), depth };
            self.follow(place, Substitution::of(self.entries, original));
        }
    }

    fn target(&mut self, found: Found, reference: &ComponentReference, step: usize, depth: usize) -> Target {
        let descriptor = match found {
            Found::Descriptor(descriptor) => descriptor,
            Found::Missing { nearest } => return Target::Gap(Gap::Missing { nearest }),
            Found::Unreadable(why) => return Target::Gap(Gap::Unreadable(why)),
            Found::Pending => return Target::Gap(Gap::Pending),
        };
        let identity = (descriptor.name.clone(), descriptor.version.clone());
        if let Some(component) = self.met.get(&identity) {
            return Target::Again(*component);
        }
        if depth > MAX_DEPTH {
            return Target::Gap(Gap::TooDeep);
        }
        let component = self.closure.components.len();
        self.closure.components.push(Component { reference: reference.clone(), descriptor, step });
        self.met.insert(identity, component);
        Target::New(component)
    }
}
