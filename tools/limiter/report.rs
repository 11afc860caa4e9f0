//! Prints the results of the simulation.

use std::time::Duration;

use super::QueuePolicy;
use super::simulation::{Load, Outcome, run};

const MICRO: Duration = Duration::from_micros(1);
const MILLI: Duration = Duration::from_millis(1);

/// The default parameters, as in `server::limits`.
const POLICY: QueuePolicy = QueuePolicy {
    overload_deadline: Duration::from_millis(2),
    deadline: Duration::from_secs(1),
    burst: Duration::from_millis(100),
    burst_length: 75,
    idle_credit: 5,
};

/// Prints a table for each load, with a row for each set of parameters.
pub fn report() {
    let parameter_sets = [
        ("all", POLICY),
        ("no `overload_deadline`: 1 s", QueuePolicy { overload_deadline: POLICY.deadline, ..POLICY }),
        ("no `deadline`: 2 ms", QueuePolicy { deadline: POLICY.overload_deadline, ..POLICY }),
        ("no `burst`: overload at once", QueuePolicy { burst: Duration::ZERO, ..POLICY }),
        ("no `burst_length`", QueuePolicy { burst_length: 0, ..POLICY }),
        ("no `idle_credit`: 1 for 1", QueuePolicy { idle_credit: 1, ..POLICY }),
        ("no `idle_credit`: full at once", QueuePolicy { idle_credit: u32::MAX, ..POLICY }),
    ];
    for (title, load) in loads() {
        println!("\n{title}\n\n| parameters | decided | rejected | decided: p50 | p99 | p99.9 | rejected: p99 |");
        println!("|:--|--:|--:|--:|--:|--:|--:|");
        for (name, policy) in parameter_sets {
            row(name, &run(policy, load));
        }
    }
}

fn loads() -> [(&'static str, Load); 8] {
    let (typical, composite, second) = (40 * MICRO, 550 * MICRO, Duration::from_secs(1));
    [
        ("Composites (550 µs) at three times the capacity, for 10 s", Load::open(composite, 3.0, 10 * second)),
        ("Usual requests (40 µs) at three times the capacity, for 10 s", Load::open(typical, 3.0, 10 * second)),
        ("Usual requests at nine tenths of the capacity, for 10 s", Load::open(typical, 0.9, 10 * second)),
        ("A burst of 200 composites every second", Load::bursts(composite, 200, second)),
        ("A burst of 100 composites (55 ms) every 66 ms", Load::bursts(composite, 100, 66 * MILLI)),
        ("A burst of 100 composites (55 ms) every 100 ms", Load::bursts(composite, 100, 100 * MILLI)),
        ("75 connections that always have a request, usual requests", Load::closed(typical, 75)),
        ("25 connections that always have a request after an overload", Load::closed_after_overload(typical, 25)),
    ]
}

fn row(name: &str, result: &Outcome) {
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| millis(&result.decided, part));
    let (decided, rejected) = (result.decided.len(), result.rejected.len());
    println!("| {name} | {decided} | {rejected} | {p50} | {p99} | {p999} | {} |", millis(&result.rejected, 0.99));
}

fn millis(sorted: &[Duration], part: f64) -> String {
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at).map_or("–".to_owned(), |time| format!("{:.2} ms", time.as_secs_f64() * 1e3))
}
