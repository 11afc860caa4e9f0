//! Evaluates a path on an object.
//!
//! Source: `FindResults` and the `eval…` functions in `jsonpath.go` of `k8s.io/client-go/util/jsonpath`, and `GetValue`
//! in Landscaper's `jsonpath.go`.

use serde_json::Value;

use super::MAX_STEPS;
use super::compare::holds;
use super::error::{PathError, Problem};
use super::item::{Datum, Item};
use super::node::{Filter, Node, Part, Slice};
use crate::admission::json;

/// The maximum nesting depth of `range`. The limit is needed because each level is a recursive call.
const MAX_RANGES: usize = 16;

/// Returns the value that Landscaper's `GetValue` finds in an object. `groups` is the parsed path. Fails if the path
/// cannot be evaluated or finds no value, or if Landscaper chooses one of several values at random.
pub(super) fn find(groups: &[Node], object: &Value) -> Result<Value, PathError> {
    let mut evaluation = Evaluation::new(groups);
    let found = evaluation.groups(0, Item::new(Datum::Value(object)), 0).map_err(|failure| failure.error)?;
    let fail = |problem| Err(PathError::new(problem, 0));
    let Some(first) = found.first() else { return fail(Problem::Empty) };
    if found.len() != 1 && first.len() != 1 {
        return fail(Problem::Count);
    }
    let Some(value) = first.first() else { return fail(Problem::NoResult) };
    let result = value.to_value();
    let differs = |other: &Item<'_>| value.is_shuffled_with(other) && other.to_value() != result;
    if evaluation.is_random || first.iter().any(differs) {
        return fail(Problem::Random);
    }
    Ok(result)
}

/// An error in the evaluation of a JSONPath. `partial` contains the values that were found before the error.
///
/// A filter without an operator, such as `[?(@.a[0])]`, needs these values. It accepts an element if `partial` is not
/// empty, even though the evaluation of `@.a[0]` has failed.
struct Failure<'a> {
    error: PathError,
    partial: Vec<Item<'a>>,
}

type Found<'a> = Result<Vec<Item<'a>>, Failure<'a>>;

struct Evaluation<'a> {
    groups: &'a [Node],
    steps: usize,
    shuffles: u32,
    is_random: bool,
    /// The number of `range` loops whose keyword was read, but that have not started yet. A loop starts after the
    /// closing brace of its expression, such as `{range .items[*]}`.
    begun: usize,
    /// The number of `range` loops that are running.
    inside: usize,
    /// The number of `end` keywords that were read, but have not yet ended an iteration of a `range` loop. A keyword
    /// ends the iteration after the closing brace of its expression, such as `{end}`.
    ending: usize,
    last_end: Option<usize>,
}

impl<'a> Evaluation<'a> {
    fn new(groups: &'a [Node]) -> Self {
        Self { groups, steps: 0, shuffles: 0, is_random: false, begun: 0, inside: 0, ending: 0, last_end: None }
    }

    /// Evaluates the expressions of a JSONPath, beginning with the expression at index `from`. Each expression is in
    /// braces, such as `{.name}`, and is evaluated on `root`. Returns the results of each expression.
    ///
    /// In a `range` loop, evaluates only the expressions up to the `end` of the loop. `depth` is the number of
    /// surrounding loops.
    fn groups(&mut self, from: usize, root: Item<'a>, depth: usize) -> Result<Vec<Vec<Item<'a>>>, Failure<'a>> {
        let groups = self.groups;
        let mut found = Vec::new();
        let mut at = from;
        while let Some(group) = groups.get(at) {
            let results = self.walk(vec![root.clone()], group)?;
            if self.ending > 0 && self.ending <= self.inside {
                self.ending -= 1;
                self.last_end = Some(at);
                break;
            }
            if self.begun > 0 {
                self.begun -= 1;
                found.append(&mut self.range(results, group, at, depth)?);
                at = self.last_end.filter(|end| *end > at).unwrap_or(at);
            } else {
                found.push(results);
            }
            at += 1;
        }
        Ok(found)
    }

    fn range(
        &mut self,
        results: Vec<Item<'a>>,
        group: &Node,
        at: usize,
        depth: usize,
    ) -> Result<Vec<Vec<Item<'a>>>, Failure<'a>> {
        if depth >= MAX_RANGES {
            return Err(failure(Problem::TooComplex, group, Vec::new()));
        }
        self.inside += 1;
        self.is_random |= results.len() > 1 && results.iter().any(|item| !item.shuffles.is_empty());
        let mut found = Vec::new();
        let nothing = results.is_empty().then(|| Item::new(Datum::Nothing));
        let is_empty = nothing.is_some();
        for mut item in results.into_iter().chain(nothing) {
            if item.is_null() {
                item.datum = Datum::Nothing;
            }
            let mut inner = self.groups(at + 1, item, depth + 1)?;
            if !is_empty {
                found.append(&mut inner);
            }
        }
        self.inside -= 1;
        Ok(found)
    }

