//! Applies a list of overwrites to one component reference, and records what each entry did.
//!
//! Source: `Substitutions.Replace` in Landscaper's `pkg/components/model/componentoverwrites/substitutor.go`. It works
//! as follows:
//!
//! - The entries are applied in order. Each entry is matched against the *original* reference, not against the result
//!   of earlier entries.
//! - An entry can set three attributes: the repository context, the component name and the version. An entry sets
//!   nothing if it would set an attribute that an earlier entry has already set.
//! - When all three attributes are set, the remaining entries are skipped.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::{FieldPath, Request, json};
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::decode::{Problem, problem, within};

/// An entry of the list `overwrites` in a ComponentVersionOverwrites object: a condition on component references, and
/// the attributes that the entry sets in matching references.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// The condition of the entry: the entry applies to component references with these attribute values. An attribute
    /// that is unspecified here can have any value.
    pub source: ComponentReference,
    /// The attributes that the entry sets in each component reference that matches its `source`.
    pub substitution: ComponentReference,
}

impl Entry {
    /// Reports whether the `source` of the entry matches `reference`.
    pub fn matches(&self, reference: &ComponentReference) -> bool {
        self.source.specified().all(|attribute| self.source.agrees(reference, attribute))
    }

    fn of(value: &Value, problems: &mut Vec<Problem>) -> Self {
        let Some(members) = value.as_object() else {
            // A null entry is an empty entry: it matches everything and sets nothing.
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
            // A null entry is an empty entry: it matches everything and sets nothing.
            Err(_) => return report_unless_null(text, "an object", problems),
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

/// The entries of a ComponentVersionOverwrites object, and a separate list of values that Landscaper cannot decode.
#[derive(Debug, Default)]
pub struct Entries {
    list: Vec<Entry>,
    /// The values in the ComponentVersionOverwrites object that Landscaper cannot decode.
    pub problems: Vec<Problem>,
}

impl Entries {
    /// Returns the entries of the ComponentVersionOverwrites object in a request. The object is parsed only once for
    /// all rules that check the request.
    pub fn of(request: &Request<'_>) -> Arc<Self> {
        request.object.view(|object| Arc::new(Self::read(object)))
    }

    /// Reads the entries of a ComponentVersionOverwrites object.
    pub fn read(object: &Value) -> Self {
        let mut problems = Vec::new();
        let list = read_entries(object, &mut problems);
        Self { list, problems }
    }

    /// Reports whether the entry at index `at` contains a value that cannot be decoded. The effect of such an entry is
    /// unknown.
    pub fn has_problem(&self, at: usize) -> bool {
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

/// Returns the entries of the list `overwrites` in a ComponentVersionOverwrites object.
///
/// Values that Landscaper cannot decode are added to `problems` and count as unspecified.
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

/// Parses the entries of a ComponentVersionOverwrites object from the JSON text of its list `overwrites`. Repository
/// contexts keep their original text. Values that Landscaper cannot decode are added to `problems`.
pub fn parse_entries(text: &str, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let place = || FieldPath::of(["overwrites"]);
    let Ok(list) = serde_json::from_str::<Vec<&serde_json::value::RawValue>>(text) else {
        within(problems, place, |problems| report_unless_null(text, "a list", problems));
        return Vec::new();
    };
    let read = |(at, raw): (usize, &&serde_json::value::RawValue)| {
        let mut entry = Entry::default();
        within(problems, || place().index(at), |problems| entry.fill(raw.get(), problems));
        entry
    };
    list.iter().enumerate().map(read).collect()
}

fn report_unless_null(text: &str, wanted: &'static str, problems: &mut Vec<Problem>) {
    let value = json::parse(text).unwrap_or(Value::Null);
    if !value.is_null() {
        problems.push(problem(FieldPath::root(), &value, wanted));
    }
}

/// The result of applying one entry of `overwrites` to a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Landscaper did not apply the entry of the list `overwrites`, because its `source` does not match the original
    /// component reference.
    NotMatched {
        /// The attributes in which the component reference differs from the `source` of the `overwrites` entry.
        differs: Vec<Attribute>,
    },
    /// Landscaper applied the entry of the list `overwrites`: the component reference gets the attributes in the
    /// entry's `substitution`. The `source` of the entry matches, and no earlier entry has set any of these attributes.
    Applied {
        /// The attributes of the reference that this `overwrites` entry has set. The list is empty if the
        /// `substitution` of the entry specifies no attribute.
        set: Vec<Attribute>,
    },
    /// Landscaper ignored the whole entry of the list `overwrites`, although its `source` matches the component
    /// reference. An earlier entry has already set at least one of the attributes that this entry would set.
    Rejected {
        /// The attributes that this entry would set, but that an earlier entry has already set. Each attribute comes
        /// with the index of the earlier entry.
        taken: Vec<(Attribute, usize)>,
    },
    /// Landscaper skipped the entry of the list `overwrites`, because earlier entries had already set the repository
    /// context, the component name and the version.
    NotReached,
}

/// The result of applying a list of overwrites to a component reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitution {
    /// The reference before the substitution. If the reference specifies no repository context, the repository context
    /// of the Context is filled in.
    pub original: ComponentReference,
    /// The reference after the substitution, which Landscaper uses in place of `original`.
    pub result: ComponentReference,
    /// Whether the `source` of at least one entry matches the reference. Even then, `result` can equal `original`,
    /// because an entry may set a value that the reference already has.
    pub matched: bool,
    /// The result of each entry of the list `overwrites`, in order.
    pub trace: Vec<Outcome>,
    /// For each attribute in the order of [`Attribute::ALL`], the index of the entry that set the attribute. `None` if
    /// no entry set it.
    set_by: [Option<usize>; 3],
}

impl Substitution {
    /// Applies the overwrites `entries` to a component reference.
    pub fn of(entries: &[Entry], original: ComponentReference) -> Self {
        let mut substitution = Self {
            result: original.clone(),
            original,
            matched: false,
            trace: Vec::with_capacity(entries.len()),
            set_by: [None; 3],
        };
        for (at, entry) in entries.iter().enumerate() {
            let outcome = substitution.apply(at, entry);
            substitution.trace.push(outcome);
        }
        substitution
    }

    fn apply(&mut self, at: usize, entry: &Entry) -> Outcome {
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

    /// Returns the index of the `overwrites` entry that set an attribute of the component reference; `None` if no entry
    /// set it.
    pub fn set_by(&self, attribute: Attribute) -> Option<usize> {
        self.set_by[attribute as usize]
    }

    /// Reports whether the substitution changes an attribute of the reference.
    pub fn changes(&self, attribute: Attribute) -> bool {
        !self.original.agrees(&self.result, attribute)
    }

    /// Returns the attributes of the reference that the substitution changes.
    pub fn changed(&self) -> impl Iterator<Item = Attribute> + '_ {
        Attribute::ALL.into_iter().filter(|attribute| self.changes(*attribute))
    }
}
