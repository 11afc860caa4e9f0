//! Operations of kustomize on single nodes: giving scalars their types when they are printed.

mod folded;
mod print;
mod text;

pub use crate::yaml::node::{Entry, Kind, Node, Origin, Style, Tag};
pub use print::{Unprintable, UnprintableKind, printed};
pub use text::{commented_text, text_of};
