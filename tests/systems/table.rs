//! The table of scenarios, for people and for docs/systems.md.

use std::fs;
use std::path::PathBuf;

use crate::comparison::Comparison;
use crate::system::{Scenario, System};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/systems.md");
const BEGIN: &str = "<!-- systems: begin -->";
const END: &str = "<!-- systems: end -->";

/// What was played of a system.
pub struct SystemResult<'a> {
    /// The system.
    pub system: &'a System,
    /// Its scenarios.
    pub comparisons: Vec<Comparison<'a>>,
    /// Those whose program is not built: their recorded traffic is replayed in `make test`.
    pub recorded: Vec<&'static Scenario>,
}

/// Returns the table as Markdown.
pub fn render(results: &[SystemResult<'_>]) -> String {
    let mut lines = vec![
        "| system | scenario | without | with | calls | denied | added latency |".to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    for result in results {
        let title = (result.system.title)();
        lines.extend(result.comparisons.iter().map(|comparison| row(&title, comparison)));
        let recorded = result.recorded.iter();
        lines.extend(recorded.map(|scenario| {
            format!("| {title} | {} | recorded: replayed in `make test` | | | | |", scenario.description)
        }));
    }
    lines.join("\n") + "\n"
}

fn row(title: &str, comparison: &Comparison<'_>) -> String {
    let (words, latency) = (comparison.scenario.description, comparison.added_latency());
    let writes = |count: usize| format!("{count} writes");
    let (without, with) = (writes(comparison.without.writes.len()), writes(comparison.with.writes.len()));
    let verdict = if comparison.check().is_ok() { "the same" } else { "**differs**" };
    let (calls, denied) = (comparison.with.decisions.len(), comparison.denied());
    format!("| {title} | {words} | {without} | {with}, {verdict} | {calls} | {denied} | {latency:+.1} ms |")
}

/// Puts the table into the page.
pub fn write(table: &str) -> Result<(), String> {
    let path = PathBuf::from(PAGE);
    let page = fs::read_to_string(&path).map_err(|error| format!("{PAGE}: {error}"))?;
    let (before, rest) = page.split_once(BEGIN).ok_or_else(|| format!("{PAGE} has no {BEGIN}"))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| format!("{PAGE} has no {END}"))?;
    fs::write(&path, format!("{before}{BEGIN}\n\n{table}\n{END}{after}")).map_err(|error| format!("{PAGE}: {error}"))
}
