//! What kustomize does with single nodes: giving scalars their types when they are printed.

mod folded;
mod print;

pub use crate::yaml::node::{Entry, Kind, Node, Origin, Style, Tag};
pub use print::{Unprintable, UnprintableKind, printed};
