//! What has to be so before the server takes calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The conditions of being ready. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<Vec<State>>>);

/// One condition, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Its name, such as `catalog`.
    pub name: &'static str,
    /// Why it is not met; `None` when it is.
    pub unmet: Option<String>,
    /// What whoever looks should know of it all the same.
    pub note: Option<String>,
}

impl State {
    /// One that is met, or not because of `unmet`.
    pub fn new(name: &'static str, unmet: Option<String>) -> Self {
        Self { name, unmet, note: None }
    }
}

/// The hand of whoever knows whether a condition is met. Dropping it leaves the condition as it is.
#[derive(Debug)]
pub struct Condition {
    readiness: Readiness,
    index: usize,
}

impl Readiness {
    /// Registers a condition that is not met yet, because of `reason`.
    pub fn condition(&self, name: &'static str, reason: impl Into<String>) -> Condition {
        let mut states = self.states();
        states.push(State::new(name, Some(reason.into())));
        Condition { readiness: self.clone(), index: states.len() - 1 }
    }

    /// All conditions, in the order of their registration.
    pub fn report(&self) -> Vec<State> {
        self.states().clone()
    }

    fn states(&self) -> MutexGuard<'_, Vec<State>> {
        // A panic elsewhere leaves no state half-written: each is replaced whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Condition {
    /// Says that the condition is met.
    pub fn met(&self) {
        self.set(None);
    }

    /// Says that the condition is not met, and why.
    pub fn unmet(&self, reason: impl Into<String>) {
        self.set(Some(reason.into()));
    }

    /// Says that the condition is met, and what is to be known all the same; nothing, where there is no `note`.
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
