//! The rows of all systems, side by side.

use crate::admission::{Level, Request};
use crate::catalog::{Catalog, Declaration, Kind, NAMESPACES};
use crate::crossplane;
use crate::kustomize;
use crate::kustomize::rule::TreeRule;
use crate::landscaper;
use crate::rule::{Definition, Mutator, Rule, Section};

use serde_json::Value;

/// All rules and mutators.
pub struct Registry {
    rules: Vec<&'static Rule>,
    tree_rules: Vec<&'static TreeRule>,
    mutators: Vec<&'static Mutator>,
    definitions: Vec<&'static Definition>,
    declarations: Vec<&'static Declaration>,
    /// The resources that any row looks at, by plural name: a request for another one is known to be so at once.
    plurals: Vec<&'static str>,
}

/// A rule of either shape: about requests, or about trees of files.
#[derive(Clone, Copy)]
pub enum Row {
    /// It looks at requests.
    Request(&'static Rule),
    /// It looks at trees.
    Tree(&'static TreeRule),
}

impl Row {
    /// The rule's id.
    pub fn id(self) -> &'static str {
        match self {
            Self::Request(rule) => rule.id,
            Self::Tree(rule) => rule.id,
        }
    }

    /// The letters of its id.
    pub fn family(self) -> &'static str {
        match self {
            Self::Request(rule) => rule.family(),
            Self::Tree(rule) => rule.family(),
        }
    }

    /// Its name in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request(rule) => rule.name,
            Self::Tree(rule) => rule.name,
        }
    }

    /// The level of its findings where the configuration says nothing.
    pub fn level(self) -> Level {
        match self {
            Self::Request(rule) => rule.level,
            Self::Tree(rule) => rule.level,
        }
    }

    /// What it says no to, in one line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Request(rule) => rule.summary,
            Self::Tree(rule) => rule.summary,
        }
    }

    /// What it looks for, and why that matters.
    pub fn why(self) -> &'static str {
        match self {
            Self::Request(rule) => rule.page.why,
            Self::Tree(rule) => rule.page.why,
        }
    }

    /// How to mend what it finds.
    pub fn mend(self) -> &'static str {
        match self {
            Self::Request(rule) => rule.page.mend,
            Self::Tree(rule) => rule.page.mend,
        }
    }
}

impl Registry {
    /// The rules and mutators of every system.
    pub fn standard() -> Self {
        let mut rules = [crossplane::rules(), kustomize::rules(), landscaper::rules()].concat();
        rules.sort_by_key(|rule| rule.id);
        let mutators = [crossplane::mutators(), landscaper::mutators()].concat();
        let (tree_rules, definitions) = (kustomize::tree_rules(), landscaper::definitions());
        let declarations = crossplane::declarations();
        Self { tree_rules, definitions, declarations, ..Self::new(rules, mutators) }
    }

    /// Just these.
    pub fn new(rules: Vec<&'static Rule>, mutators: Vec<&'static Mutator>) -> Self {
        let of_rules = rules.iter().flat_map(|rule| rule.scope);
        let of_mutators = mutators.iter().flat_map(|mutator| mutator.scope);
        let mut plurals: Vec<_> = of_rules.chain(of_mutators).map(|scope| scope.plural).collect();
        plurals.sort_unstable();
        plurals.dedup();
        let (tree_rules, definitions, declarations) = (Vec::new(), Vec::new(), Vec::new());
        Self { rules, tree_rules, mutators, definitions, declarations, plurals }
    }

    /// The rules, in the order of their ids.
    pub fn rules(&self) -> &[&'static Rule] {
        &self.rules
    }

    /// The mutators, in the order in which they run.
    pub fn mutators(&self) -> &[&'static Mutator] {
        &self.mutators
    }

    /// The rules of both shapes, in the order of their ids.
    pub fn rows(&self) -> Vec<Row> {
        let requests = self.rules.iter().map(|rule| Row::Request(rule));
        let mut rows: Vec<_> = requests.chain(self.tree_rules.iter().map(|rule| Row::Tree(rule))).collect();
        rows.sort_by_key(|row| row.id());
        rows
    }

    /// The row of an id.
    pub fn row(&self, id: &str) -> Option<Row> {
        self.rows().into_iter().find(|row| row.id() == id)
    }

    /// The kinds that systems add.
    pub fn definitions(&self) -> &[&'static Definition] {
        &self.definitions
    }

    /// The section of the configuration file that a rule looks at.
    pub fn section_of(&self, id: &str) -> Option<&'static Section> {
        landscaper::sections().into_iter().find(|section| section.rules.contains(&id))
    }

    /// An empty catalog of all that rules look up.
    pub fn catalog(&self) -> Catalog {
        Catalog::new(self.kinds()).declaring(self.declarations.clone())
    }

    /// A catalog that holds just `objects`, as [`Catalog::of`].
    pub fn catalog_of(&self, objects: Vec<Value>) -> Catalog {
        let catalog = self.catalog();
        catalog.replace_all(objects);
        catalog
    }

    /// The rule of an id.
    pub fn rule(&self, id: &str) -> Option<&'static Rule> {
        self.rules.iter().find(|rule| rule.id == id).copied()
    }

    /// The letters that ids begin with, such as `OW`.
    pub fn families(&self) -> Vec<&'static str> {
        let mut families: Vec<_> = self.rows().into_iter().map(Row::family).collect();
        families.dedup();
        families
    }

    /// Every kind that a rule or mutator looks up, and namespaces.
    pub fn kinds(&self) -> Vec<&'static Kind> {
        let mut kinds: Vec<&'static Kind> = vec![&NAMESPACES];
        let of_rules = self.rules.iter().flat_map(|rule| rule.looks_up);
        let of_mutators = self.mutators.iter().flat_map(|mutator| mutator.looks_up);
        let declaring = self.declarations.iter().map(|declaration| &declaration.by);
        for kind in of_rules.chain(of_mutators).chain(declaring) {
            if !kinds.iter().any(|known| std::ptr::eq(*known, *kind)) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// The rules that look at a request; `declared_as` is the declaration of its kind, where it has one.
    pub fn rules_for<'a>(
        &'a self,
        request: &'a Request<'_>,
        declared_as: Option<&'a Declaration>,
    ) -> impl Iterator<Item = &'a &'static Rule> {
        let rules = if self.knows(request, declared_as) { self.rules.as_slice() } else { &[] };
        rules.iter().filter(move |rule| rule.scope.iter().any(|scope| scope.covers(request, declared_as)))
    }

    /// The mutators that look at a request, as for rules.
    pub fn mutators_for<'a>(
        &'a self,
        request: &'a Request<'_>,
        declared_as: Option<&'a Declaration>,
    ) -> impl Iterator<Item = &'a &'static Mutator> {
        let mutators = if self.knows(request, declared_as) { self.mutators.as_slice() } else { &[] };
        mutators.iter().filter(move |mutator| mutator.scope.iter().any(|scope| scope.covers(request, declared_as)))
    }

    fn knows(&self, request: &Request<'_>, declared_as: Option<&Declaration>) -> bool {
        declared_as.is_some() || self.plurals.contains(&&*request.resource.plural)
    }
}
