//! Reproduces what Argo CD does with the kustomize options of a source before it builds a folder.

mod merge;
mod spec;

pub(super) use merge::{Own, merge};
