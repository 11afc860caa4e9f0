//! Components: descriptors, the tree of references below an Installation's component, and the substitution of each
//! reference.
//!
//! [`closure::Closure`] is a pure function of the root reference, the overwrites and a look-up of descriptors. The
//! look-up reads inline descriptors, files, or the cache of descriptors from registries.

pub mod artifact;
pub mod cache;
pub mod closure;
pub mod descriptor;
pub mod folder;
pub mod inline;
pub mod patch;
pub mod repository;
pub mod split;
pub mod users;
pub mod versions;
