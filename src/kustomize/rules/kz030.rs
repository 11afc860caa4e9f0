//! KZ030: reports duplicate objects, and changes to objects that do not exist.
//!
//! Two objects are duplicates if their group, version, kind, namespace and name are equal. A change is a patch, a
//! generator with the behavior `merge` or `replace`, or a replica count in a kustomization file.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::identity::Id;
use crate::rule::RuleInfo;
use crate::suggestion::most_similar;

/// The rule definition of KZ030.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ030",
    name: "objects-conflict",
    level: Level::Deny,
    summary: "two objects with the same identity, or a patch, generator or replica count without its object",
    page: include_str!("../../../docs/rules/KZ030.md"),
};

/// Returns a finding about an entry of a kustomization file that adds an object whose identity already exists. `own` is
/// the position of the added object. `other` is the position of the existing object, if it is known.
pub(in crate::kustomize) fn conflict(site: Site, id: &Id<'_>, own: &Site, other: Option<&Site>) -> TreeFinding {
    let from = other.map(|other| format!(", from {other}")).unwrap_or_default();
    let is_same = own.file == site.file && own.place.line == site.place.line;
    let own = if is_same { String::new() } else { format!(" ({own})") };
    RULE.at(site, format!("{}{own} already exists{from}", id.words()))
        .found(id.to_string())
        .help("rename one of them, or use one shared base, with the differences in Components")
}

/// Returns a finding about a generator that creates an object that already exists. `other` is the position of the
/// existing object, if it is known.
pub(in crate::kustomize) fn exists(site: Site, id: &Id<'_>, other: Option<&Site>) -> TreeFinding {
    let from = other.map(|other| format!(", from {other}")).unwrap_or_default();
    RULE.at(site, format!("{} already exists{from}", id.words()))
        .found(id.to_string())
        .allowed("behavior merge or replace")
        .help("set behavior: merge or behavior: replace, or use another name")
}

/// Returns a finding about a generator with the behavior `merge` or `replace`, which needs an existing object to
/// change. `id` identifies the object that is missing.
pub(in crate::kustomize) fn no_object_to_merge(site: Site, id: &Id<'_>) -> TreeFinding {
    RULE.at(site, format!("{} does not exist, so it cannot be merged or replaced", id.words()))
        .found(id.to_string())
        .help("set behavior: create; components run after the generators of the kustomization that lists them")
}

/// Returns a finding about a generated object that has the same identity as several existing objects.
pub(in crate::kustomize) fn several_objects(site: Site, id: &Id<'_>) -> TreeFinding {
    RULE.at(site, format!("{} matches several objects", id.words()))
        .found(id.to_string())
        .help("select one of them by name and namespace")
}

/// Returns a finding about a patch for an object that does not exist. `id` is the identity in the patch. `there`
/// contains the identities of the existing objects. The finding suggests one of them if it is similar to `id`.
pub(in crate::kustomize) fn no_object_to_patch<'a>(
    site: Site,
    id: &Id<'_>,
    there: impl Iterator<Item = Id<'a>>,
) -> TreeFinding {
    let there: Vec<_> = there.collect();
    let same_kind = there.iter().filter(|other| other.gvk.kind == id.gvk.kind);
    let finding =
        RULE.at(site, format!("{} does not exist, so it cannot be patched", id.words())).found(id.to_string());
    if let Some(other) = same_kind.clone().find(|other| other.name == id.name) {
        return finding.help(format!("there is {other}: apiVersion and namespace must be the same"));
    }
    match most_similar(id.name, same_kind.map(|other| other.name)) {
        Some(name) => finding.help(format!("did you mean {name}?")),
        None => {
            finding.help("correct kind, name and namespace of the patch, or set a target, which may select no object")
        }
    }
}

/// Returns a finding about a patch that matches several objects.
pub(in crate::kustomize) fn several_objects_to_patch(site: Site, id: &Id<'_>) -> TreeFinding {
    RULE.at(site, format!("{} is a current or former identity of several objects", id.words()))
        .found(id.to_string())
        .help("give the patch a target")
}

/// Returns a finding about an object that has the same identity as another object after kustomize sets its namespace.
/// `id` is this identity. `before` is the identity of the object before the change. `made` is the file and line that
/// define the object.
pub(in crate::kustomize) fn same_in_namespace(site: Site, id: &Id<'_>, before: &str, made: &Site) -> TreeFinding {
    RULE.at(site, format!("this gives {before} ({made}) the same identity as another {}: {id}", id.gvk.kind))
        .found(id.to_string())
        .help("use each name once per namespace; kustomize also renames Namespace objects")
}

/// Returns a finding about an entry of `replicas` without a matching object. `name` is the name in the entry. `there`
/// contains the names of the existing objects. The finding suggests one of them if it is similar to `name`.
pub(in crate::kustomize) fn no_object_to_scale(site: Site, name: &str, there: &[&str]) -> TreeFinding {
    let finding = RULE.at(site, format!("there is no {name} to scale")).found(name);
    match most_similar(name, there.iter().copied()) {
        Some(near) => finding.help(format!("did you mean {near}?")),
        None => {
            finding.allowed("a Deployment, StatefulSet, ReplicaSet or ReplicationController").help("correct the name")
        }
    }
}

/// Returns a finding about a replacement whose source selects no object; `words` describes the source.
pub(in crate::kustomize) fn no_source(site: Site, words: &str) -> TreeFinding {
    RULE.at(site, format!("there is no {words} to take a value from")).found(words).help("correct the source")
}

/// Returns a finding about a replacement whose source selects several objects; `words` describes the source.
pub(in crate::kustomize) fn several_sources(site: Site, words: &str) -> TreeFinding {
    RULE.at(site, format!("there are several {words} to take a value from"))
        .found(words)
        .help("select one of them by name and namespace")
}
