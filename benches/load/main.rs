//! Measures latency, overload and endurance with an open-loop client.
//!
//! A closed-loop client, which waits for an answer before its next request, omits the moments at which the server is
//! slow ("coordinated omission"). This client follows a schedule of random arrivals, and measures from the scheduled
//! time. It keeps connections like three API servers, 25 each.
//!
//! `cargo bench --bench load -- latency` (or `overload`, `soak`) prints a table; `--write` writes it into
//! `docs/reliability.md`. `--seconds=N` and `--rate=N` set duration and rate, `--binary=PATH` measures another build of
//! Portcullis.
#![allow(unreachable_pub, reason = "a benchmark has no other crate to reach")]
#![allow(dead_code, reason = "some modules are those of another benchmark")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a benchmark a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report goes there")]

#[path = "../admission/catalogs.rs"]
mod catalogs;
mod client;
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

/// The allocator of the baseline, the same as that of `portcullis`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, certs] = &arguments[..]
        && word == floor::WORD
    {
        return floor::run(certs.as_ref());
    }
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // Without cargo's word for "do not just see whether it runs": it takes minutes.
    if !has("--bench") {
        return;
    }
    let setting = Setting::new(&arguments);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run_all = !has("overload") && !has("soak");
    if run_all || has("latency") {
        page::finish("latency", &runtime.block_on(latency::run(&setting)), has("--write"));
    }
    if has("overload") {
        page::finish("overload", &runtime.block_on(overload::run(&setting)), has("--write"));
    }
    if has("soak") {
        page::finish("soak", &runtime.block_on(soak::run(&setting)), has("--write"));
    }
}
