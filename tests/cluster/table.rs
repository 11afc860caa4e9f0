//! The table of scenarios, for docs/reliability.md.

use crate::page;
use crate::stage::Row;
use crate::streams::Counts;

const PAGE: &str = "docs/reliability.md";
const MARKERS: [&str; 2] = ["<!-- cluster: begin -->", "<!-- cluster: end -->"];
const HEAD: &str = "\
| scenario | duration | writes that fail closed | writes that fail open | failed | not checked | without an API server |
|---|--:|--:|--:|--:|--:|--:|";

/// Returns the table of the results as Markdown.
pub fn render(rows: &[Row], kubernetes: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let made =
        format!("Made by `make test-cluster WRITE=1`: portcullis {version}, Kubernetes {kubernetes}, containerd.");
    let lines = rows.iter().map(row).collect::<Vec<_>>().join("\n");
    format!("{made}\n\n{HEAD}\n{lines}\n")
}

fn row(row: &Row) -> String {
    let (description, duration) = (row.scenario.description, row.duration.as_secs());
    let counts = row.counts.as_ref().map_or_else(|| "| | | | |".to_owned(), cells);
    let failed = if row.failure.is_some() { " **failed**" } else { "" };
    format!("| {description}{failed} | {duration} s {counts} |")
}

fn cells([closed, open]: &[Counts; 2]) -> String {
    let sum = |of: fn(&Counts) -> usize| of(closed) + of(open);
    let (failed, unchecked) = (sum(|counts| counts.failed), sum(|counts| counts.unchecked));
    let without_api_server = sum(|counts| counts.without_api_server);
    format!("| {} | {} | {failed} | {unchecked} | {without_api_server}", closed.writes, open.writes)
}

/// Writes the table into docs/reliability.md.
pub fn write(table: &str) -> Result<(), String> {
    page::replace(PAGE, MARKERS, table)
}
