//! Reads the fields of a Composition. Collects all problems, each with its field path, instead of stopping at the first
//! one.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::declared::Declared;
use super::problem::{Problem, Topic};
use crate::admission::FieldPath;
use crate::crossplane::environment::Profile;
use crate::crossplane::structural::Structural;
use crate::suggestion::most_similar;

/// A value of a Composition and its field path.
#[derive(Debug, Clone)]
pub(super) struct Node<'v> {
    pub(super) value: &'v Value,
    pub(super) at: FieldPath,
}

impl<'v> Node<'v> {
    pub(super) fn new(value: &'v Value, at: FieldPath) -> Self {
        Self { value, at }
    }

    /// Returns the field whose name is exactly `key`; `None` if it is missing or `null`.
    pub(super) fn member(&self, key: &str) -> Option<Self> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Self::new(value, self.at.key(key)))
    }
}

/// A reader of a Composition's fields. It collects the problems of these fields.
pub(super) struct Reader {
    /// How the environment of a composite is computed: by Crossplane itself, in versions up to 1.17, or by Composition
    /// functions. Some checks are different for the two ways.
    pub(super) profile: Profile,
    /// The problems that were found so far.
    pub(super) problems: Vec<Problem>,
    /// The declared schema of the environment, if any.
    pub(super) declared: Option<Arc<Declared>>,
    /// The schema of the composite, if it is known.
    pub(super) composite: Option<Arc<Structural>>,
    /// Whether patches write into the environment.
    pub(super) writes: Writes,
    /// Whether the input of the current patch may be an integer. If false, every number is a float64.
    pub(super) has_integers: bool,
}

/// A record of whether patches write into the environment of a composite. The checks of number types need it. Before
/// the first write, all numbers in the environment are float64. After it, whole numbers are int64.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Writes {
    /// Whether a patch that precedes the current patch in `environment.patches` writes into the environment.
    pub(super) before: bool,
    /// Whether any patch writes into the environment.
    pub(super) any: bool,
}

impl Reader {
    pub(super) fn new(profile: Profile) -> Self {
        let has_integers = profile == Profile::Native117;
        let (problems, writes) = (Vec::new(), Writes::default());
        Self { profile, problems, declared: None, composite: None, writes, has_integers }
    }

    pub(super) fn is_native(&self) -> bool {
        self.profile == Profile::Native117
    }

