//! Applies the kustomize options of an Argo CD source to a kustomization file. Argo CD does the same before it runs
//! `kustomize build`.

mod merge;
mod spec;

pub(super) use merge::{Own, merge};
