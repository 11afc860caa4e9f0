//! The table of results. It is printed at the end of a run, and written into docs/systems.md.

use crate::comparison::Comparison;
use crate::page;
use crate::system::{Scenario, System};

const PAGE: &str = "docs/systems.md";
const MARKERS: [&str; 2] = ["<!-- systems: begin -->", "<!-- systems: end -->"];

/// A tested system, such as Flux, with the results of its scenarios.
pub struct SystemResult<'a> {
    pub system: &'a System,
    /// The results of the scenarios that have run.
    pub comparisons: Vec<Comparison<'a>>,
    /// The scenarios that were not run, because a program that they need is not built. `make test` replays their
    /// recorded requests.
    pub skipped: Vec<&'static Scenario>,
}

/// Returns the table of results as Markdown.
pub fn render(results: &[SystemResult<'_>]) -> String {
    let mut lines = vec![
        "| system | scenario | without | with | calls | denied | added latency |".to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    for result in results {
        let title = (result.system.title)();
        lines.extend(result.comparisons.iter().map(|comparison| row(&title, comparison)));
        let skipped = result.skipped.iter();
        lines.extend(skipped.map(|scenario| {
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

/// Writes the table of results into docs/systems.md.
pub fn write(table: &str) -> Result<(), String> {
    page::replace(PAGE, MARKERS, table)
}
