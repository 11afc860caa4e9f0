//! Measures the admission of a Flux Kustomization whose kustomize tree is checked: with empty caches, with a cached
//! tree, and with a cached check result.
//!
//! 2 000 Kustomizations use one source of 5 000 files. The benchmark decides an AdmissionReview for each Kustomization,
//! one after another. Each time is measured from the bytes of an AdmissionReview to the bytes of its answer. Artifacts
//! come from a server on this machine. TLS and HTTP are excluded, because other tables in `docs/performance.md` measure
//! them.
//!
//! `cargo bench --bench delivery` prints the table; `-- --write` also writes it into `docs/performance.md`.
#![allow(unreachable_pub, reason = "a benchmark has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a benchmark a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report goes there")]

#[path = "../../tests/artifacts/mod.rs"]
mod artifacts;
#[allow(dead_code, reason = "the other benchmark needs more of it")]
#[path = "../kustomize/repository.rs"]
mod repository;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use artifacts::ArtifactServer;
use portcullis::admission::{Phase, review};
use portcullis::artifacts::{Artifacts, Limits, Metrics};
use portcullis::catalog::{Catalog, Coverage};
use portcullis::gate::{Gate, Policy, Registry};
use portcullis::kustomize::delivery::Artifact;
use repository::Size;
use serde_json::{Value, json};

/// Size of the generated repository: 2 000 roots, 600 bases of three files and 600 components of two files.
const SIZE: Size = Size { roots: 2_000, parts: 1_200 };
/// Number of measurements with empty caches. Each measurement uses a new [`Gate`], because the caches of a gate are no
/// longer empty after its first measurement.
const COLD_MEASUREMENTS: usize = 30;
/// Number of times that the admission of each Kustomization is measured after its check result is cached.
const PASSES: usize = 5;
const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- delivery: begin -->";
const END: &str = "<!-- delivery: end -->";

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // `cargo test --benches` runs this program without `--bench`. The measurement takes long, so it is skipped then.
    if !has("--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let table = runtime.block_on(measure());
    println!("{table}");
    if has("--write") {
        write(&table);
    }
}

async fn measure() -> String {
    let server = ArtifactServer::start();
    let artifact = server.artifact(&archive(), "main@sha1:3f2c");
    let reviews: Vec<_> = (0..SIZE.roots).map(review_of).collect();
    let mut first = Vec::new();
    for _ in 0..COLD_MEASUREMENTS {
        first.push(time_admission(&gate(&server, &artifact), &reviews[0]).await);
    }
    let gate = gate(&server, &artifact);
    time_admission(&gate, &reviews[0]).await;
    let mut cold = Vec::new();
    for review in &reviews {
        cold.push(time_admission(&gate, review).await);
    }
    let requests = server.requests(&artifact);
    let mut warm = Vec::new();
    for _ in 0..PASSES {
        for review in &reviews {
            warm.push(time_admission(&gate, review).await);
        }
    }
    assert_eq!(server.requests(&artifact), requests, "a cached artifact is fetched again");
    table(&mut [("nothing is there", first), ("the tree is there", cold), ("the verdict is there", warm)])
}

/// Generates the repository, and returns it as an archive like those of source-controller.
fn archive() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    repository::write(folder.path(), SIZE).unwrap();
    let mut files = Vec::new();
    read(folder.path(), folder.path(), &mut files);
    assert_eq!(files.len(), 5_000);
    artifacts::packed(files)
}

fn read(root: &Path, folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.push((name, fs::read(&path).unwrap()));
        }
    }
}

/// Returns a gate with empty caches. Its catalog contains the Flux source with `artifact`.
fn gate(server: &ArtifactServer, artifact: &Artifact) -> Gate {
    let registry = Registry::standard();
    let catalog = Catalog::new(registry.kinds());
    for kind in registry.kinds() {
        catalog.set_coverage(kind, Coverage::Complete);
    }
    let Artifact { url, digest, revision } = artifact;
    let source = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "fleet", "namespace": "flux-system"},
        "status": {"artifact": {"url": url, "digest": digest, "revision": revision}},
    });
    let kind = registry.kinds().into_iter().find(|kind| kind.is_kind_of(&source)).unwrap();
    catalog.insert(kind, source);
    let policy = Policy { artifact_hosts: vec![server.host()], ..Policy::default() };
    let trees = Artifacts::new(Limits::default(), Metrics::default());
    Gate::new(registry, policy, Arc::new(catalog)).with_trees(Arc::new(trees))
}

fn review_of(number: usize) -> Vec<u8> {
    let object = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": format!("r{number}"), "namespace": "flux-system"},
        "spec": {"path": format!("./{}", repository::root(number)), "prune": true, "interval": "10m",
                 "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
    });
    let group = "kustomize.toolkit.fluxcd.io";
    let review: Value = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": format!("uid-{number}"), "operation": "CREATE", "name": format!("r{number}"), "namespace": "flux-system",
            "kind": {"group": group, "version": "v1", "kind": "Kustomization"},
            "resource": {"group": group, "version": "v1", "resource": "kustomizations"},
            "userInfo": {"username": "system:serviceaccount:flux-system:kustomize-controller"},
            "object": object, "dryRun": false,
        },
    });
    review.to_string().into_bytes()
}

/// Measures how long the gate takes to answer an AdmissionReview. This includes parsing the request from `body` and
/// encoding the response. Panics if there are findings.
async fn time_admission(gate: &Gate, body: &[u8]) -> Duration {
    let start = Instant::now();
    let review = review::read(body).unwrap();
    let verdict = gate.decide(Phase::Validate, &review.request).await;
    let answer = verdict.answer(review.version, Phase::Validate, &review.request).to_json();
    let took = start.elapsed();
    assert!(verdict.findings.is_empty() && !answer.is_empty(), "{verdict:?}");
    took
}

fn table(series: &mut [(&str, Vec<Duration>)]) -> String {
    let mut text = "Made by `cargo bench --bench delivery -- --write`.\n\n".to_owned();
    text += "| admitting a Kustomization when | times | p50, ms | p99, ms |\n| :-- | --: | --: | --: |\n";
    for (what, times) in series {
        times.sort();
        let part = |part: f64| millis(times[((times.len() - 1) as f64 * part).round() as usize]);
        writeln!(text, "| {what} | {} | {:.3} | {:.3} |", times.len(), part(0.5), part(0.99)).unwrap();
    }
    text
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Writes the table into `docs/performance.md`, between the comments [`BEGIN`] and [`END`]. Replaces the old table.
fn write(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the first marker");
    let (_, after) = rest.split_once(END).expect("the page has the second marker");
    fs::write(path, format!("{before}{BEGIN}\n{table}{END}{after}")).unwrap();
}
