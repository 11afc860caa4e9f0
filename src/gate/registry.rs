//! The rows of all systems, side by side.

use crate::admission::Request;
use crate::catalog::{Kind, NAMESPACES};
use crate::landscaper;
use crate::rule::{Definition, Mutator, Rule};

/// All rules and mutators.
pub struct Registry {
    rules: Vec<&'static Rule>,
    mutators: Vec<&'static Mutator>,
    definitions: Vec<&'static Definition>,
}

impl Registry {
    /// The rules and mutators of every system.
    pub fn standard() -> Self {
        let definitions = landscaper::definitions();
        Self { definitions, ..Self::new(landscaper::rules(), landscaper::mutators()) }
    }

    /// Just these.
    pub fn new(rules: Vec<&'static Rule>, mutators: Vec<&'static Mutator>) -> Self {
        Self { rules, mutators, definitions: Vec::new() }
    }

    /// The rules, in the order of their ids.
    pub fn rules(&self) -> &[&'static Rule] {
        &self.rules
    }

    /// The mutators, in the order in which they run.
    pub fn mutators(&self) -> &[&'static Mutator] {
        &self.mutators
    }

    /// The kinds that systems add.
    pub fn definitions(&self) -> &[&'static Definition] {
        &self.definitions
    }

    /// The rule of an id.
    pub fn rule(&self, id: &str) -> Option<&'static Rule> {
        self.rules.iter().find(|rule| rule.id == id).copied()
    }

    /// The letters that ids begin with, such as `OW`.
    pub fn families(&self) -> Vec<&'static str> {
        let mut families: Vec<_> = self.rules.iter().map(|rule| rule.family()).collect();
        families.dedup();
        families
    }

    /// Every kind that a rule or mutator looks up, and namespaces.
    pub fn kinds(&self) -> Vec<&'static Kind> {
        let mut kinds: Vec<&'static Kind> = vec![&NAMESPACES];
        let of_rules = self.rules.iter().flat_map(|rule| rule.looks_up);
        let of_mutators = self.mutators.iter().flat_map(|mutator| mutator.looks_up);
        for kind in of_rules.chain(of_mutators) {
            if !kinds.iter().any(|known| std::ptr::eq(*known, *kind)) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// The rules that look at a request.
    pub fn rules_for<'a>(&'a self, request: &'a Request<'_>) -> impl Iterator<Item = &'a &'static Rule> {
        self.rules.iter().filter(|rule| rule.scope.iter().any(|scope| scope.covers(request)))
    }

    /// The mutators that look at a request.
    pub fn mutators_for<'a>(&'a self, request: &'a Request<'_>) -> impl Iterator<Item = &'a &'static Mutator> {
        self.mutators.iter().filter(|mutator| mutator.scope.iter().any(|scope| scope.covers(request)))
    }
}
