//! Operations on single nodes as kustomize does them, such as typing scalars for printing.

mod folded;
mod print;
mod text;

pub use crate::yaml::node::{Entry, Kind, Node, Origin, Style, Tag};
pub use print::{Unprintable, UnprintableKind, printed, printed_inner};
pub use text::{commented_text, text_of};
