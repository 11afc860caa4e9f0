//! Measures latency, overload and endurance with an open-loop client.
//!
//! A closed-loop client waits for an answer before its next request, so it omits the moments at which the server is
//! slow ("coordinated omission"). The client of this benchmark sends requests at random times of a schedule. It
//! measures each response time from the scheduled time of the request. It keeps as many connections open as three API
//! servers, with 25 connections for each.
//!
//! `cargo bench --bench load -- latency` (or `overload`, `soak`) prints a table; `--write` also writes it into
//! `docs/reliability.md`. `--seconds=N` sets the duration, `--rate=N` the requests per second of `soak`, and
//! `--binary=PATH` measures another build of Portcullis.
#![allow(unreachable_pub, reason = "a benchmark has no other crate to reach")]
#![allow(dead_code, reason = "some modules are those of another benchmark")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a benchmark a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report goes there")]

#[path = "../admission/catalogs.rs"]
mod catalogs;
mod client;
#[path = "../admission/executable.rs"]
mod executable;
#[path = "../admission/floor.rs"]
mod floor;
mod latency;
#[path = "../environment/objects.rs"]
mod objects;
mod overload;
mod page;
#[path = "../admission/process.rs"]
mod process;
#[path = "../admission/reviews.rs"]
mod reviews;
mod samples;
mod setting;
mod soak;
#[path = "../../tests/support/mod.rs"]
mod support;

use setting::Setting;

/// The allocator of this benchmark executable, which also runs the baseline server. `portcullis` uses the same
/// allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, certs] = &arguments[..]
        && word == floor::ARGUMENT
    {
        return floor::run(certs.as_ref());
    }
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // `cargo test --benches` runs this program without `--bench`. The measurement takes minutes, so it is skipped then.
    if !has("--bench") {
        return;
    }
    let setting = Setting::new(&arguments);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run_all = !has("overload") && !has("soak");
    if run_all || has("latency") {
        page::print_and_write("latency", &runtime.block_on(latency::run(&setting)), has("--write"));
    }
    if has("overload") {
        page::print_and_write("overload", &runtime.block_on(overload::run(&setting)), has("--write"));
    }
    if has("soak") {
        page::print_and_write("soak", &runtime.block_on(soak::run(&setting)), has("--write"));
    }
}
