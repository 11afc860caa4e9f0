//! Measures the resident memory of `portcullis serve` with the objects of large clusters.
//!
//! Objects come from files, and from a real API server by watch; there a Go program with an informer of client-go holds the
//! same objects. Each row is a server of its own. `peak` is the most that the process ever had.
//!
//! `cargo bench --bench memory -- files`, `-- cluster` and `-- soak` print a table each; without a name, the first two.
//! `--write` puts them into `docs/performance.md`. The soak changes 200 objects a second for ten minutes, or `--seconds=`, and
//! samples the memory every ten seconds.
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
#[path = "../../tests/e2e/http.rs"]
mod http;
mod informer;
#[path = "../../tests/e2e/kubectl.rs"]
mod kubectl;
mod objects;
mod server;
mod stage;
#[path = "../../tests/e2e/user.rs"]
mod user;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use serde_json::json;

use crate::informer::Informer;
use crate::objects::{ROWS, Row, everything};
use crate::server::{Memory, Server};
use crate::stage::Stage;

const PAGE: &str = "docs/performance.md";
/// Objects in one file.
const IN_A_FILE: usize = 500;
/// Object changes a second in the soak.
const RATE: u32 = 200;

/// Measures and returns a table.
type Table = fn(&Arguments, &Path) -> String;

fn main() {
    let arguments = Arguments(std::env::args().skip(1).collect());
    // Without this flag cargo only checks that the benchmark starts.
    if !arguments.has("--bench") {
        return;
    }
    cleanup::clear_on_signals().expect("a process may handle its signals");
    let certs = tempfile::tempdir().unwrap();
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["certs", "--out"])
        .arg(certs.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let tables: [(&str, Table); 3] =
        [("files", |_, certs| from_files(certs)), ("cluster", |_, certs| from_cluster(certs)), ("soak", soak)];
    let is_wanted = |name: &str| arguments.has(name) || name != "soak" && !arguments.names_a_table();
    for (name, measure) in tables.into_iter().filter(|(name, _)| is_wanted(name)) {
        let table = measure(&arguments, certs.path());
        println!("{table}");
        if arguments.has("--write") {
            write_table(name, &table);
        }
    }
}

/// What the benchmark was started with.
struct Arguments(Vec<String>);

impl Arguments {
    fn has(&self, wanted: &str) -> bool {
        self.0.iter().any(|argument| argument == wanted)
    }

    fn names_a_table(&self) -> bool {
        ["files", "cluster", "soak"].iter().any(|name| self.has(name))
    }

    /// Returns the value of `--name=value`.
    fn number(&self, name: &str) -> Option<u64> {
        self.0.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    }
}

/// Puts a table into the page, between its marks.
fn write_table(name: &str, table: &str) {
    let (begin, end) = (format!("<!-- memory-{name}: begin -->"), format!("<!-- memory-{name}: end -->"));
    let page = fs::read_to_string(PAGE).expect("the page exists");
    let (before, rest) = page.split_once(&begin).expect("the page has a place for the table");
    let (_, after) = rest.split_once(&end).expect("the place has an end");
    fs::write(PAGE, format!("{before}{begin}\n{table}{end}{after}")).expect("the page can be written");
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

fn empty(certs: &Path) -> Memory {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(certs, &["--manifests".as_ref(), folder.path().as_os_str()]);
    server.ready();
    server.settled()
}

/// The results for some objects.
struct Measured {
    name: String,
    json: u64,
    memory: Memory,
    /// The size that its metrics report.
    counted: f64,
    ready: Duration,
    /// The time to transfer the JSON and read every byte.
    scanned: Duration,
    informer: Option<Informer>,
}

impl Measured {
    fn line(&self, empty: Memory) -> String {
        let Self { name, json, memory, counted, ready, scanned, informer } = self;
        let times = |bytes: u64| bytes as f64 / *json as f64;
        let own = memory.resident.saturating_sub(empty.resident);
        let go = informer.as_ref().map_or_else(String::new, |informer| {
            format!(" {} | {} |", megabytes(informer.heap), megabytes(informer.memory.resident))
        });
        format!(
            "| {name} | {} | {} | {:.2} ({:.2}) | {:.2} | {:.0} | {:.1} | {:.1} |{go}\n",
            megabytes(*json),
            megabytes(memory.resident),
            times(memory.resident),
            times(own),
            memory.peak as f64 / memory.resident as f64,
            counted / 1e6,
            ready.as_secs_f64(),
            ready.as_secs_f64() / scanned.as_secs_f64(),
        )
    }
}

const HEAD: &str = "| stored | JSON, MB | resident, MB | times the JSON | peak, times that | `portcullis_catalog_bytes`, MB | ready \
                    after, s | times transfer and scan |";
const RULE: &str = "|---|--:|--:|--:|--:|--:|--:|--:|";

fn name_of(rows: &[Row]) -> String {
    match rows {
        [row] => format!("{} {}", thousands(row.count), row.name),
        rows => format!("everything: {} objects", thousands(rows.iter().map(|row| row.count).sum())),
    }
}

fn thousands(count: usize) -> String {
    if count >= 1000 { format!("{},{:03}", count / 1000, count % 1000) } else { count.to_string() }
}

/// Returns the rows individually, and all together.
fn runs() -> Vec<Vec<Row>> {
    ROWS.iter().map(|row| vec![*row]).chain([everything()]).collect()
}

/// Says what the empty server takes.
fn preface(empty: Memory) -> String {
    let resident = megabytes(empty.resident);
    format!("The empty server takes {resident} MB; \"times the JSON\" includes it, and in brackets it does not.\n\n")
}

fn from_files(certs: &Path) -> String {
    let empty = empty(certs);
    let mut text = format!("{}{HEAD}\n{RULE}\n", preface(empty));
    for rows in runs() {
        let folder = tempfile::tempdir().unwrap();
        let json = rows.iter().map(|row| write(row, folder.path())).sum();
        let begun = Instant::now();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let _: IgnoredAny = serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        }
        let scanned = begun.elapsed();
        let server = Server::start(certs, &["--manifests".as_ref(), folder.path().as_os_str()]);
        let ready = server.ready();
        let (memory, counted) = (server.settled(), server.metric("portcullis_catalog_bytes", &rows));
        assert_eq!(
            server.metric("portcullis_catalog_objects", &rows) as usize,
            rows.iter().map(|row| row.count).sum::<usize>()
        );
        let measured = Measured { name: name_of(&rows), json, memory, counted, ready, scanned, informer: None };
        let line = measured.line(empty);
        eprint!("{line}");
        text.push_str(&line);
    }
    text
}

