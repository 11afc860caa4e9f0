//! LS009: templates that wait for each other, or for nothing.

use std::collections::HashMap;

use serde_json::Value;

use super::templates::{self, Template};
use super::{Findings, WRITES};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::execution;
use crate::landscaper::kinds::{self, EXECUTIONS};
use crate::near;
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&EXECUTIONS, WRITES, Outage::Admit)];

/// The row of LS009.
pub(super) static RULE: Rule = Rule {
    id: "LS009",
    name: "landscaper-dependencies",
    level: Level::Off,
    summary: "a template in an Execution that depends on one that is not there, or on itself by way of others",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "A DeployItem waits for those that its template depends on. Templates that wait for each other in a \
              circle, or for one that there is not, wait for ever. Where two have one name nothing is said, as it \
              is not clear which is meant; LS008 tells of these. Landscaper's own webhook server refuses the same; \
              the rule is off unless it is to stand in for that.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Execution
metadata:
  name: test-installation
  namespace: cu-example
spec:
  deployItems:
    - name: first
      type: example.org/my-type
      config: {}
      dependsOn: [second]
    - name: second
      type: example.org/my-type
      config: {}
      dependsOn: [first]
",
        },
        right: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Execution
metadata:
  name: test-installation
  namespace: cu-example
spec:
  deployItems:
    - name: first
      type: example.org/my-type
      config: {}
    - name: second
      type: example.org/my-type
      config: {}
      dependsOn: [first]
",
        },
        mend: "Take one of the dependencies of the circle away; spell the name as the other template does.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let Ok(templates) = execution::list(findings.spec()) else { return Vec::new() };
    let templates = templates::of(&templates);
    let names: HashMap<_, _> = templates.iter().enumerate().map(|(at, template)| (template.text("name"), at)).collect();
    // Which of two of one name is meant is not clear; that is for another rule to tell. Several may have none.
    let unnamed = templates.iter().filter(|template| template.text("name").is_empty()).count();
    if names.len() + unnamed.saturating_sub(1) < templates.len() {
        return Vec::new();
    }
    for template in &templates {
        for missing in dependencies(template).filter(|name| !names.contains_key(name)) {
            let near = near::nearest(missing, names.keys().copied()).map(|near| format!(", did you mean {near:?}?"));
            let message = template.message(&format!("it depends on {missing:?}, which is not there"));
            let help = format!("name a template of this Execution{}", near.unwrap_or_default());
            findings.add(template.place.clone(), message, help);
        }
    }
    for cycle in cycles(&templates, &names) {
        let place = templates.first().map_or_else(FieldPath::root, |template| template.list.clone());
        let mut told: Vec<_> = cycle.iter().take(MOST_NAMES).map(|at| templates[*at].text("name")).collect();
        told.extend((cycle.len() > MOST_NAMES).then_some("…"));
        told.extend(cycle.first().map(|at| templates[*at].text("name")));
        let message = format!("templates wait for each other: {}", told.join(" → "));
        findings.add(place, message, "take one of these dependencies away");
    }
    findings.into_found()
}

fn dependencies<'t>(template: &Template<'t>) -> impl Iterator<Item = &'t str> + use<'t> {
    let list = execution::member(template.value, "dependsOn").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// The most circles that are told: each may be as long as the list.
const MOST_CYCLES: usize = 10;
/// The most templates that are named of one.
const MOST_NAMES: usize = 20;

/// The circles, each once: a walk in depth, whose path is kept in a list because it can be long.
fn cycles(templates: &[Template<'_>], names: &HashMap<&str, usize>) -> Vec<Vec<usize>> {
    let next = |at: usize| -> Vec<usize> {
        dependencies(&templates[at]).filter_map(|name| names.get(name).copied()).collect()
    };
    let mut walk = Walk { seen: vec![false; templates.len()], depth: vec![None; templates.len()], path: Vec::new() };
    let mut cycles = Vec::new();
    for start in 0..templates.len() {
        if !walk.seen[start] && cycles.len() < MOST_CYCLES {
            walk.enter(start, next(start));
        }
        while let Some((at, ahead)) = walk.path.last_mut().filter(|_| cycles.len() < MOST_CYCLES) {
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

/// A walk from template to template.
struct Walk {
    seen: Vec<bool>,
    /// How far up the path a template is; `None` beside it.
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
