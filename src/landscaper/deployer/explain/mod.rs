//! Formats the deployer contract as text, Markdown and drawings. The contract consists of states, transitions and
//! requirements.

mod graph;

pub use graph::{mermaid, svg};

use super::machine::{Actor, STATES, State, StateInfo, TRANSITIONS, Transition};
use super::phase::PHASES;
use super::requirements::REQUIREMENTS;

/// An edge in the state graph of a DeployItem. It combines all transitions with the same start state, end state and
/// actor.
pub struct Edge {
    /// The state of the DeployItem before the transitions.
    pub from: State,
    /// The state of the DeployItem after the transitions.
    pub to: State,
    /// The component that changes the state from `from` to `to`: Landscaper or a deployer.
    pub by: Actor,
    /// The names of all transitions that `by` makes from the state `from` to the state `to`, such as `pickup`.
    pub names: Vec<&'static str>,
}

/// Returns the transitions of a DeployItem, grouped by states and actor, in the order of [`TRANSITIONS`].
pub fn edges() -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    for Transition { from, to, by, name } in &TRANSITIONS {
        match edges.iter_mut().find(|edge| (edge.from, edge.to, edge.by) == (*from, *to, *by)) {
            Some(edge) => edge.names.push(name),
            None => edges.push(Edge { from: *from, to: *to, by: *by, names: vec![name] }),
        }
    }
    edges
}

/// Returns the states, transitions and requirements of the deployer contract as text for a terminal.
pub fn text() -> String {
    let mut text = String::from("The states of a DeployItem\n");
    for StateInfo { state, name, job, phase, meaning, prevented_by } in &STATES {
        let ids = format!("jobID and jobIDFinished {job}, phase {phase}");
        text += &format!("\n{name}: {meaning}\n  {ids}\n");
        if let Some(rule) = prevented_by {
            text += &format!("  prevented by {rule}\n");
        }
        for edge in edges().iter().filter(|edge| edge.from == *state) {
            text += &format!("  → {}  ({}: {})\n", edge.to.info().name, edge.by.as_str(), edge.names.join(", "));
        }
    }
    text += "\nRequirements\n\n";
    for requirement in REQUIREMENTS {
        text += &format!("{}  {}\n", requirement.rule, requirement.sentence);
    }
    text
}

/// Returns the states, transitions, requirements and phases of the deployer contract as Markdown tables for the
/// documentation.
pub fn markdown() -> String {
    let mut text = String::from("| state | jobID, jobIDFinished | phase | meaning |\n|---|---|---|---|\n");
    for StateInfo { name, job, phase, meaning, prevented_by, .. } in &STATES {
        let kept_out = prevented_by.map(|rule| format!("; prevented by [{rule}](rules/{rule}.md)")).unwrap_or_default();
        text += &format!("| {name} | {job} | {phase} | {meaning}{kept_out} |\n");
    }
    text += "\n| from | to | actor | write |\n|---|---|---|---|\n";
    for Edge { from, to, by, names } in edges() {
        text += &format!("| {} | {} | {} | {} |\n", from.info().name, to.info().name, by.as_str(), names.join(", "));
    }
    text += "\n| rule | requirement |\n|---|---|\n";
    for requirement in REQUIREMENTS {
        text += &format!("| [{0}](rules/{0}.md) | {1} |\n", requirement.rule, requirement.sentence);
    }
    text += "\n| phase | meaning |\n|---|---|\n";
    for (_, name, meaning) in PHASES {
        text += &format!("| {} | {meaning} |\n", if name.is_empty() { "none" } else { name });
    }
    text
}
