//! Operations on single YAML nodes that give the same results as in kustomize. An example is the conversion of a node
//! to the value that kustomize prints.

mod folded;
mod print;
mod text;

pub use crate::yaml::node::{Entry, Kind, Node, Origin, Style, Tag};
pub use print::{Unprintable, UnprintableKind, printed, printed_inner};
pub use text::{commented_text, text_of};
