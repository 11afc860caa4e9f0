//! The Installations that some overwrites are for.

use std::sync::Arc;

use crate::catalog::{Stored, View};
use crate::landscaper::context::Context;
use crate::landscaper::kinds::{CONTEXTS, CONTEXTS_BY_OVERWRITES, INSTALLATIONS, INSTALLATIONS_BY_CONTEXT};

/// The most Contexts that are looked at for one list of overwrites.
const MOST_CONTEXTS: usize = 100;
/// The most Installations: a decision is bounded, whatever is stored.
const MOST: usize = 10_000;

/// The Installations that some overwrites are for.
pub struct Users {
    /// They, with their Contexts.
    pub installations: Vec<User>,
    /// Whether there are more.
    pub is_cut: bool,
}

/// An Installation and its Context.
pub struct User {
    /// The Installation.
    pub installation: Arc<Stored>,
    /// Its Context.
    pub context: Arc<Context>,
}

/// The Installations whose Context names the overwrites `name`.
pub fn of_overwrites(namespace: &str, name: &str, view: &View<'_>) -> Users {
    let contexts = view.indexed(&CONTEXTS, &CONTEXTS_BY_OVERWRITES, namespace, name, MOST_CONTEXTS);
    let mut users = Users { installations: Vec::new(), is_cut: contexts.len() >= MOST_CONTEXTS };
    for stored in contexts {
        let room = MOST.saturating_sub(users.installations.len());
        let context = Arc::new(stored.view(Context::of));
        let found = view.indexed(&INSTALLATIONS, &INSTALLATIONS_BY_CONTEXT, namespace, stored.name(), room);
        users.is_cut |= view.count(&INSTALLATIONS, &INSTALLATIONS_BY_CONTEXT, namespace, stored.name()) > found.len();
        users
            .installations
            .extend(found.into_iter().map(|installation| User { installation, context: context.clone() }));
    }
    users
}
