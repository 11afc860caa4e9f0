//! Finds the Installations that use a ComponentVersionOverwrites object.

use std::sync::Arc;

use crate::catalog::{Stored, View};
use crate::landscaper::context::Context;
use crate::landscaper::kinds::{CONTEXTS, CONTEXTS_BY_OVERWRITES, INSTALLATIONS, INSTALLATIONS_BY_CONTEXT};

/// Maximum number of Contexts that are read for one ComponentVersionOverwrites object, to bound the time of a decision.
const MAX_CONTEXTS: usize = 100;
/// Maximum number of Installations that are read for one ComponentVersionOverwrites object, to bound the time of a
/// decision.
const MAX_INSTALLATIONS: usize = 10_000;

/// The Installations that use a ComponentVersionOverwrites object.
pub struct Users {
    /// The Installations whose Context names the ComponentVersionOverwrites object, each together with its Context.
    pub installations: Vec<User>,
    /// Whether `installations` may be incomplete, because the maximum number of Contexts or Installations was reached.
    pub is_cut: bool,
}

/// An Installation that uses a ComponentVersionOverwrites object, and the Context that names this object.
pub struct User {
    /// The Installation, as the catalog of watched objects stores it.
    pub installation: Arc<Stored>,
    /// The Context that the Installation names.
    pub context: Arc<Context>,
}

/// Returns the Installations in `namespace` that use the ComponentVersionOverwrites object `name`. An Installation uses
/// the object if the Context of the Installation names the object.
pub fn of_overwrites(namespace: &str, name: &str, view: &View<'_>) -> Users {
    let contexts = view.indexed(&CONTEXTS, &CONTEXTS_BY_OVERWRITES, namespace, name, MAX_CONTEXTS);
    let mut users = Users { installations: Vec::new(), is_cut: contexts.len() >= MAX_CONTEXTS };
    for stored in contexts {
        let limit = MAX_INSTALLATIONS.saturating_sub(users.installations.len());
        let context = Arc::new(stored.view(Context::of));
        let found = view.indexed(&INSTALLATIONS, &INSTALLATIONS_BY_CONTEXT, namespace, stored.name(), limit);
        users.is_cut |= view.count(&INSTALLATIONS, &INSTALLATIONS_BY_CONTEXT, namespace, stored.name()) > found.len();
        users
            .installations
            .extend(found.into_iter().map(|installation| User { installation, context: context.clone() }));
    }
    users
}
