//! The collected objects, field specs and vars of a kustomization.
//!
//! Source: kustomize's `api/internal/accumulator/resaccumulator.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::config::Config;
use super::resmap::ResMap;
use super::vars::Vars;
use crate::kustomize::finding::Site;
use crate::kustomize::identity::Scope;
use crate::kustomize::tree::TreePath;

/// The objects, field specs and vars that a build has collected from a kustomization and its bases. Corresponds to
/// kustomize's `ResAccumulator`.
#[derive(Debug, Clone)]
pub(super) struct Accumulator {
    /// The objects of the kustomization and its bases.
    pub map: ResMap,
    /// The field specs of all transformers that run on the objects.
    pub config: Arc<Config>,
    pub vars: Vars,
    /// The components that were applied to the objects. The key is the folder of a component. The value is the file and
    /// line of the first entry in a `components` list that refers to this folder.
    pub components: BTreeMap<TreePath, Site>,
}

impl Accumulator {
    /// Creates an accumulator without objects, field specs or vars.
    pub(super) fn new(scope: Scope) -> Self {
        Self { map: ResMap::new(scope), config: Config::empty(), vars: Vars::default(), components: BTreeMap::new() }
    }
}
