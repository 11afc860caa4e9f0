//! The kinds that controllers read and write by name only, and that are not kept in the catalog.

use crate::catalog::{Kind, Scope, Storage};

/// The kind Secret.
pub(super) static SECRETS: Kind = by_name("Secret", "secrets");
/// The kind ConfigMap.
pub(super) static CONFIG_MAPS: Kind = by_name("ConfigMap", "configmaps");

const fn by_name(kind: &'static str, plural: &'static str) -> Kind {
    let (group, version, scope) = ("", "v1", Scope::Namespaced);
    Kind { group, version, kind, plural, scope, indexes: &[], storage: Storage::ByName(&[]) }
}
