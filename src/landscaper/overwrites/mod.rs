//! ComponentVersionOverwrites: objects whose entries replace component references, for example to test another version.
//!
//! A Context names one ComponentVersionOverwrites object. Landscaper applies the entries of this object to the
//! component reference of every Installation with that Context. This module computes the same substitution at
//! admission. The mutator writes the substitution into annotations. The rules report mistakes in a
//! ComponentVersionOverwrites object before an Installation uses it.

pub mod conditions;
pub mod effect;
pub mod message;
mod mutator;
pub mod note;
pub mod record;

use crate::rule::Mutator;

/// The mutators that apply ComponentVersionOverwrites to Installations.
pub static MUTATORS: &[&Mutator] = &[&mutator::MUTATOR];

pub use mutator::annotations;
