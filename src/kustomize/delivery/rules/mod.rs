//! The rules about objects that name a tree, one file each. Rules about the trees themselves are in `kustomize::rules`.

pub(super) mod kz041;
mod kz042;
mod kz043;

use crate::rule::Rule;

/// The rules of this folder, in the order of their ids.
pub(in crate::kustomize) static RULES: &[&Rule] = &[&kz041::RULE, &kz042::RULE, &kz043::RULE];
