//! Components: descriptors, the tree of references from an Installation's component downwards, and what overwrites make
//! of every reference in it.
//!
//! [`closure::Closure`] is a pure function of the root reference, the overwrites and a look-up of descriptors, whoever
//! answers that: an inline descriptor, files, or what was fetched from registries before.

pub mod artifact;
pub mod closure;
pub mod descriptor;
pub mod folder;
pub mod inline;
pub mod library;
pub mod note;
pub mod patch;
pub mod record;
pub mod repository;
mod shelf;
pub mod split;
pub mod users;
pub mod versions;
