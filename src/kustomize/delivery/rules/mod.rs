//! Rules about objects that refer to a kustomize tree, one module each. Rules about the content of trees are in
//! `kustomize::rules`.

pub(in crate::kustomize) mod gd001;
pub(in crate::kustomize) mod gd002;
pub(super) mod kz041;
mod kz042;
mod kz043;
mod kz065;

use crate::rule::{Rule, RuleInfo};

/// The rule GD001 about deletions by Flux and Argo CD that nobody approved. It is not in [`RULES`], because those rules
/// are checked without a build. GD001 needs the objects that a build of the kustomize tree renders.
pub(in crate::kustomize) static GD001: &RuleInfo = &gd001::RULE;
/// The rule GD002, which reports a new revision of a Flux source that makes Flux delete objects without an approval.
/// GD002 needs the objects that kustomize builds from the revision. It is not in `RULES`, because the rules in that
/// list need no build.
pub(in crate::kustomize) static GD002: &RuleInfo = &gd002::RULE;

/// The request rules of this module, sorted by id.
pub(in crate::kustomize) static RULES: &[&Rule] = &[&kz041::RULE, &kz042::RULE, &kz043::RULE, &kz065::RULE];
