//! KZ016: a generator of ConfigMaps or Secrets that fails.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ016.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ016",
    name: "bad-generator",
    level: Level::Deny,
    summary: "a generator without a name, or with data that kustomize does not accept",
    page: include_str!("../../../docs/rules/KZ016.md"),
};

/// Returns a finding about a generator without a name. `kind` is the kind of the generated object, such as `ConfigMap`.
pub(in crate::kustomize) fn missing_name(site: Site, kind: &str) -> TreeFinding {
    RULE.at(site, format!("the {kind} has no name")).help("give it a name")
}

/// Returns a finding about a generator that sets a label or annotation with an empty key. `kind` is the kind of the
/// generated object. `field` is `labels` or `annotations`.
pub(in crate::kustomize) fn empty_key(site: Site, kind: &str, field: &str) -> TreeFinding {
    RULE.at(site, format!("the {kind} has an empty key in {field}")).help("remove it")
}

/// Returns a finding about an entry of `literals` that is not `key=value`.
pub(in crate::kustomize) fn invalid_literal(site: Site, text: &str) -> TreeFinding {
    RULE.at(site, format!("\"{text}\" is not of the form key=value"))
        .found(text)
        .allowed("key=value")
        .help("write key=value")
}

/// Returns a finding about an entry of `files` that is neither `path` nor `key=path`.
pub(in crate::kustomize) fn invalid_source(site: Site, text: &str) -> TreeFinding {
    RULE.at(site, format!("\"{text}\" is not of the form path or key=path"))
        .found(text)
        .allowed("path or key=path")
        .help("write one = only, with a key before and a path after it")
}

/// Returns a finding about a duplicate key in the data of the generator `name`.
pub(in crate::kustomize) fn duplicate_key(site: Site, name: &str, key: &str) -> TreeFinding {
    RULE.at(site, format!("duplicate key {key} in {name}")).found(key).help("remove one of them")
}

/// Returns a finding about an environment file with a line that is not UTF-8.
pub(in crate::kustomize) fn invalid_encoding(site: Site, line: usize) -> TreeFinding {
    RULE.at(site, format!("line {line} of the file is not UTF-8")).help("list the file under \"files:\"")
}
