//! Component descriptors, the component tree of an Installation, and the substitution of each reference in the tree.
//!
//! [`closure::Closure`] is computed only from the root reference, the overwrites and a look-up of descriptors. The
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
