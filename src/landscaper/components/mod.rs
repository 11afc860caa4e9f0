//! Reads component descriptors, and computes the component tree of an Installation. A component descriptor lists
//! references to other components. The component tree contains all components that are found by following these
//! references, beginning with the component reference of the Installation.
//!
//! [`closure::Closure`] is the component tree. It contains each reference before and after overwrites are applied to
//! it. Overwrites are the entries of a ComponentVersionOverwrites object. The descriptors come from the Installation
//! itself, from files, or from a cache of descriptors that were read from registries.

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
