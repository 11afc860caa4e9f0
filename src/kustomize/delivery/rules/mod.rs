//! The rules about objects that name a tree, one file each. Rules about the trees themselves are in `kustomize::rules`.

pub(in crate::kustomize) mod gd001;
pub(in crate::kustomize) mod gd002;
pub(super) mod kz041;
mod kz042;
mod kz043;
mod kz065;

use crate::rule::{Rule, RuleInfo};

/// The rule of the guard about deletions. It is no request rule, because the guard reads trees.
pub(in crate::kustomize) static GD001: &RuleInfo = &gd001::RULE;
/// The rule of the guard about new revisions of sources.
pub(in crate::kustomize) static GD002: &RuleInfo = &gd002::RULE;

/// The rules of this folder, in the order of their ids.
pub(in crate::kustomize) static RULES: &[&Rule] = &[&kz041::RULE, &kz042::RULE, &kz043::RULE, &kz065::RULE];
