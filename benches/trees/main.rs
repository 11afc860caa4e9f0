//! Measures the time that the controller manager needs to compute the component trees of 10 000 Installations. The
//! registry contains 1 000 component versions. There are three measurements: with empty caches, with full caches, and
//! after a new overwrite has replaced a component in many of the trees.
//!
//! The registry runs in the same process and answers immediately, so that only the time of Portcullis is measured.
//!
//! `cargo bench --bench trees` prints the table; `-- --write` also writes it into `docs/performance.md`.
#![allow(dead_code, unreachable_pub, reason = "shared with tests, which use more of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a benchmark a panic is the report")]
#![allow(clippy::print_stdout, reason = "the report goes there")]

#[path = "../../tests/registry/fake.rs"]
mod fake;
#[path = "../../tests/registry/push.rs"]
mod push;
#[path = "../../tests/registry/scale.rs"]
mod scale;

use std::time::{Duration, Instant};

const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- trees: begin -->";
const END: &str = "<!-- trees: end -->";
/// Number of times that the measurement with warm caches is repeated. The caches then contain all component versions.
const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // `cargo test --benches` runs this program without `--bench`. The measurement takes long, so it is skipped then.
    if !has("--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let table = runtime.block_on(measure());
    println!("{table}");
    if has("--write") {
        let page = std::fs::read_to_string(PAGE).expect("the page exists");
        let (before, rest) = page.split_once(BEGIN).expect("the page has the first marker");
        let (_, after) = rest.split_once(END).expect("the page has the second marker");
        std::fs::write(PAGE, format!("{before}{BEGIN}\n{table}{END}{after}")).expect("the page can be written");
    }
}

async fn measure() -> String {
    let scale_test = scale::ScaleTest::new().await;
    let (cold, _) = time_pass(&scale_test).await;
    let requests = scale_test.count_requests().1;
    let mut warm = Vec::new();
    for _ in 0..ROUNDS {
        warm.push(time_pass(&scale_test).await.0);
    }
    warm.sort_unstable();
    scale_test.overwrite(&scale::example_overwrite());
    let (changed, overwritten) = time_pass(&scale_test).await;
    assert_eq!(scale_test.count_requests().1, requests, "a request to the registry was repeated");
    let line = |what: &str, took: Duration, requests: usize| {
        let each = took / u32::try_from(scale::INSTALLATIONS_COUNT).unwrap();
        format!("| {what} | {:.2} s | {each:.0?} | {requests} |\n", took.as_secs_f64())
    };
    let mut table = String::from("| 10 000 Installations | all | each | requests |\n|---|---:|---:|---:|\n");
    table += &line("cold: nothing is known", cold, requests);
    table += &line("warm: everything is known", warm[ROUNDS / 2], 0);
    table += &line(&format!("one change of the overwrites, {overwritten} references become others"), changed, 0);
    table
}

async fn time_pass(scale_test: &scale::ScaleTest) -> (Duration, usize) {
    let begin = Instant::now();
    let kept = scale_test.compute_records().await;
    assert_eq!(kept.complete, scale::INSTALLATIONS_COUNT);
    (begin.elapsed(), kept.overwritten)
}
