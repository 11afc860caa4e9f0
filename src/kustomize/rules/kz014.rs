//! KZ014: reports patches of a kustomization that kustomize cannot read or apply.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ014.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ014",
    name: "bad-patch",
    level: Level::Deny,
    summary: "a patch that cannot be read, or cannot be applied to the objects that it selects",
    page: include_str!("../../../docs/rules/KZ014.md"),
};

/// Returns a finding about a patch that kustomize cannot read as a strategic merge patch or as a JSON patch. `why`
/// completes a sentence whose subject is the patch, such as `is both an object and a list of operations`.
pub(in crate::kustomize) fn unreadable(site: Site, why: &str) -> TreeFinding {
    RULE.at(site, format!("not a valid patch: it {why}"))
        .allowed("an object with kind and metadata.name, or a list of JSON patch operations")
        .help("correct the patch")
}

/// Returns a finding about an empty list or file of patches.
pub(in crate::kustomize) fn empty_list(site: Site) -> TreeFinding {
    RULE.at(site, "it contains no patch").help("remove it")
}

/// Returns a finding about a patch entry with neither `path` nor `patch`.
pub(in crate::kustomize) fn without_patch(site: Site) -> TreeFinding {
    RULE.at(site, "the patch has neither path nor patch").help("set one of them")
}

/// Returns a finding about a patch entry with both `path` and `patch`.
pub(in crate::kustomize) fn path_and_patch(site: Site) -> TreeFinding {
    RULE.at(site, "the patch has both path and patch").help("keep one of them")
}

/// Returns a finding about an entry of `patches` that has a target and several patches.
pub(in crate::kustomize) fn several_patches(site: Site) -> TreeFinding {
    RULE.at(site, "an entry with a target holds several patches").help("write one entry per patch")
}

/// Returns a finding about an invalid regular expression in a selector.
pub(in crate::kustomize) fn invalid_expression(site: Site, text: &str) -> TreeFinding {
    RULE.at(site, format!("`{text}` is not a regular expression"))
        .found(text)
        .help("correct it; escape special characters with \\")
}

/// Returns a finding about an invalid selector of labels or annotations.
pub(in crate::kustomize) fn invalid_selector(site: Site, text: &str) -> TreeFinding {
    RULE.at(site, format!("`{text}` is not a valid label or annotation selector")).found(text).help("correct it")
}

/// Returns a finding about a JSON patch without a target.
pub(in crate::kustomize) fn missing_target(site: Site) -> TreeFinding {
    RULE.at(site, "a JSON patch needs a target").help("select the objects to patch under \"target:\"")
}

/// Returns a finding about an entry of `patchesJson6902` without the name of its target.
pub(in crate::kustomize) fn unnamed_target(site: Site) -> TreeFinding {
    RULE.at(site, "the target has no name").help("set target.name, or use \"patches:\"")
}

/// Returns a finding about a patch that cannot be applied to an object.
pub(in crate::kustomize) fn inapplicable(site: Site, object: &str, why: &str) -> TreeFinding {
    RULE.at(site, format!("the patch does not apply to {object}: {why}"))
        .help("compare the patch with the object at this point of the build, after all earlier patches")
}
