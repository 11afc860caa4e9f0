//! Operations on single nodes that give the same results as in kustomize, such as the conversion of a node to its
//! printed value.

mod folded;
mod print;
mod text;

pub use crate::yaml::node::{Entry, Kind, Node, Origin, Style, Tag};
pub use print::{Unprintable, UnprintableKind, printed, printed_inner};
pub use text::{commented_text, text_of};
