//! KZ013: reports a file with invalid objects or invalid YAML.

use crate::admission::Level;
use crate::kustomize::bad_objects::BadObjects;
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::identity::Id;
use crate::kustomize::node::{Unprintable, UnprintableKind};
use crate::rule::RuleInfo;

/// The rule definition of KZ013.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ013",
    name: "bad-manifest",
    level: Level::Deny,
    summary: "a file under resources that is not YAML, contains an object without kind or name, or has keys that cannot be written",
    page: include_str!("../../../docs/rules/KZ013.md"),
};

/// Returns the finding that a kustomization uses a file with an invalid object or with invalid YAML. `entry` is the
/// path of the file as the kustomization file lists it. `at` is the position of the error in the listed file.
pub(in crate::kustomize) fn found(site: Site, entry: &str, at: &Site, fault: &BadObjects) -> TreeFinding {
    let finding = RULE.at(site, format!("\"{entry}\" {} ({at})", fault));
    let folder = entry.rsplit_once('/').map_or(".", |(folder, _)| folder);
    match fault {
        _ if NAMES.contains(&at.file.name()) => {
            finding.help(format!("list the folder, not its kustomization file: {folder}"))
        }
        BadObjects::NoName { .. } => finding.help("give it a metadata.name; generateName is not enough for kustomize"),
        BadObjects::NoKind(_) => finding.help("give it a kind"),
        _ => finding.help("correct the file, or remove the entry"),
    }
}

/// Returns a finding about an object without an apiVersion, which kustomize accepts and Flux rejects.
pub(in crate::kustomize) fn no_api_version(site: Site, object: &str) -> TreeFinding {
    RULE.at(site, format!("{object} has no apiVersion, and Flux rejects it")).help("give it an apiVersion")
}

/// Returns a finding about an object that kustomize cannot write. For example, transformers removed its kind or name,
/// or one of its annotations has an empty key. `object` names the object, and `why` is the reason.
pub(in crate::kustomize) fn no_object(site: Site, object: &str, why: &str) -> TreeFinding {
    RULE.at(site, format!("{object} cannot be written: {why}")).help("check the patches of the object")
}

/// Returns a finding about an object that a generator with the behavior `merge` cannot change, because `field` of the
/// object has an empty key. `field` is `data` or `binaryData`.
pub(in crate::kustomize) fn empty_key(site: Site, id: &Id<'_>, field: &str) -> TreeFinding {
    RULE.at(site, format!("{} cannot be merged: a key of its {field} is empty or null", id.words()))
        .help("use a key that is not empty")
}

/// Returns a finding about an object with a key or value that kustomize cannot serialize. `site` is the position where
/// the key or value is set.
pub(in crate::kustomize) fn unprintable(site: Site, object: &str, fault: &Unprintable) -> TreeFinding {
    let finding = RULE.at(site, format!("{object} cannot be written: {fault}"));
    match fault.kind {
        UnprintableKind::Key(_) if fault.pointer.starts_with("/metadata/annotations/") => finding.help(
            "use another key: kustomize writes annotation keys without quotes, so numbers, dates and booleans are \
                 not strings",
        ),
        UnprintableKind::Key(_) => {
            finding.help("a number, date or boolean cannot be a key: put it in quotes, or use another key")
        }
        UnprintableKind::CollectionKey(_) => {
            finding.help("put the value in quotes if it contains a template such as {{ name }}, or use another key")
        }
        UnprintableKind::Duplicate(_) => finding.help("keep one of the two"),
        _ => finding.help("correct the value, or put it in quotes"),
    }
}
