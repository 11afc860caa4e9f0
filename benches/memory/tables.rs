//! Measures the memory that a server needs for objects, first with objects from files, and then with the same objects
//! from an API server.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use serde_json::json;

use crate::informer::Informer;
use crate::objects::{ROWS, Row, all_rows};
use crate::server::{Memory, Program, Server};
use crate::stage::PopulatedCluster;
use crate::{megabytes, thousands};

/// Number of objects in one file.
const OBJECTS_PER_FILE: usize = 500;
/// The part of the chart's default memory limit that is meant for the catalog, in bytes. The alert
/// `PortcullisCatalogLarge` fires if the catalog is larger.
const CATALOG_LIMIT: u64 = 256 << 20;
/// Number of objects of one kind. The table of kinds shows how much memory this many objects of each kind need.
const OBJECTS_PER_KIND: u64 = 10_000;

/// The results of one run: the measurements of a server that has the objects described by `rows`.
struct Measured {
    rows: Vec<Row>,
    json: u64,
    memory: Memory,
    /// The size of the catalog in bytes, as the metrics of the server report it.
    catalog_bytes: f64,
    ready: Duration,
    /// Time that a simple client needs to get the JSON of the objects from the API server or from files, and to read
    /// every byte.
    transfer_time: Duration,
    informer: Option<Informer>,
}

impl Measured {
    /// Measures the memory usage of a running server, and the time until it is ready. `rows` describes the objects in
    /// its catalog. `json` is the size of these objects as JSON in bytes. `transfer_time` is the time that a simple
    /// client needs to read them.
    fn of(server: &mut Server, rows: &[Row], json: u64, transfer_time: Duration) -> Self {
        let ready = server.wait_until_ready();
        let (memory, catalog_bytes) = (server.settled_memory(), server.metric("portcullis_catalog_bytes", rows));
        let stored = server.metric("portcullis_catalog_objects", rows) as usize;
        assert_eq!(stored, rows.iter().map(|row| row.count).sum::<usize>());
        Self { rows: rows.to_vec(), json, memory, catalog_bytes, ready, transfer_time, informer: None }
    }

    /// Returns the memory of the objects: the resident memory of the measured server, minus that of an empty server.
    fn objects_memory(&self, empty: Memory) -> u64 {
        self.memory.resident.saturating_sub(empty.resident)
    }

    fn table_row(&self, empty: Memory) -> String {
        let Self { rows, json, memory, catalog_bytes, ready, transfer_time, informer } = self;
        let peak = memory.peak as f64 / memory.resident as f64;
        let go = informer.as_ref().map_or_else(String::new, |informer| {
            format!(" {} | {} |", megabytes(informer.heap), megabytes(informer.memory.resident))
        });
        let resident = format!("{:.1}", memory.resident as f64 / 1e6);
        if rows.is_empty() {
            return format!("| nothing | – | {resident} | – | {peak:.2} | – | {:.2} | – |{go}\n", ready.as_secs_f64());
        }
        let times = |bytes: u64| bytes as f64 / *json as f64;
        format!(
            "| {} | {} | {resident} | {:.2} ({:.2}) | {peak:.2} | {:.1} | {:.2} | {:.2} |{go}\n",
            name_of(rows),
            megabytes(*json),
            times(memory.resident),
            times(self.objects_memory(empty)),
            catalog_bytes / 1e6,
            ready.as_secs_f64(),
            ready.as_secs_f64() / transfer_time.as_secs_f64(),
        )
    }
}

const HEADER: &str = "| stored | JSON, MB | resident, MB | times the JSON | peak, times that | `portcullis_catalog_bytes`, MB | ready \
                    after, s | times transfer and scan |";
const SEPARATOR: &str = "|---|--:|--:|--:|--:|--:|--:|--:|";

fn name_of(rows: &[Row]) -> String {
    match rows {
        [row] => format!("{} {}", thousands(row.count), row.name),
        rows => format!("everything: {} objects", thousands(rows.iter().map(|row| row.count).sum())),
    }
}

/// Returns the rows that each run measures. A [`Row`] describes the objects of one kind. The first run has no rows and
/// measures an empty server. Then each row has its own run. The last run measures all kinds together.
fn runs() -> Vec<Vec<Row>> {
    let single = ROWS.iter().map(|row| vec![*row]);
    std::iter::once(Vec::new()).chain(single).chain([all_rows()]).collect()
}