    fn list(&mut self, input: Vec<Item<'a>>, nodes: &'a [Node]) -> Found<'a> {
        nodes.iter().try_fold(input, |items, node| self.walk(items, node))
    }

    fn walk(&mut self, input: Vec<Item<'a>>, node: &'a Node) -> Found<'a> {
        self.count(input.len() + 1, node)?;
        let each = |datum| Ok(input.iter().map(|_| Item::new(datum)).collect());
        match &node.part {
            Part::List(nodes) => self.list(input, nodes),
            Part::Text(text) => Ok(vec![Item::new(Datum::Text(text))]),
            Part::Int(int) => each(Datum::Int(*int)),
            Part::Float(float) => each(Datum::Float(*float)),
            Part::Bool(bool) => each(Datum::Bool(*bool)),
            Part::Field(name) => field(&input, name, node),
            Part::Array(slice) => self.array(input, slice, node),
            Part::Filter(filter) => self.filter(&input, filter, node),
            Part::Wildcard => self.wildcard(&input, node),
            Part::Recursive => self.recursive(input, node),
            Part::Union(members) => self.union(input, members),
            Part::Identifier(word) => self.identifier(input, word, node),
        }
    }

    /// Adds `steps` to the number of evaluation steps. Fails if the total exceeds [`MAX_STEPS`]. The error then
    /// contains the position of `node`.
    fn count(&mut self, steps: usize, node: &Node) -> Result<(), Failure<'a>> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS { Err(failure(Problem::TooComplex, node, Vec::new())) } else { Ok(()) }
    }

    fn identifier(&mut self, input: Vec<Item<'a>>, word: &str, node: &Node) -> Found<'a> {
        match word {
            "range" => {
                self.begun += 1;
                Ok(input)
            }
            "end" if self.inside > 0 => {
                self.ending += 1;
                Ok(Vec::new())
            }
            "end" => Err(failure(mismatch("not in range, nothing to end"), node, Vec::new())),
            other => Err(failure(mismatch(format!("unrecognized identifier {other}")), node, input)),
        }
    }

    fn union(&mut self, input: Vec<Item<'a>>, members: &'a [Vec<Node>]) -> Found<'a> {
        let mut found = Vec::new();
        for nodes in members {
            match self.list(input.clone(), nodes) {
                Ok(mut items) => found.append(&mut items),
                Err(failed) => return Err(Failure { error: failed.error, partial: input }),
            }
        }
        Ok(found)
    }

    fn array(&mut self, input: Vec<Item<'a>>, slice: &Slice, node: &Node) -> Found<'a> {
        let mut found = Vec::new();
        for item in &input {
            if item.is_null() {
                continue;
            }
            let elements = match item.datum {
                Datum::Value(Value::Array(elements)) => elements,
                Datum::Nothing => return Err(failure(Problem::NoResult, node, Vec::new())),
                _ => {
                    let problem = mismatch(format!("{} is not array or slice", item.type_name()));
                    return Err(failure(problem, node, input));
                }
            };
            match slice.bounds(elements.len()) {
                Ok(Some((from, to, step))) => {
                    let elements = elements.get(from..to).unwrap_or_default();
                    found.extend(elements.iter().step_by(step).map(|element| item.with(Datum::Value(element))));
                }
                // The slice selects nothing in this item; client-go then skips the following items too.
                Ok(None) => {
                    self.is_random |= !item.shuffles.is_empty();
                    return Ok(found);
                }
                Err(text) => return Err(failure(mismatch(text), node, input)),
            }
        }
        Ok(found)
    }

    fn wildcard(&mut self, input: &[Item<'a>], node: &Node) -> Found<'a> {
        let mut found = Vec::new();
        for item in input {
            found.append(&mut self.inside(item, node)?);
        }
        Ok(found)
    }

    /// Evaluates the operator `..`. Returns all non-empty maps, lists and strings among the items in `stack` and the
    /// values at any depth inside these items. Parents come before their children.
    fn recursive(&mut self, mut stack: Vec<Item<'a>>, node: &Node) -> Found<'a> {
        stack.reverse();
        let mut found = Vec::new();
        while let Some(item) = stack.pop() {
            let mut inside = self.inside(&item, node)?;
            if !inside.is_empty() {
                found.push(item);
                inside.reverse();
                stack.append(&mut inside);
            }
        }
        Ok(found)
    }

    fn inside(&mut self, item: &Item<'a>, node: &Node) -> Found<'a> {
        let shuffles = &mut self.shuffles;
        let found = item.inside(|| {
            *shuffles += 1;
            *shuffles
        });
        self.count(found.len() + 1, node)?;
        Ok(found)
    }

    fn filter(&mut self, input: &[Item<'a>], filter: &'a Filter, node: &Node) -> Found<'a> {
        let mut found = Vec::new();
        for item in input {
            let Datum::Value(value @ Value::Array(elements)) = item.datum else {
                let text = format!("{} is not array or slice and cannot be filtered", json::brief(&item.to_value()));
                return Err(failure(mismatch(text), node, input.to_vec()));
            };
            debug_assert!(value.is_array());
            for element in elements {
                let element = item.with(Datum::Value(element));
                if self.passes(&element, filter, node, input)? {
                    found.push(element);
                }
            }
        }
        Ok(found)
    }

    fn passes(
        &mut self,
        element: &Item<'a>,
        filter: &'a Filter,
        node: &Node,
        input: &[Item<'a>],
    ) -> Result<bool, Failure<'a>> {
        let left = self.list(vec![element.clone()], &filter.left);
        let Some((operator, right)) = &filter.comparison else {
            return match left {
                Err(failed) if failed.error.problem == Problem::TooComplex => Err(failed),
                Err(failed) => Ok(!failed.partial.is_empty()),
                Ok(found) => Ok(!found.is_empty()),
            };
        };
        let with_input = |failed: Failure<'a>| Failure { error: failed.error, partial: input.to_vec() };
        let several = || failure(mismatch("can only compare one element at a time"), node, input.to_vec());
        let left = left.map_err(with_input)?;
        let [left] = left.as_slice() else { return if left.is_empty() { Ok(false) } else { Err(several()) } };
        let right = self.list(vec![element.clone()], right).map_err(with_input)?;
        let [right] = right.as_slice() else { return if right.is_empty() { Ok(false) } else { Err(several()) } };
        holds(&left.datum, operator, &right.datum).map_err(|problem| failure(problem, node, Vec::new()))
    }
}

fn field<'a>(input: &[Item<'a>], name: &str, node: &Node) -> Found<'a> {
    let member = |item: &Item<'a>| match item.datum {
        Datum::Value(Value::Object(members)) => members.get(name).map(|value| item.with(Datum::Value(value))),
        _ => None,
    };
    let found: Vec<_> = input.iter().filter_map(member).collect();
    if found.is_empty() && !input.is_empty() {
        return Err(failure(Problem::NotFound(name.to_owned()), node, found));
    }
    Ok(found)
}

