//! Measures the cost of an admission request, compared with a baseline server that uses the same TLS and HTTP but makes
//! no decision.
//!
//! Servers are separate processes. A client in this process calls them over 25 keep-alive connections, like an API
//! server, and reads their CPU time from the kernel. Rounds of all variants are interleaved, so that other load on the
//! machine affects them equally. `docs/performance.md` has the results.
//!
//! `cargo bench --bench admission` prints the tables. These arguments change what it does:
//! - `-- --write` also writes the tables into `docs/performance.md`.
//! - `-- --rounds=N` sets the number of rounds.
//! - `-- memory` prints only the table `memory`. The other tables are `sizes`, `overwrites` and `catalogs`.
//! - `-- --binary=PATH` measures another build of Portcullis.
//! - `-- --before=PATH` only compares the measured build with the build at this path.
#![allow(unreachable_pub, reason = "a benchmark has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a benchmark a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report goes there")]

mod called;
mod catalogs;
mod executable;
mod floor;
mod process;
mod report;
mod reviews;
mod rounds;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::version::TLS13;
use tempfile::TempDir;

use called::{Call, ConnectedServer, Memory};
use executable::Executable;
use report::{Comparison, Costs, Report};
use rounds::Rounds;
use support::client;
use support::pki::{Authority, SecretMount};

/// The allocator of the baseline server, the same as that of `portcullis`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Default number of rounds. The benchmark then takes a few minutes.
const ROUNDS: usize = 15;
const KIB: usize = 1024;
/// The measured sizes of AdmissionReviews in bytes. Each size is followed by a count: in each round, each call with a
/// review of this size is made at least that many times. The counts are chosen so that each size takes a few tenths of
/// a second per round.
const SIZES: [(usize, usize); 4] = [(KIB, 10_000), (3 * KIB, 10_000), (6 * KIB, 7_500), (2 * KIB * KIB, 100)];
/// The entry of [`SIZES`] with the typical size of a review. The report compares the costs for this size with a target.
/// There is no target for other sizes.
const TYPICAL: (usize, usize) = SIZES[1];
/// The measured sizes of the catalog, as numbers of objects. The costs for the second and the third size are compared
/// with the costs for the first size.
const CATALOGS: [usize; 3] = [10, 1_000, 100_000];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [argument, certs] = &arguments[..]
        && argument == floor::ARGUMENT
    {
        return floor::run(certs.as_ref());
    }
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // `cargo test --benches` runs this program without `--bench`. The measurement takes minutes, so it is skipped then.
    if !has("--bench") {
        return;
    }
    let (runtime, bench) = (tokio::runtime::Runtime::new().unwrap(), Bench::new(&arguments));
    if let Some(before) = arguments.iter().find_map(|argument| argument.strip_prefix("--before=")) {
        let comparison = runtime.block_on(bench.compare_with(before.as_ref()));
        print!("{comparison}");
        if has("--write") {
            comparison.write();
        }
        return;
    }
    let report = runtime.block_on(bench.run());
    print!("{report}");
    if has("--write") {
        report.write();
    }
}

/// Certificates, folders and options that all measurements share.
struct Bench {
    mount: SecretMount,
    client: Arc<ClientConfig>,
    folder: TempDir,
    /// The executable of the measured build.
    executable: Executable,
    rounds: usize,
    /// The names of the tables to measure. If the list is empty, all tables are measured.
    tables: Vec<String>,
}

