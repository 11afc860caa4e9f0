//! The substitution: what a list of overwrites makes of one component reference, and why.
//!
//! Source: `Substitutions.Replace` in Landscaper's `pkg/components/model/componentoverwrites/substitutor.go`. Entries
//! are matched against the *original* reference, in order; an entry sets all its attributes or none; no attribute is set
//! twice; once all three are set, the rest is not looked at.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::{FieldPath, Request, json};
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::decode::{Problem, problem, within};

/// One entry of `overwrites`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Which references it is for: those that agree with every part that is specified here.
    pub source: ComponentReference,
    /// What it sets.
    pub substitution: ComponentReference,
}

impl Entry {
    /// Whether it is for `reference`.
    pub fn matches(&self, reference: &ComponentReference) -> bool {
        self.source.specified().all(|attribute| self.source.agrees(reference, attribute))
    }

    fn of(value: &Value, problems: &mut Vec<Problem>) -> Self {
        let Some(members) = value.as_object() else {
            // A null entry is an empty one, which matches everything and sets nothing.
            if !value.is_null() {
                problems.push(problem(FieldPath::root(), value, "an object"));
            }
            return Self::default();
        };
        let mut part = |key: &'static str| {
            let mut read = ComponentReference::default();
            if let Some(value) = members.get(key) {
                within(problems, || FieldPath::of([key]), |problems| read = ComponentReference::of(value, problems));
            }
            read
        };
        Self { source: part("source"), substitution: part("substitution") }
    }

    fn fill(&mut self, text: &str, problems: &mut Vec<Problem>) {
        let members = match json::members(text) {
            Ok(members) => members,
            // A null entry is an empty one, which matches everything and sets nothing.
            Err(_) => return told_unless_null(text, "an object", problems),
        };
        for (key, raw) in members {
            let part = match key.as_str() {
                "source" => &mut self.source,
                "substitution" => &mut self.substitution,
                _ => continue,
            };
            within(problems, || FieldPath::of([&*key]), |problems| part.fill(raw.get(), problems));
        }
    }
}

/// The entries of a ComponentVersionOverwrites object, and what Landscaper could not decode in them.
#[derive(Debug, Default)]
pub struct Entries {
    list: Vec<Entry>,
    /// What Landscaper could not decode.
    pub problems: Vec<Problem>,
}

impl Entries {
    /// The entries of the object of a request, read once for all rules.
    pub fn of(request: &Request<'_>) -> Arc<Self> {
        request.object.view(|object| Arc::new(Self::read(object)))
    }

    /// Reads the entries of an object.
    pub fn read(object: &Value) -> Self {
        let mut problems = Vec::new();
        let list = read_entries(object, &mut problems);
        Self { list, problems }
    }

    /// Whether something in an entry could not be decoded, so that what it says is not known.
    pub fn is_damaged(&self, at: usize) -> bool {
        if self.problems.is_empty() {
            return false;
        }
        let entry = FieldPath::of(["overwrites"]).index(at);
        self.problems.iter().any(|problem| problem.field.segments().starts_with(entry.segments()))
    }
}

impl std::ops::Deref for Entries {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        &self.list
    }
}

/// Reads the list `overwrites` of a ComponentVersionOverwrites object.
///
/// What Landscaper cannot decode is told in `problems` and counts as unspecified.
pub fn read_entries(object: &Value, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let place = || FieldPath::of(["overwrites"]);
    let list = match object.get("overwrites") {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(other) => {
            problems.push(problem(place(), other, "a list"));
            return Vec::new();
        }
    };
    let read = |(at, value): (usize, &Value)| {
        let mut entry = Entry::default();
        within(problems, || place().index(at), |problems| entry = Entry::of(value, problems));
        entry
    };
    list.iter().enumerate().map(read).collect()
}

/// Reads the list from its JSON text, which the repository contexts in it keep as it is spelled.
pub fn parse_entries(text: &str, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let place = || FieldPath::of(["overwrites"]);
    let Ok(list) = serde_json::from_str::<Vec<&serde_json::value::RawValue>>(text) else {
        within(problems, place, |problems| told_unless_null(text, "a list", problems));
        return Vec::new();
    };
    let read = |(at, raw): (usize, &&serde_json::value::RawValue)| {
        let mut entry = Entry::default();
        within(problems, || place().index(at), |problems| entry.fill(raw.get(), problems));
        entry
    };
    list.iter().enumerate().map(read).collect()
}

fn told_unless_null(text: &str, wanted: &'static str, problems: &mut Vec<Problem>) {
    let value = json::parse(text).unwrap_or(Value::Null);
    if !value.is_null() {
        problems.push(problem(FieldPath::root(), &value, wanted));
    }
}

/// What became of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its source does not match the original reference.
    NotMatched {
        /// The parts in which they differ.
        differs: Vec<Attribute>,
    },
    /// It was applied.
    Applied {
        /// The parts that it set; none for an empty substitution.
        set: Vec<Attribute>,
    },
    /// It matches, but a part that it would set was set already; so it set nothing at all.
    Rejected {
        /// Those parts, and the entry that had set each.
        taken: Vec<(Attribute, usize)>,
    },
    /// All three parts were set before its turn came.
    NotReached,
}

/// What a list of overwrites makes of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitution {
    /// The reference as it was, its repository context defaulted from the Context.
    pub original: ComponentReference,
    /// The reference that Landscaper uses instead.
    pub result: ComponentReference,
    /// Whether any entry matched; what it then set may still be what was there.
    pub matched: bool,
    /// What became of each entry.
    pub trace: Vec<Outcome>,
    /// Which entry set each part.
    set_by: [Option<usize>; 3],
}

impl Substitution {
    /// Applies `entries` to a reference.
    pub fn of(entries: &[Entry], original: ComponentReference) -> Self {
        let mut substitution = Self {
            result: original.clone(),
            original,
            matched: false,
            trace: Vec::with_capacity(entries.len()),
            set_by: [None; 3],
        };
        for (at, entry) in entries.iter().enumerate() {
            let outcome = substitution.take_turn(at, entry);
            substitution.trace.push(outcome);
        }
        substitution
    }

    fn take_turn(&mut self, at: usize, entry: &Entry) -> Outcome {
        if self.set_by.iter().all(Option::is_some) {
            return Outcome::NotReached;
        }
        let specified = entry.source.specified();
        let differs: Vec<_> = specified.filter(|part| !entry.source.agrees(&self.original, *part)).collect();
        if !differs.is_empty() {
            return Outcome::NotMatched { differs };
        }
        self.matched = true;
        let wanted: Vec<_> = entry.substitution.specified().collect();
        let taken: Vec<_> = wanted.iter().filter_map(|part| self.set_by(*part).map(|by| (*part, by))).collect();
        if !taken.is_empty() {
            return Outcome::Rejected { taken };
        }
        for part in &wanted {
            self.result.take(&entry.substitution, *part);
            self.set_by[*part as usize] = Some(at);
        }
        Outcome::Applied { set: wanted }
    }

    /// The entry that set a part.
    pub fn set_by(&self, attribute: Attribute) -> Option<usize> {
        self.set_by[attribute as usize]
    }

    /// Whether a part became another.
    pub fn changes(&self, attribute: Attribute) -> bool {
        !self.original.agrees(&self.result, attribute)
    }

    /// The parts that became others.
    pub fn changed(&self) -> impl Iterator<Item = Attribute> + '_ {
        Attribute::ALL.into_iter().filter(|attribute| self.changes(*attribute))
    }
}
