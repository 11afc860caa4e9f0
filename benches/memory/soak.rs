//! Measures the memory of a server whose objects change continuously.

use std::time::Duration;

use crate::objects::{ROWS, Row};
use crate::server::Program;
use crate::stage::PopulatedCluster;
use crate::thousands;

/// Number of changes of objects per second.
const RATE: u32 = 200;

/// Changes objects for the time `length`, and returns a table of the server's memory.
pub fn table(program: &Program, length: Duration) -> String {
    let rows: Vec<_> = ROWS.iter().map(|row| Row { count: row.count / 10, ..*row }).collect();
    let cluster = PopulatedCluster::with(&rows);
    let mut server = program.serve_cluster(&cluster);
    server.wait_until_ready();
    let mut samples = vec![(Duration::ZERO, 0, server.settled_memory().resident)];
    cluster.change(length, RATE, |elapsed, changes| {
        let resident = server.memory().resident;
        eprintln!("after {:.0} s: {changes} changes, {:.1} MB", elapsed.as_secs_f64(), resident as f64 / 1e6);
        samples.push((elapsed, changes, resident));
    });
    report(&samples, cluster.count())
}

/// Returns a table with one sample per minute, and a comparison of the last quarter of the run with its second quarter.
fn report(samples: &[(Duration, usize, u64)], objects: usize) -> String {
    let mut text = format!("{} objects, {RATE} changes a second:\n\n", thousands(objects));
    text.push_str("| after, s | changes | resident, MB |\n|--:|--:|--:|\n");
    for (elapsed, changes, resident) in samples.iter().step_by(6) {
        text.push_str(&format!("| {:.0} | {changes} | {:.1} |\n", elapsed.as_secs_f64(), *resident as f64 / 1e6));
    }
    let quarter = samples.len() / 4;
    let mean = |samples: &[(Duration, usize, u64)]| {
        samples.iter().map(|(.., resident)| *resident as f64).sum::<f64>() / samples.len() as f64
    };
    if quarter > 0 {
        let (second, last) = (mean(&samples[quarter..2 * quarter]), mean(&samples[samples.len() - quarter..]));
        text.push_str(&format!("\nThe last quarter has {:.3} times the memory of the second.\n", last / second));
    }
    text
}
