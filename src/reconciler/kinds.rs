//! The kinds whose objects controllers read and write only by name. The catalog does not contain these kinds.

use crate::catalog::{Kind, Scope, Storage};

/// The kind Secret. Controllers read and write Secrets by name, without the catalog.
pub(super) static SECRETS: Kind = by_name("Secret", "secrets");
/// The kind ConfigMap. Controllers read and write ConfigMaps by name, without the catalog.
pub(super) static CONFIG_MAPS: Kind = by_name("ConfigMap", "configmaps");

const fn by_name(kind: &'static str, plural: &'static str) -> Kind {
    let (group, version, scope) = ("", "v1", Scope::Namespaced);
    Kind { group, version, kind, plural, scope, indexes: &[], storage: Storage::ByName(&[]) }
}
