//! ComponentVersionOverwrites: lists that replace component references, for example to test another version.
//!
//! A Context names one ComponentVersionOverwrites object; Landscaper passes the component reference of every
//! Installation in that context through its entries. This module computes the same substitution at admission: the
//! mutator writes it into annotations, and the rules report mistakes in a list before an Installation uses it.

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