/// Performs all runs that [`runs`] returns, and returns their results. `measure` performs one run. Its argument is the
/// list of rows, each of which describes the objects of one kind.
fn measure_all(measure: impl Fn(&[Row]) -> Measured) -> Vec<Measured> {
    let report = |rows: Vec<Row>| {
        let measured = measure(&rows);
        eprint!("{}", measured.table_row(Memory { resident: 0, peak: 0 }));
        measured
    };
    runs().into_iter().map(report).collect()
}

/// Formats the results as a Markdown table. The first element of `measured` must be the result of an empty server.
/// `columns` adds columns to the table: the first string contains their titles, and the second string contains their
/// cells in the separator line.
fn table(measured: &[Measured], columns: [&str; 2]) -> String {
    let lines: String = measured.iter().map(|row| row.table_row(measured[0].memory)).collect();
    format!("{HEADER}{}\n{SEPARATOR}{}\n{lines}", columns[0], columns[1])
}

/// Measures the memory of servers that read objects from files. Returns a Markdown table with the measurements of all
/// runs.
pub fn from_files(program: &Program) -> String {
    let measured = measure_all(|rows| {
        let folder = tempfile::tempdir().unwrap();
        let json = rows.iter().map(|row| write(row, folder.path())).sum();
        let before = scan(folder.path());
        let mut server = program.serve(&["--manifests".as_ref(), folder.path().as_os_str()]);
        let measured = Measured::of(&mut server, rows, json, before);
        // The time is measured before and after, because other processes may be busy at one of these times.
        Measured { transfer_time: (before + scan(folder.path())) / 2, ..measured }
    });
    table(&measured, ["", ""])
}

/// Reads and parses the JSON files in a folder. Returns the time that this takes.
fn scan(folder: &Path) -> Duration {
    let begun = Instant::now();
    for entry in fs::read_dir(folder).unwrap() {
        let _: IgnoredAny = serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
    }
    begun.elapsed()
}

/// Writes the objects that `row` describes to files in `folder`, as Lists. Returns the total size of the files in
/// bytes.
fn write(row: &Row, folder: &Path) -> u64 {
    let mut written = 0;
    for first in (0..row.count).step_by(OBJECTS_PER_FILE) {
        let items: Vec<_> = (first..row.count.min(first + OBJECTS_PER_FILE)).map(|number| row.object(number)).collect();
        let text = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        written += text.len() as u64;
        fs::write(folder.join(format!("{}-{first:06}.json", row.plural)), text).unwrap();
    }
    written
}

/// Measures the memory of servers that read objects from an API server, and of client-go informers that read the same
/// objects. Returns two Markdown tables: the measurements of all runs, and the memory for the objects of each kind.
pub fn from_cluster(program: &Program) -> (String, String) {
    let measured = measure_all(|rows| {
        let cluster = PopulatedCluster::with(rows);
        let (json, before) = cluster.transfer();
        let kubeconfig = cluster.kubeconfig();
        let mut server = program.serve_cluster(&cluster);
        let measured = Measured::of(&mut server, rows, json, before);
        let informer = Some(Informer::measure(&kubeconfig, rows));
        Measured { transfer_time: (before + cluster.transfer().1) / 2, informer, ..measured }
    });
    (table(&measured, [" Go informer, heap, MB | resident, MB |", "--:|--:|"]), kinds(&measured))
}

/// Returns the table of kinds, which shows the memory of the objects of each kind.
fn kinds(measured: &[Measured]) -> String {
    let empty = measured[0].memory;
    let mut text = format!(
        "| objects | JSON of one | resident, {} of them |\n|---|--:|--:|\n",
        thousands(OBJECTS_PER_KIND as usize)
    );
    for one in measured {
        if let [row] = &one.rows[..] {
            let (count, objects_memory) = (row.count as u64, one.objects_memory(empty));
            let (json, resident) = (one.json / count / 1000, megabytes(objects_memory * OBJECTS_PER_KIND / count));
            text.push_str(&format!("| {} | {json} KB | {resident} MB |\n", row.kind));
        }
    }
    let largest = measured.last().expect("there are runs");
    let objects = name_of(&largest.rows).replacen('e', "E", 1);
    let (json, objects_memory) = (megabytes(largest.json), largest.objects_memory(empty));
    let share = 100.0 * objects_memory as f64 / CATALOG_LIMIT as f64;
    let (objects_memory, catalog) = (megabytes(objects_memory), CATALOG_LIMIT >> 20);
    text.push_str(&format!(
        "\n{objects}, {json} MB of JSON, take {objects_memory} MB: {share:.0} % of {catalog} MiB.\n"
    ));
    text
}