    pub(super) fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Returns the field `key` of a node; `None` if it is missing or `null`. In the input of a Composition function,
    /// the name of the field may differ from `key` in upper and lower case, because Go's JSON decoder ignores the case.
    pub(super) fn member<'v>(&self, node: &Node<'v>, key: &str) -> Option<Node<'v>> {
        node.member(key).or_else(|| {
            let alike = |(found, _): &(&String, &Value)| found.eq_ignore_ascii_case(key);
            let (found, _) = node.value.as_object().filter(|_| !self.is_native())?.iter().find(alike)?;
            node.member(found)
        })
    }

    /// Returns the object in the optional field `key`. If the field is not an object, reports a problem and returns
    /// `None`.
    pub(super) fn object<'v>(&mut self, node: &Node<'v>, key: &str) -> Option<Node<'v>> {
        let found = self.member(node, key)?;
        self.is_object(&found).then_some(found)
    }

    /// Returns whether a value is an object. If it is not, reports a problem.
    pub(super) fn is_object(&mut self, node: &Node<'_>) -> bool {
        self.is(node, node.value.is_object(), "must be an object")
    }

    /// Returns the elements of the list in the optional field `key`. If the field is not a list, reports a problem and
    /// returns an empty list.
    pub(super) fn list<'v>(&mut self, node: &Node<'v>, key: &str) -> Vec<Node<'v>> {
        let Some(found) = self.member(node, key) else { return Vec::new() };
        let Some(items) = found.value.as_array() else {
            self.is(&found, false, "must be a list");
            return Vec::new();
        };
        items.iter().enumerate().map(|(at, item)| Node::new(item, found.at.index(at))).collect()
    }

    /// Returns the elements of the list in the optional field `key` that are objects. Reports a problem for each other
    /// element, and if the field is not a list.
    pub(super) fn objects<'v>(&mut self, node: &Node<'v>, key: &str) -> Vec<Node<'v>> {
        let mut items = self.list(node, key);
        items.retain(|item| self.is_object(item));
        items
    }

    /// Returns the string in the optional field `key`, and the path of this field. If the field is not a string,
    /// reports a problem and returns `None`.
    pub(super) fn text<'v>(&mut self, node: &Node<'v>, key: &str) -> Option<(&'v str, FieldPath)> {
        let found = self.member(node, key)?;
        let text = found.value.as_str();
        self.is(&found, text.is_some(), "must be a string");
        Some((text?, found.at))
    }

    /// Returns the string in the required field `key`, and the path of this field. If the field is missing or not a
    /// string, reports a problem and returns `None`. `detail` is the message for a missing field.
    pub(super) fn required<'v>(&mut self, node: &Node<'v>, key: &str, detail: &str) -> Option<(&'v str, FieldPath)> {
        if self.member(node, key).is_none() {
            self.report(Problem::required(node.at.key(key), detail));
        }
        self.text(node, key)
    }

    /// Returns the string in the field `key`, which must be one of `words`. Returns the first word if the field is
    /// missing or empty. If the field has any other value, reports a problem and returns `None`.
    pub(super) fn choice<'v>(&mut self, node: &Node<'v>, key: &str, words: &[&'v str]) -> Option<&'v str> {
        let Some((word, at)) = self.text(node, key).filter(|(word, _)| !word.is_empty()) else {
            return self
                .member(node, key)
                .is_none_or(|found| found.value.is_string())
                .then(|| words.first().copied())?;
        };
        if !words.contains(&word) {
            self.report(Problem::unsupported(at, word, words));
            return None;
        }
        Some(word)
    }

    /// Returns the string in the field `key`, or the first of `words` if the field is missing or empty. If the value is
    /// not one of `words`, reports a problem and returns `None`.
    ///
    /// There is one exception: in the input of a Composition function, any other string causes only a warning. In this
    /// case, returns `default`, which is the value that the function uses instead of a string that it does not support.
    pub(super) fn lenient_choice<'v>(
        &mut self,
        node: &Node<'v>,
        key: &str,
        words: &[&'v str],
        default: &'v str,
    ) -> Option<&'v str> {
        let before = self.problems.len();
        let found = self.choice(node, key, words);
        if self.is_native() || found.is_some() || !self.member(node, key).is_some_and(|found| found.value.is_string()) {
            return found;
        }
        for problem in &mut self.problems[before..] {
            problem.is_warning = true;
            problem.help = Some(format!("the function uses {default} instead"));
        }
        Some(default)
    }

    /// Reports a problem that is an error only in a native environment (`spec.environment`). There, Crossplane up to
    /// 1.17 rejects the Composition. In the input of a Composition function, the problem is reported as a warning,
    /// because the function ignores it.
    pub(super) fn report_native(&mut self, problem: Problem) {
        let is_native = self.is_native();
        self.report(if is_native { problem } else { problem.as_warning() });
    }

    /// Returns the whole number in the optional field `key`, as a JSON value and as an integer. If the field is not a
    /// whole number, reports a problem and returns `None`.
    pub(super) fn integer<'v>(&mut self, node: &Node<'v>, key: &str) -> Option<(&'v Value, i64)> {
        let found = self.member(node, key)?;
        let number = found.value.as_i64();
        self.is(&found, number.is_some(), "must be a whole number");
        Some((found.value, number?))
    }

    /// Reports each field of an object whose name is not in `fields` as a problem.
    pub(super) fn known(&mut self, node: &Node<'_>, fields: &[&str]) {
        let Some(members) = node.value.as_object() else { return };
        for name in members.keys().filter(|name| !fields.contains(&name.as_str())) {
            self.unknown(node, members, name, fields);
        }
    }

    fn unknown(&mut self, node: &Node<'_>, members: &Map<String, Value>, name: &str, fields: &[&str]) {
        let at = node.at.key(name);
        let alike = fields.iter().find(|field| field.eq_ignore_ascii_case(name));
        let is_read = alike.is_some_and(|field| !self.is_native() && !members.contains_key(*field));
        let what = match (is_read, self.is_native()) {
            (true, _) => "Unknown field: it works only because Go ignores the case of JSON names",
            (false, true) => "Unknown field: Crossplane drops it",
            (false, false) => "Unknown field: the function ignores it",
        };
        let help = match alike.copied().or_else(|| most_similar(name, fields.iter().copied())) {
            Some(near) => format!("write {near}"),
            None => format!("known fields: {}", fields.join(", ")),
        };
        self.report(Problem::new(Topic::Unknown, at, what).help(help));
    }

    fn is(&mut self, node: &Node<'_>, holds: bool, wanted: &str) -> bool {
        if !holds {
            self.report(Problem::invalid(Topic::Structure, node.at.clone(), node.value, wanted));
        }
        holds
    }
}
