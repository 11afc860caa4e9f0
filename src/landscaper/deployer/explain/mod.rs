//! The contract told from its tables: as text, as Markdown for the documentation, and as a drawing.

mod graph;

pub use graph::{mermaid, svg};

use super::machine::{Actor, MOVES, Move, STATES, State, StateRow};
use super::phase::PHASES;
use super::promises::PROMISES;

/// The moves from one state to another that the same party makes.
pub struct Edge {
    /// Before.
    pub from: State,
    /// After.
    pub to: State,
    /// Who makes them.
    pub by: Actor,
    /// What they are called.
    pub names: Vec<&'static str>,
}

/// The moves in the order of their table, those of the same ends and party together.
pub fn edges() -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    for Move { from, to, by, name } in &MOVES {
        match edges.iter_mut().find(|edge| (edge.from, edge.to, edge.by) == (*from, *to, *by)) {
            Some(edge) => edge.names.push(name),
            None => edges.push(Edge { from: *from, to: *to, by: *by, names: vec![name] }),
        }
    }
    edges
}

/// For a terminal.
pub fn text() -> String {
    let mut text = String::from("The life of a DeployItem\n");
    for StateRow { state, name, job, phase, meaning, kept_out_by } in &STATES {
        let ids = format!("jobID and jobIDFinished {job}, phase {phase}");
        text += &format!("\n{name}: {meaning}\n  {ids}\n");
        if let Some(rule) = kept_out_by {
            text += &format!("  kept out by {rule}\n");
        }
        for edge in edges().iter().filter(|edge| edge.from == *state) {
            text += &format!("  → {}  ({}: {})\n", edge.to.row().name, edge.by.as_str(), edge.names.join(", "));
        }
    }
    text += "\nPromises\n\n";
    for promise in PROMISES {
        text += &format!("{}  {}\n", promise.rule, promise.sentence);
    }
    text
}

/// Tables for the documentation.
pub fn markdown() -> String {
    let mut text = String::from("| state | jobID, jobIDFinished | phase | what it means |\n|---|---|---|---|\n");
    for StateRow { name, job, phase, meaning, kept_out_by, .. } in &STATES {
        let kept_out = kept_out_by.map(|rule| format!("; kept out by [{rule}](rules/{rule}.md)")).unwrap_or_default();
        text += &format!("| {name} | {job} | {phase} | {meaning}{kept_out} |\n");
    }
    text += "\n| from | to | who | write |\n|---|---|---|---|\n";
    for Edge { from, to, by, names } in edges() {
        text += &format!("| {} | {} | {} | {} |\n", from.row().name, to.row().name, by.as_str(), names.join(", "));
    }
    text += "\n| rule | promise |\n|---|---|\n";
    for promise in PROMISES {
        text += &format!("| [{0}](rules/{0}.md) | {1} |\n", promise.rule, promise.sentence);
    }
    text += "\n| phase | what it says |\n|---|---|\n";
    for (_, name, meaning) in PHASES {
        text += &format!("| {} | {meaning} |\n", if name.is_empty() { "none" } else { name });
    }
    text
}
