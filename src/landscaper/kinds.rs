//! The kinds that Landscaper's rules look up.

use super::{context, installation};
use crate::catalog::{Index, Kind, Scope};
use crate::rule::{Match, Outage};

/// API group of everything of Landscaper's.
pub const GROUP: &str = "landscaper.gardener.cloud";
/// Its one version.
pub const VERSION: &str = "v1alpha1";

/// `Context`: what Installations share.
pub static CONTEXTS: Kind = Kind {
    group: GROUP,
    version: VERSION,
    kind: "Context",
    plural: "contexts",
    scope: Scope::Namespaced,
    indexes: &[&CONTEXTS_BY_OVERWRITES],
};

/// Contexts by the name of the overwrites that they use.
pub static CONTEXTS_BY_OVERWRITES: Index =
    Index { name: "overwrites", keys: |object| keys(context::overwrites_name(object)) };

/// `ComponentVersionOverwrites`: which component references are replaced, and by what.
pub static OVERWRITES: Kind = Kind {
    group: GROUP,
    version: VERSION,
    kind: "ComponentVersionOverwrites",
    plural: "componentversionoverwrites",
    scope: Scope::Namespaced,
    indexes: &[],
};

/// `Installation`: what is to be installed.
pub static INSTALLATIONS: Kind = Kind {
    group: GROUP,
    version: VERSION,
    kind: "Installation",
    plural: "installations",
    scope: Scope::Namespaced,
    indexes: &[&INSTALLATIONS_BY_CONTEXT],
};

/// Installations by the name of their context.
pub static INSTALLATIONS_BY_CONTEXT: Index =
    Index { name: "context", keys: |object| keys(Some(installation::context_name(object))) };

fn keys(name: Option<&str>) -> Vec<String> {
    name.map(str::to_owned).into_iter().collect()
}

/// Whether an object of a request or a file is of `kind`, judged by its resource.
pub(super) fn is(kind: &Kind, request: &crate::admission::Request<'_>) -> bool {
    request.resource.plural == kind.plural
}

/// The main resource of a kind, for a rule's scope.
pub(super) const fn matches(
    kind: &'static Kind,
    operations: &'static [crate::admission::Operation],
    outage: Outage,
) -> Match {
    let Kind { group, plural, kind, .. } = kind;
    Match { group, versions: &[VERSION], plural, kind, subresource: "", operations, outage }
}
