//! Compares modules of Portcullis with crates that do the same: the log writer with tracing-appender, the log formats
//! with those of tracing-subscriber, and the work queue with the scheduler of kube-runtime.
//!
//! `cargo bench --bench crates` prints the tables; `-- --write` also writes them into `docs/performance.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a benchmark a panic is the report")]
#![allow(unreachable_pub, reason = "a benchmark has no other crate to reach")]
#![allow(clippy::print_stdout, reason = "the report goes there")]

mod log;
mod queue;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- crates: begin -->";
const END: &str = "<!-- crates: end -->";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // `cargo test --benches` runs this program without `--bench`.
    if !has("--bench") {
        return;
    }
    let tables = format!("{}\n{}", log::table(), queue::table());
    println!("{tables}");
    if has("--write") {
        let page = std::fs::read_to_string(PAGE).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("the page has the first marker");
        let (_, after) = rest.split_once(END).expect("the page has the second marker");
        std::fs::write(PAGE, format!("{before}{BEGIN}\n{tables}{END}{after}")).unwrap();
    }
}