impl Slice {
    /// Returns start, end and step of the slice in a list of `length` elements; `None` if the slice is empty. Fails if
    /// an index is out of bounds, if the start is after the end, or if the step is not positive.
    fn bounds(&self, length: usize) -> Result<Option<(usize, usize, usize)>, String> {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let from = self.from.unwrap_or(0);
        let mut to = if self.is_index { from.wrapping_add(1) } else { self.to.unwrap_or(length) };
        let from = if from < 0 { from.wrapping_add(length) } else { from };
        if to < 0 || (to == 0 && self.is_index) {
            to = to.wrapping_add(length);
        }
        if from == to {
            return Ok(None);
        }
        let outside = |index: i64| Err(format!("array index out of bounds: index {index}, length {length}"));
        if from >= length || from < 0 {
            return outside(from);
        }
        if to > length || to < 0 {
            return outside(to.wrapping_sub(1));
        }
        if from > to {
            return Err(format!("starting index {from} is greater than ending index {to}"));
        }
        let step = usize::try_from(self.step.unwrap_or(1)).ok().filter(|step| *step > 0);
        let step = step.ok_or("step must be > 0")?;
        Ok(usize::try_from(from).ok().zip(usize::try_from(to).ok()).map(|(from, to)| (from, to, step)))
    }
}

fn mismatch(text: impl Into<String>) -> Problem {
    Problem::Mismatch(text.into())
}

fn failure<'a>(problem: Problem, node: &Node, partial: Vec<Item<'a>>) -> Failure<'a> {
    Failure { error: PathError::new(problem, node.at), partial }
}
