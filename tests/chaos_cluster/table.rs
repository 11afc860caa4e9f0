//! Writes the tables of the chaos tests into docs/reliability.md.

use std::{fs, io};

use crate::{Row, Run};

const BEGIN: &str = "<!-- chaos -->";
const END: &str = "<!-- /chaos -->";

/// Returns the tables of all runs as Markdown.
pub fn write(runs: &[Run]) -> String {
    runs.iter().map(run).collect::<Vec<_>>().join("\n")
}

fn run(run: &Run) -> String {
    let head = "| incident | times | duration | calls of a client like the API server | failed | writes through the \
                kube-apiserver | failed | failed by its metrics |\n|---|---|---|---|---|---|---|---|\n";
    let rows: String = run.rows.iter().map(|line| row(line) + "\n").collect();
    format!("Certificates: {}.\n\n{head}{rows}", run.way)
}

/// Returns the row of an incident in a table.
pub fn row(row: &Row) -> String {
    let Row { words, direct, through, counted, unanswered } = row;
    let counted = counted.map_or("–".to_owned(), |count| count.to_string());
    let away = if *unanswered > 0 { format!(" ({unanswered} found no API server)") } else { String::new() };
    format!(
        "| {words} | {} | {:.0} s | {} | {} | {}{away} | {} | {counted} |",
        direct.times,
        direct.took.as_secs_f64(),
        direct.calls,
        failed(direct.failures.len(), direct.on_the_killed),
        through.calls,
        failed(through.failures.len(), through.on_the_killed),
    )
}

fn failed(all: usize, on_the_killed: usize) -> String {
    match on_the_killed {
        0 => all.to_string(),
        count if count == all => format!("{all}, all on the killed replica"),
        count => format!("{all}, {count} of them on the killed replica"),
    }
}

/// Replaces the text between the markers of a page.
pub fn put(page: &str, text: &str) -> io::Result<()> {
    let before = fs::read_to_string(page)?;
    let (head, rest) = before.split_once(BEGIN).ok_or(io::ErrorKind::InvalidData)?;
    let (_, tail) = rest.split_once(END).ok_or(io::ErrorKind::InvalidData)?;
    fs::write(page, format!("{head}{BEGIN}\n{text}{END}{tail}"))
}
