//! Runs all incidents of the chaos tests, and prints the table for docs/reliability.md. `make chaos` runs this program.
//!
//! The incidents happen once with self-managed certificates, and once with certificates of a mounted Secret. In both
//! runs, one client calls the replicas directly, and other clients write through the kube-apiserver.
#![allow(unreachable_pub, reason = "a test binary has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is the result")]
#![allow(dead_code, reason = "the cluster of the end-to-end tests can do more")]

#[path = "../artifacts/mod.rs"]
mod artifacts;
#[path = "../e2e/assets.rs"]
mod assets;
#[path = "../e2e/cache.rs"]
mod cache;
#[path = "mod.rs"]
mod chaos_cluster;
#[path = "../e2e/cleanup.rs"]
mod cleanup;
#[path = "../e2e/cluster.rs"]
mod cluster;
#[path = "../support/collector.rs"]
mod collector;
#[path = "../e2e/context.rs"]
mod context;
#[path = "../e2e/control_plane.rs"]
mod control_plane;
#[path = "../e2e/controller_manager.rs"]
mod controller_manager;
#[path = "../e2e/daemon.rs"]
mod daemon;
#[path = "../e2e/delivery_crds.rs"]
mod delivery_crds;
#[path = "../e2e/gate.rs"]
mod gate;
#[path = "../e2e/helm.rs"]
mod helm;
#[path = "../e2e/http.rs"]
mod http;
#[path = "../e2e/kubectl.rs"]
mod kubectl;
#[path = "../e2e/manifests.rs"]
mod manifests;
#[path = "../e2e/sentences.rs"]
mod sentences;
#[path = "../support/mod.rs"]
mod support;
mod table;
#[path = "../e2e/user.rs"]
mod user;

use std::process::ExitCode;

use crate::support::deadline;
use chaos_cluster::calls::{Callers, DirectClient};
use chaos_cluster::incidents::{Incident, Outcome};
use chaos_cluster::stage::{Certificates, TestEnvironment};
use chaos_cluster::writers::{Writers, failed_webhook_calls};

const RESTARTS: usize = 20;
const ROTATIONS: usize = 5;
/// Lifetime of leaf certificates in seconds. A replica renews its leaf certificate after two thirds of this time. The
/// renewal needs the API server, so the last third is longer than a restart of the API server.
const LEAF_LIFE: u32 = 75;

/// The results of one test run. In a test run, the server uses one source of certificates, and all incidents for this
/// source occur one after the other.
struct Run {
    way: &'static str,
    rows: Vec<Row>,
}

/// The results of one incident. During the incident, one client calls the webhooks directly, and writers create objects
/// through the API server.
struct Row {
    description: &'static str,
    direct: Outcome,
    through_api_server: Outcome,
    /// The number of failed webhook calls, as counted by the metrics of the API server. `None` for a restart of the API
    /// server, which resets the metrics.
    counted_by_api_server: Option<usize>,
    /// The number of writes that failed although no webhook call failed and no webhook rejected the object. For
    /// example, the API server was not available.
    other_errors: usize,
}

fn main() -> ExitCode {
    cleanup::clean_up_on_signals().expect("a process may handle its signals");
    let arguments: Vec<String> = std::env::args().collect();
    let runs = [
        run_incidents("self-managed", Certificates::SelfManaged { leaf_life: LEAF_LIFE }),
        run_incidents("a mounted Secret (cert-manager, or your own)", Certificates::mounted()),
    ];
    let text = table::render(&runs);
    println!("{text}");
    if arguments.iter().any(|argument| argument == "--write") {
        table::replace_in_page("docs/reliability.md", &text).expect("the page can be written");
    }
    let unexplained: usize = runs.iter().flat_map(|run| &run.rows).map(Row::unexplained).sum();
    if unexplained == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_incidents(way: &'static str, certificates: Certificates) -> Run {
    let mut incidents = vec![(Incident::Restart, RESTARTS), (Incident::Rotation, ROTATIONS)];
    if matches!(certificates, Certificates::SelfManaged { .. }) {
        incidents.push((Incident::CaChange, 1));
    }
    incidents.extend([(Incident::EtcdPause, 1), (Incident::ApiServerRestart, 1), (Incident::Kill, 1)]);
    let environment = TestEnvironment::start(certificates, None);
    let (direct, writers) = (DirectClient::start(&environment), Writers::start(&environment));
    let rows = incidents.into_iter().map(|(incident, times)| {
        let row = row(incident, times, &environment, &direct, &writers);
        eprintln!("{way}: {}", table::row(&row));
        row.direct
            .failures
            .iter()
            .chain(&row.through_api_server.failures)
            .for_each(|failure| eprintln!("  {}", failure.message));
        row
    });
    let rows = rows.collect();
    drop((direct, writers));
    Run { way, rows }
}

fn row(
    incident: Incident,
    times: usize,
    environment: &TestEnvironment,
    direct: &DirectClient,
    writers: &Writers,
) -> Row {
    let (failed_before, errors_before) = (failed_webhook_calls(environment), writers.other_errors());
    let callers: [&dyn Callers; 2] = [direct, writers];
    let [direct, through_api_server] =
        incident.run(times, environment, &callers).try_into().ok().expect("one result per caller");
    let counts = incident != Incident::ApiServerRestart;
    Row {
        description: incident.description(&environment.certificates),
        direct,
        through_api_server,
        counted_by_api_server: counts.then(|| failed_webhook_calls(environment) - failed_before),
        other_errors: writers.other_errors() - errors_before,
    }
}

impl Row {
    /// Returns the number of failed calls that were not caused by killing a replica.
    fn unexplained(&self) -> usize {
        self.direct.unexplained() + self.through_api_server.unexplained()
    }
}