/// Writes the objects of a row as Lists; returns the bytes.
fn write(row: &Row, folder: &Path) -> u64 {
    let mut written = 0;
    for first in (0..row.count).step_by(IN_A_FILE) {
        let items: Vec<_> = (first..row.count.min(first + IN_A_FILE)).map(|number| row.object(number)).collect();
        let text = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        written += text.len() as u64;
        fs::write(folder.join(format!("{}-{first:06}.json", row.plural)), text).unwrap();
    }
    written
}

fn from_cluster(certs: &Path) -> String {
    let empty = empty(certs);
    let mut text = format!("{}{HEAD} Go informer, heap, MB | resident, MB |\n{RULE}--:|--:|\n", preface(empty));
    for rows in runs() {
        let stage = Stage::with(&rows);
        let (json, scanned) = stage.transfer();
        let kubeconfig = stage.kubeconfig();
        let server = Server::start(certs, &["--kubeconfig".as_ref(), kubeconfig.as_os_str()]);
        let ready = server.ready();
        let (memory, counted) = (server.settled(), server.metric("portcullis_catalog_bytes", &rows));
        assert_eq!(server.metric("portcullis_catalog_objects", &rows) as usize, stage.count());
        let informer = Some(Informer::measure(&kubeconfig, &rows));
        // Before and after, as other processes are busy at times.
        let scanned = (scanned + stage.transfer().1) / 2;
        let measured = Measured { name: name_of(&rows), json, memory, counted, ready, scanned, informer };
        let line = measured.line(empty);
        eprint!("{line}");
        text.push_str(&line);
    }
    text
}

/// Changes objects all the time, and samples what the server takes.
fn soak(arguments: &Arguments, certs: &Path) -> String {
    let length = Duration::from_secs(arguments.number("--seconds").unwrap_or(600));
    let rows: Vec<_> = ROWS.iter().map(|row| Row { count: row.count / 10, ..*row }).collect();
    let stage = Stage::with(&rows);
    let kubeconfig = stage.kubeconfig();
    let server = Server::start(certs, &["--kubeconfig".as_ref(), kubeconfig.as_os_str()]);
    server.ready();
    let mut samples = vec![(Duration::ZERO, 0, server.settled().resident)];
    stage.change(length, RATE, |elapsed, changes| {
        let resident = server.memory().resident;
        eprintln!("after {:.0} s: {changes} changes, {:.1} MB", elapsed.as_secs_f64(), resident as f64 / 1e6);
        samples.push((elapsed, changes, resident));
    });
    soaked(&samples, stage.count())
}

/// Writes a sample of each minute, and compares the last quarter with the second.
fn soaked(samples: &[(Duration, usize, u64)], objects: usize) -> String {
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
