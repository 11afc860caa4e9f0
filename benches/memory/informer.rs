//! Measures the memory of a client-go informer. The informer caches the same objects as Portcullis in this benchmark.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::cache::{self, Cache, CacheError};
use crate::objects::Row;
use crate::server::Memory;

const SOURCES: [&str; 3] =
    [include_str!("informer/go.mod"), include_str!("informer/go.sum"), include_str!("informer/main.go")];
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/memory/informer");

/// The memory of the informer: its Go heap in bytes, and the memory of its process.
pub struct Informer {
    pub heap: u64,
    pub memory: Memory,
}

#[derive(Deserialize)]
struct Report {
    objects: usize,
    heap: u64,
    status: String,
}

impl Informer {
    /// Runs an informer that lists the objects of the kinds in `rows`, and returns its memory. The Go heap is measured
    /// after a garbage collection.
    pub fn measure(kubeconfig: &Path, rows: &[Row]) -> Self {
        let program = Cache::open(&cache::key(&SOURCES)).and_then(|cache| cache.entry("informer", build)).unwrap();
        let resource = |row: &Row| format!("{}/{}/{}", row.group, row.version, row.plural);
        let mut command = Command::new(program.join("informer"));
        command.arg(kubeconfig).args(rows.iter().map(resource)).stderr(Stdio::inherit());
        let answer = command.output().unwrap();
        let report: Report = serde_json::from_slice(&answer.stdout).unwrap();
        assert_eq!(report.objects, rows.iter().map(|row| row.count).sum::<usize>());
        Self { heap: report.heap, memory: Memory::of(&report.status) }
    }
}

fn build(folder: &Path) -> Result<(), CacheError> {
    eprintln!("building an informer with Go: a minute the first time, then kept");
    let mut command = Command::new("go");
    command.current_dir(FOLDER).env("GOWORK", "off").args(["build", "-mod=readonly", "-buildvcs=false", "-o"]);
    assert!(command.arg(folder.join("informer")).status().expect("Go is installed").success());
    Ok(())
}
