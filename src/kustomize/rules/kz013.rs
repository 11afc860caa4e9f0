//! KZ013: a file that holds no objects.

use crate::admission::Level;
use crate::kustomize::accumulate::keys::KeyFault;
use crate::kustomize::accumulate::manifests::ManifestFault;
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ013.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ013",
    name: "bad-manifest",
    level: Level::Deny,
    summary: "a file under resources that is not YAML, contains an object without kind or name, or has keys that cannot be written",
    page: include_str!("../../../docs/rules/KZ013.md"),
};

/// Returns a finding about an entry whose file holds a fault at `at`.
pub(in crate::kustomize) fn found(site: Site, entry: &str, at: &Site, fault: &ManifestFault) -> TreeFinding {
    let finding = RULE.at(site, format!("\"{entry}\" {} ({at})", fault));
    let folder = entry.rsplit_once('/').map_or(".", |(folder, _)| folder);
    match fault {
        _ if NAMES.contains(&at.file.name()) => {
            finding.help(format!("name the folder, not its kustomization file: {folder}"))
        }
        ManifestFault::NoName(_) => finding.help("give it a metadata.name; generateName is not enough for kustomize"),
        ManifestFault::NoKind => finding.help("give it a kind"),
        _ => finding.help("correct the file, or take the entry out"),
    }
}

/// Returns a finding about an object without an apiVersion, which kustomize builds and Flux refuses.
pub(in crate::kustomize) fn no_api_version(site: Site, object: &str) -> TreeFinding {
    RULE.at(site, format!("{object} has no apiVersion, and Flux refuses it")).help("give it an apiVersion")
}

/// Returns a finding about a key with which an object cannot be written; `site` is what put it there.
pub(in crate::kustomize) fn key(site: &Site, object: &str, pointer: &str, fault: KeyFault) -> TreeFinding {
    let finding = RULE.at(site.clone(), format!("{object} cannot be written: its key {pointer} {}", fault));
    match fault {
        KeyFault::NotText if pointer.starts_with("/metadata/annotations/") => {
            finding.help("kustomize writes the keys of annotations without quotes: a number, a date or a truth value is no key there; name it otherwise")
        }
        KeyFault::NotText => {
            finding.help("a number, a date or a truth value is no key: put it in quotes, or name it otherwise")
        }
        KeyFault::Twice => finding.help("keep one of the two"),
    }
}
