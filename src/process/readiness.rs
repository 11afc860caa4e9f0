//! The readiness conditions of a process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A set of readiness conditions, for `/readyz`. Clones share the set.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<Vec<State>>>);

/// The state of one readiness condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Name of the condition, such as `catalog`.
    pub name: &'static str,
    /// The reason why the condition is not met; `None` if it is met.
    pub unmet: Option<String>,
    /// A note that `/readyz` shows next to a condition that is met. `None` if there is no note.
    pub note: Option<String>,
}

impl State {
    /// Returns the state of the condition `name`. If the condition is not met, `unmet` is the reason; otherwise it is
    /// `None`.
    pub fn new(name: &'static str, unmet: Option<String>) -> Self {
        Self { name, unmet, note: None }
    }
}

/// A handle that sets a readiness condition. Dropping the handle does not change the condition.
#[derive(Debug)]
pub struct Condition {
    readiness: Readiness,
    index: usize,
}

impl Readiness {
    /// Adds a readiness condition, and returns a handle to change it. At first, the condition is not met, and `reason`
    /// says why.
    pub fn condition(&self, name: &'static str, reason: impl Into<String>) -> Condition {
        let mut states = self.states();
        states.push(State::new(name, Some(reason.into())));
        Condition { readiness: self.clone(), index: states.len() - 1 }
    }

    /// Returns all conditions in the order of their registration.
    pub fn report(&self) -> Vec<State> {
        self.states().clone()
    }

    fn states(&self) -> MutexGuard<'_, Vec<State>> {
        // Each state is replaced as a whole, so a poisoned lock leaves none half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Condition {
    /// Marks the readiness condition as met, without a note in `/readyz`.
    pub fn met(&self) {
        self.set(None);
    }

    /// Marks the readiness condition as unmet. `reason` says why.
    pub fn unmet(&self, reason: impl Into<String>) {
        self.set(Some(reason.into()));
    }

    /// Marks the readiness condition as met, with an optional note that `/readyz` shows.
    pub fn noted(&self, note: Option<String>) {
        if let Some(state) = self.readiness.states().get_mut(self.index) {
            *state = State { note, ..State::new(state.name, None) };
        }
    }

    fn set(&self, unmet: Option<String>) {
        if let Some(state) = self.readiness.states().get_mut(self.index) {
            *state = State::new(state.name, unmet);
        }
    }
}
