//! Writes the tables of the chaos tests into docs/reliability.md.

use std::{fs, io};

use crate::{Row, Run};

const BEGIN: &str = "<!-- chaos -->";
const END: &str = "<!-- /chaos -->";

/// Returns Markdown with one table for each test run.
pub fn render(runs: &[Run]) -> String {
    runs.iter().map(run).collect::<Vec<_>>().join("\n")
}

fn run(run: &Run) -> String {
    let head = "| incident | times | duration | calls of a client like the API server | failed | writes through the \
                kube-apiserver | failed | failed by its metrics |\n|---|---|---|---|---|---|---|---|\n";
    let rows: String = run.rows.iter().map(|line| row(line) + "\n").collect();
    format!("Certificates: {}.\n\n{head}{rows}", run.way)
}

/// Returns a row of a table, as Markdown. The row contains the results of one incident.
pub fn row(row: &Row) -> String {
    let Row { description, direct, through_api_server, counted_by_api_server, other_errors } = row;
    let counted_by_api_server = counted_by_api_server.map_or("–".to_owned(), |count| count.to_string());
    let note = if *other_errors > 0 { format!(" ({other_errors} found no API server)") } else { String::new() };
    format!(
        "| {description} | {} | {:.0} s | {} | {} | {}{note} | {} | {counted_by_api_server} |",
        direct.times,
        direct.duration.as_secs_f64(),
        direct.calls,
        failed(direct.failures.len(), direct.explained_by_kill),
        through_api_server.calls,
        failed(through_api_server.failures.len(), through_api_server.explained_by_kill),
    )
}

fn failed(all: usize, explained_by_kill: usize) -> String {
    match explained_by_kill {
        0 => all.to_string(),
        count if count == all => format!("{all}, all on the killed replica"),
        count => format!("{all}, {count} of them on the killed replica"),
    }
}

/// Replaces the text between the markers `<!-- chaos -->` and `<!-- /chaos -->` in the file `page` with `text`.
pub fn replace_in_page(page: &str, text: &str) -> io::Result<()> {
    let before = fs::read_to_string(page)?;
    let (head, rest) = before.split_once(BEGIN).ok_or(io::ErrorKind::InvalidData)?;
    let (_, tail) = rest.split_once(END).ok_or(io::ErrorKind::InvalidData)?;
    fs::write(page, format!("{head}{BEGIN}\n{text}{END}{tail}"))
}
