//! The table of scenarios, for people and for docs/systems.md.

use crate::comparison::Comparison;
use crate::page;
use crate::system::{Scenario, System};

const PAGE: &str = "docs/systems.md";
const MARKERS: [&str; 2] = ["<!-- systems: begin -->", "<!-- systems: end -->"];

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

/// Writes the table into the page.
pub fn write(table: &str) -> Result<(), String> {
    page::replace(PAGE, MARKERS, table)
}
