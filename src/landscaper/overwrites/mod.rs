//! ComponentVersionOverwrites: lists that replace component references, for example to test another version.
//!
//! A Context names one ComponentVersionOverwrites object; Landscaper passes the component reference of every Installation
//! in that context through its entries. This module computes the same substitution at admission: the mutator writes it into
//! annotations, and the rules report mistakes in a list before an Installation uses it.

pub mod conditions;
pub mod effect;
pub mod message;
mod mutator;
mod ow001;
mod ow002;
mod ow003;
mod ow004;
mod ow005;
mod ow006;
mod ow007;
mod ow008;
mod ow009;
mod ow010;
mod ow011;
pub mod substitution;

use crate::admission::Operation;
use crate::rule::{Mutator, Rule};

/// The rules of family OW, in the order of their ids.
pub static RULES: &[&Rule] = &[
    &ow001::RULE,
    &ow002::RULE,
    &ow003::RULE,
    &ow004::RULE,
    &ow005::RULE,
    &ow006::RULE,
    &ow007::RULE,
    &ow008::RULE,
    &ow009::RULE,
    &ow010::RULE,
    &ow011::RULE,
];

/// The mutators for overwrites.
pub static MUTATORS: &[&Mutator] = &[&mutator::MUTATOR];

pub use mutator::{PATCH_ANNOTATION, SOURCE_ANNOTATION, annotations};

const WRITES: &[Operation] = &[Operation::Create, Operation::Update];
const DELETION: &[Operation] = &[Operation::Delete];
