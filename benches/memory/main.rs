//! Measures the resident memory of `portcullis serve` with the objects of large clusters. There are three measurements:
//!
//! - `files`: The server reads the objects from files.
//! - `cluster`: The server watches the objects in a real API server. For comparison, a Go program with a client-go
//!   informer is measured with the same objects.
//! - `soak`: 200 objects per second change for ten minutes (or `--seconds=N`) while one server runs. Its memory is
//!   sampled every ten seconds.
//!
//! `files` and `cluster` each print a table. Each row is about a separate server process, and `peak` is its peak
//! resident memory.
//!
//! `cargo bench --bench memory -- files`, `-- cluster` and `-- soak` select the measurement. The default is `files` and
//! `cluster`. `--write` writes the printed tables into `docs/performance.md`, and the memory of each kind into
//! `docs/operating.md`. `--binary=PATH` measures another build of Portcullis.
#![allow(dead_code, unreachable_pub, reason = "shared with tests, which use more of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a benchmark a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report goes there")]

#[path = "../../tests/e2e/assets.rs"]
mod assets;
#[path = "../../tests/e2e/cache.rs"]
mod cache;
#[path = "../../tests/e2e/cleanup.rs"]
mod cleanup;
#[path = "../../tests/e2e/cluster.rs"]
mod cluster;
#[path = "../../tests/e2e/control_plane.rs"]
mod control_plane;
#[path = "../../tests/e2e/daemon.rs"]
mod daemon;
#[path = "../../tests/e2e/delivery_crds.rs"]
mod delivery_crds;
mod etcd;
#[path = "../admission/executable.rs"]
mod executable;
#[path = "../../tests/e2e/http.rs"]
mod http;
mod informer;
#[path = "../../tests/e2e/kubectl.rs"]
mod kubectl;
mod objects;
mod pod;
mod server;
mod soak;
mod stage;
mod tables;
#[path = "../../tests/e2e/user.rs"]
mod user;

use std::fs;
use std::time::Duration;

use crate::server::Program;

const PAGE: &str = "docs/performance.md";
/// The documentation page with the table of memory per kind, which this benchmark writes.
const OPERATING: &str = "docs/operating.md";
/// Default duration of the measurement `soak`, in seconds.
const SOAK_SECONDS: u64 = 600;

fn main() {
    let arguments = Arguments(std::env::args().skip(1).collect());
    // `cargo test --benches` runs this program without `--bench`.
    if !arguments.has("--bench") {
        return;
    }
    cleanup::clean_up_on_signals().expect("signal handlers can be installed");
    let program = Program::new(arguments.text("--binary"));
    let wants = |name: &str| arguments.has(name) || name != "soak" && !arguments.names_a_table();
    let print = |page: &str, name: &str, table: &str| {
        println!("{table}");
        if arguments.has("--write") {
            write_table(page, name, table);
        }
    };
    if wants("files") {
        print(PAGE, "files", &tables::from_files(&program));
    }
    if wants("cluster") {
        let (table, kinds) = tables::from_cluster(&program);
        print(PAGE, "cluster", &table);
        print(OPERATING, "kinds", &kinds);
    }
    if wants("soak") {
        let seconds =
            arguments.text("--seconds").map_or(SOAK_SECONDS, |seconds| seconds.parse().expect("--seconds is a number"));
        print(PAGE, "soak", &soak::table(&program, Duration::from_secs(seconds)));
    }
}

/// The command-line arguments of the benchmark.
struct Arguments(Vec<String>);

impl Arguments {
    fn has(&self, wanted: &str) -> bool {
        self.0.iter().any(|argument| argument == wanted)
    }

    fn names_a_table(&self) -> bool {
        ["files", "cluster", "soak"].iter().any(|name| self.has(name))
    }

    /// Returns the value of the argument `--name=value`.
    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Writes a table into a page, between the markers with this name.
fn write_table(page: &str, name: &str, table: &str) {
    let (begin, end) = (format!("<!-- memory-{name}: begin -->"), format!("<!-- memory-{name}: end -->"));
    let text = fs::read_to_string(page).expect("the page exists");
    let (before, rest) = text.split_once(&begin).expect("the page has the first marker");
    let (_, after) = rest.split_once(&end).expect("the page has the second marker");
    fs::write(page, format!("{before}{begin}\n{table}{end}{after}")).expect("the page can be written");
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

fn thousands(count: usize) -> String {
    if count >= 1000 { format!("{},{:03}", count / 1000, count % 1000) } else { count.to_string() }
}