impl Bench {
    fn new(arguments: &[String]) -> Self {
        let authority = Authority::new();
        let client = Arc::new(client::config(&authority.root, &[&TLS13]));
        let value = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name));
        Self {
            mount: SecretMount::new(&authority.leaf()),
            client,
            folder: TempDir::new().unwrap(),
            executable: Executable::copy_of(value("--binary=").unwrap_or(process::PORTCULLIS).as_ref()),
            rounds: value("--rounds=").map_or(ROUNDS, |number| number.parse().expect("--rounds is a number")),
            tables: arguments.iter().filter(|argument| !argument.starts_with("--")).cloned().collect(),
        }
    }

    async fn run(&self) -> Report {
        let mut report = Report::new(self.rounds);
        if self.is_selected("memory") {
            report.memory = self.memory(self.executable.path()).await;
        }
        if self.is_selected("sizes") {
            for (size, count) in SIZES {
                report.costs.extend(self.by_size(size, count).await);
            }
        }
        if self.is_selected("overwrites") {
            report.costs.extend(self.overwrites().await);
        }
        if self.is_selected("catalogs") {
            report.catalogs = self.by_catalog().await;
        }
        report
    }

    fn is_selected(&self, what: &str) -> bool {
        let is_selected = self.tables.is_empty() || self.tables.iter().any(|table| table == what);
        if is_selected {
            eprintln!("measuring {what} …");
        }
        is_selected
    }

    /// Measures the costs of several calls to Portcullis, compared with a call to the baseline server. The review in
    /// each call has `size` bytes. In each round, each call is made at least `count` times.
    async fn by_size(&self, size: usize, count: usize) -> Vec<Costs> {
        let (unhandled, installation) = (reviews::unhandled(size), reviews::installation(size));
        let mut rounds = Rounds::new(count, self.rounds);
        let floor = rounds.server(self.start_floor().await);
        let server = rounds.server(self.start_portcullis(CATALOGS[0]).await);
        rounds.call(floor, Call::new("floor", "/validate", &installation, floor::ANSWER));
        rounds.call(server, Call::new("unhandled, /validate", "/validate", &unhandled, ALLOWED).aim(2.0));
        rounds.call(server, Call::new("Installation, /validate", "/validate", &installation, ALLOWED).aim(4.0));
        rounds.call(server, Call::new("Installation, /mutate", "/mutate", &installation, PATCHED).aim(4.0));
        rounds.run().await
    }

    /// Measures the cost of a review of a ComponentVersionOverwrites object with 100 entries. Several rules check this
    /// object.
    async fn overwrites(&self) -> Vec<Costs> {
        let review = reviews::overwrites(100);
        let mut rounds = Rounds::new(TYPICAL.1 / 10, self.rounds);
        let floor = rounds.server(self.start_floor().await);
        let server = rounds.server(self.start_portcullis(CATALOGS[0]).await);
        rounds.call(floor, Call::new("floor", "/validate", &review, floor::ANSWER));
        rounds.call(server, Call::new("100 overwrites, /validate", "/validate", &review, ALLOWED));
        rounds.run().await
    }

    /// Measures the cost of a review of an Installation with each catalog size in [`CATALOGS`]. Returns each size with
    /// the costs for this size.
    async fn by_catalog(&self) -> Vec<(usize, Vec<Costs>)> {
        let installation = reviews::installation(TYPICAL.0);
        let mut rounds = Rounds::new(TYPICAL.1, self.rounds);
        let floor = rounds.server(self.start_floor().await);
        rounds.call(floor, Call::new("floor", "/validate", &installation, floor::ANSWER));
        for objects in CATALOGS {
            let server = rounds.server(self.start_portcullis(objects).await);
            rounds.call(server, Call::new("/validate", "/validate", &installation, ALLOWED));
            rounds.call(server, Call::new("/mutate", "/mutate", &installation, PATCHED));
        }
        let costs = rounds.run().await;
        CATALOGS.into_iter().zip(costs.chunks(2).map(<[Costs]>::to_vec)).collect()
    }

    /// Compares the measured build of Portcullis with another build. `before` is the path of the other build's
    /// executable. Compares the memory usage of the builds, and the cost of reviews of the same Installation.
    async fn compare_with(&self, before: &Path) -> Comparison {
        let before = Executable::copy_of(before);
        let builds = [before.path(), self.executable.path()];
        let memory = [self.memory(builds[0]).await, self.memory(builds[1]).await];
        let mut comparison = Comparison { rounds: self.rounds, costs: Vec::new(), memory };
        for objects in CATALOGS {
            for (path, expected) in [("/validate", ALLOWED), ("/mutate", PATCHED)] {
                let mut rounds = Rounds::new(TYPICAL.1, self.rounds);
                for build in builds {
                    let server = rounds.server(self.start_build(build, objects).await);
                    rounds.call(server, Call::new(path, path, &reviews::installation(TYPICAL.0), expected));
                }
                let costs = rounds.run().await;
                comparison.costs.extend(costs.into_iter().map(|costs| (objects, costs)));
            }
        }
        comparison
    }

    /// Measures the resident memory of a server with an empty catalog. `build` is the path of its executable. Returns
    /// three results: after the start, after reviews of typical size, and after the largest reviews.
    async fn memory(&self, build: &Path) -> Vec<Memory> {
        let mut server = self.start_build(build, 0).await;
        let mut memory = vec![server.memory("started, 25 connections")];
        for (size, count) in [TYPICAL, SIZES[3]] {
            for (path, review) in [("/validate", reviews::unhandled(size)), ("/mutate", reviews::installation(size))] {
                server.post(&Call::new("", path, &review, ALLOWED), count).await;
            }
            memory.push(server.memory(&format!("after {count} reviews each of {}", report::bytes(size))));
        }
        memory
    }

    async fn start_floor(&self) -> ConnectedServer {
        ConnectedServer::connect(process::floor(self.mount.path()), &self.client).await
    }

    /// Starts the measured build with a catalog of `objects` objects.
    async fn start_portcullis(&self, objects: usize) -> ConnectedServer {
        self.start_build(self.executable.path(), objects).await
    }

    async fn start_build(&self, build: &Path, objects: usize) -> ConnectedServer {
        let manifests: PathBuf = self.folder.path().join(objects.to_string());
        if !manifests.exists() {
            catalogs::write(&manifests, objects);
        }
        ConnectedServer::connect(process::portcullis(build, self.mount.path(), &manifests), &self.client).await
    }
}

/// Part of the answer to an admitted request.
const ALLOWED: &str = r#""allowed":true"#;
/// Part of the answer to a request that is admitted with a patch.
const PATCHED: &str = r#""patchType":"JSONPatch""#;
