//! Rules about objects that refer to a kustomize tree, one module each. Rules about the content of trees are in
//! `kustomize::rules`.

pub(in crate::kustomize) mod gd001;
pub(in crate::kustomize) mod gd002;
pub(super) mod kz041;
mod kz042;
mod kz043;
mod kz065;

use crate::rule::{Rule, RuleInfo};

/// The rules about deletions by Flux and Argo CD that nobody approved, sorted by id. These rules may need the objects
/// that a build of the kustomize tree renders. So they are not in [`RULES`], which contains only rules that run without
/// a build.
pub(in crate::kustomize) static TREE_RULES: &[&RuleInfo] = &[&gd001::RULE, &gd002::RULE];

/// The rules of this module that check admission requests, sorted by id.
pub(in crate::kustomize) static RULES: &[&Rule] = &[&kz041::RULE, &kz042::RULE, &kz043::RULE, &kz065::RULE];
