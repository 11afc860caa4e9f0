//! LS009: reports DeployItem templates with circular dependencies, or with dependencies that do not exist.

use std::collections::HashMap;

use serde_json::Value;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::execution;
use crate::landscaper::kinds::{self, EXECUTIONS};
use crate::landscaper::validation::Findings;
use crate::landscaper::validation::templates::{self, Template};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};
use crate::suggestion;

static MATCHERS: [Match; 1] = [kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Ignore)];

/// The definition of rule LS009.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "LS009",
        name: "landscaper-dependencies",
        level: Level::Off,
        summary: "a template in an Execution that depends on a missing template, or on itself through other templates",
        page: include_str!("../../../docs/rules/LS009.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let Ok(templates) = execution::list(findings.spec()) else { return Vec::new() };
    let templates = templates::of(&templates);
    let names: HashMap<_, _> = templates.iter().enumerate().map(|(at, template)| (template.text("name"), at)).collect();
    // With duplicate names, a dependency is ambiguous; LS008 reports these. Several templates may have no name.
    let unnamed = templates.iter().filter(|template| template.text("name").is_empty()).count();
    if names.len() + unnamed.saturating_sub(1) < templates.len() {
        return Vec::new();
    }
    for template in &templates {
        for missing in dependencies(template).filter(|name| !names.contains_key(name)) {
            let near = suggestion::most_similar(missing, names.keys().copied())
                .map(|near| format!("; did you mean {near:?}?"));
            let message = template.message(&format!("it depends on {missing:?}, which does not exist"));
            let help = format!("name a template of this Execution{}", near.unwrap_or_default());
            findings.add(template.place.clone(), message, help);
        }
    }
    for cycle in cycles(&templates, &names) {
        let place = templates.first().map_or_else(FieldPath::root, |template| template.list.clone());
        let mut path: Vec<_> = cycle.iter().take(MAX_NAMES).map(|at| templates[*at].text("name")).collect();
        path.extend((cycle.len() > MAX_NAMES).then_some("…"));
        path.extend(cycle.first().map(|at| templates[*at].text("name")));
        let message = format!("circular dependency: {}", path.join(" → "));
        findings.add(place, message, "remove one of these dependencies");
    }
    findings.into_found()
}

fn dependencies<'t>(template: &Template<'t>) -> impl Iterator<Item = &'t str> + use<'t> {
    let list = execution::member(template.value, "dependsOn").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// Maximum number of reported cycles, to bound the size of the findings. Each cycle may be as long as the list of
/// templates.
const MAX_CYCLES: usize = 10;
/// Maximum number of templates that a finding names for one cycle.
const MAX_NAMES: usize = 20;

/// Finds dependency cycles between templates. Each cycle is a list of indexes of templates. `names` maps the name of
/// each template to its index. The depth-first search is iterative, because recursion could overflow the stack.
fn cycles(templates: &[Template<'_>], names: &HashMap<&str, usize>) -> Vec<Vec<usize>> {
    let next = |at: usize| -> Vec<usize> {
        dependencies(&templates[at]).filter_map(|name| names.get(name).copied()).collect()
    };
    let mut walk = Walk { seen: vec![false; templates.len()], depth: vec![None; templates.len()], path: Vec::new() };
    let mut cycles = Vec::new();
    for start in 0..templates.len() {
        if !walk.seen[start] && cycles.len() < MAX_CYCLES {
            walk.enter(start, next(start));
        }
        while let Some((at, ahead)) = walk.path.last_mut().filter(|_| cycles.len() < MAX_CYCLES) {
            match ahead.next() {
                None => {
                    walk.depth[*at] = None;
                    walk.path.pop();
                }
                Some(to) => match walk.depth[to] {
                    Some(from) => cycles.push(walk.path[from..].iter().map(|(on_path, _)| *on_path).collect()),
                    None if walk.seen[to] => {}
                    None => walk.enter(to, next(to)),
                },
            }
        }
    }
    cycles
}

/// The state of the depth-first search for cycles in the dependencies of templates.
struct Walk {
    seen: Vec<bool>,
    /// For each template, its index in `path`; `None` if the template is not in `path`. The list `path` contains the
    /// templates from the start of the search to the current template.
    depth: Vec<Option<usize>>,
    path: Vec<(usize, std::vec::IntoIter<usize>)>,
}

impl Walk {
    fn enter(&mut self, at: usize, ahead: Vec<usize>) {
        self.seen[at] = true;
        self.depth[at] = Some(self.path.len());
        self.path.push((at, ahead.into_iter()));
    }
}
