//! The tree of a component: every reference that Landscaper would follow, and what overwrites make of each.
//!
//! Source: `getTransitiveComponentReferencesRecursively` and `GetReferencedComponentVersion` in Landscaper's
//! `pkg/components`. Every reference is looked up in the repository context of the *root as it was overwritten*, and
//! passed through the overwrites on its own; component versions are followed once, told apart by name and version only.
//! Landscaper stops at the first descriptor that it does not get; here that is a gap, and the rest is looked at.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::descriptor::Descriptor;
use crate::landscaper::component_reference::ComponentReference;
use crate::landscaper::overwrites::substitution::{Entry, Substitution};
use crate::landscaper::repository_context::RepositoryContext;

/// How deep a tree is followed. Real ones have less than ten levels; overwrites can make endless ones only by names that
/// grow, which they cannot.
pub const MAX_DEPTH: usize = 64;
/// How many references of a tree are followed: a bound on what one Installation costs.
pub const MAX_STEPS: usize = 20_000;

/// What is known of a component version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Its descriptor.
    Descriptor(Arc<Descriptor>),
    /// It does not exist.
    Missing {
        /// The versions that do exist and are nearest to it, where they are known.
        nearest: Vec<String>,
    },
    /// It cannot be read, and why.
    Unreadable(String),
    /// Nobody has asked yet.
    Pending,
}

/// Answers what is known of a component version; it never waits.
pub trait Lookup {
    /// What is known of it.
    fn find(&self, reference: &ComponentReference) -> Found;
}

impl<F: Fn(&ComponentReference) -> Found> Lookup for F {
    fn find(&self, reference: &ComponentReference) -> Found {
        self(reference)
    }
}

/// A component version of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// What it was looked up by: the reference after the overwrites.
    pub reference: ComponentReference,
    /// Its descriptor.
    pub descriptor: Arc<Descriptor>,
    /// The step that first led to it.
    pub step: usize,
}

/// A reference that was followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The component it stands in, as its place in [`Closure::components`]; `None` for the Installation's own.
    pub from: Option<usize>,
    /// Its place among the references of that component.
    pub at: usize,
    /// Its name there; empty for the Installation's own.
    pub name: String,
    /// How deep it stands; 0 for the Installation's own.
    pub depth: usize,
    /// What the overwrites make of it.
    pub substitution: Substitution,
    /// Where it leads.
    pub to: Target,
}

/// Where a reference leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To a component version that was not met before.
    New(usize),
    /// To one that was met before, and is not followed again.
    Again(usize),
    /// To nothing that can be followed.
    Gap(Gap),
}

/// Why a reference is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// The component version does not exist.
    Missing {
        /// The versions that exist and are nearest.
        nearest: Vec<String>,
    },
    /// Its descriptor cannot be read, and why.
    Unreadable(String),
    /// Its descriptor was not asked for yet.
    Pending,
    /// It stands deeper than [`MAX_DEPTH`].
    TooDeep,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { nearest } if nearest.is_empty() => f.write_str("it does not exist"),
            Self::Missing { nearest } => write!(f, "it does not exist; near to it are {}", nearest.join(", ")),
            Self::Unreadable(why) => write!(f, "it cannot be read: {why}"),
            Self::Pending => f.write_str("it is not known yet"),
            Self::TooDeep => write!(f, "the tree is deeper than {MAX_DEPTH} levels"),
        }
    }
}

/// The tree of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closure {
    /// The component versions, in the order in which Landscaper meets them.
    pub components: Vec<Component>,
    /// The references, in the order in which Landscaper looks them up.
    pub steps: Vec<Step>,
    /// Whether there are more references than [`MAX_STEPS`].
    pub is_cut: bool,
}

impl Closure {
    /// Follows everything from `root`, the Installation's reference with the Context's repository context filled in.
    pub fn of(root: ComponentReference, entries: &[Entry], lookup: &dyn Lookup) -> Self {
        let substitution = Substitution::of(entries, root);
        let repository_context = substitution.result.repository_context.clone();
        let mut walk = Walk { entries, lookup, repository_context, met: HashMap::new(), closure: Self::default() };
        walk.follow(Place { from: None, at: 0, name: String::new(), depth: 0 }, substitution);
        walk.closure
    }

    /// The Installation's own reference.
    pub fn root(&self) -> Option<&Step> {
        self.steps.first()
    }

    /// The references that lead nowhere.
    pub fn gaps(&self) -> impl Iterator<Item = (&Step, &Gap)> {
        self.steps.iter().filter_map(|step| match &step.to {
            Target::Gap(gap) => Some((step, gap)),
            _ => None,
        })
    }

    /// The component versions that nobody has asked for yet.
    pub fn pending(&self) -> impl Iterator<Item = &ComponentReference> {
        self.gaps().filter(|(_, gap)| **gap == Gap::Pending).map(|(step, _)| &step.substitution.result)
    }

    /// Whether everything is known.
    pub fn is_complete(&self) -> bool {
        !self.is_cut && self.gaps().next().is_none()
    }

    /// The references in one of the components.
    pub fn references_of(&self, component: usize) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |step| step.from == Some(component))
    }

    /// The references of every component, in the order of [`Closure::components`].
    pub fn by_component(&self) -> Vec<Vec<&Step>> {
        let mut lists = vec![Vec::new(); self.components.len()];
        for step in &self.steps {
            if let Some(list) = step.from.and_then(|from| lists.get_mut(from)) {
                list.push(step);
            }
        }
        lists
    }

    /// What Landscaper says at the first gap, in its words; `None` where it finds everything.
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

    /// The references that lead to the component in which `step` stands, upwards, without the Installation's own.
    fn above<'c>(&'c self, step: &'c Step) -> impl Iterator<Item = &'c Step> {
        std::iter::successors(self.parent(step), |step| self.parent(step)).filter(|step| step.from.is_some())
    }

    fn parent(&self, step: &Step) -> Option<&Step> {
        self.steps.get(self.components.get(step.from?)?.step)
    }

    /// The way from the root to a reference, for people: `root → db → store`.
    pub fn way(&self, step: &Step) -> String {
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
