//! Kustomize: Components, Kustomizations and where each may stand, found without building.

pub mod file;
pub mod options;
pub mod references;
pub mod tree;
