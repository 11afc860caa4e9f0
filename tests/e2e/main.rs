//! End-to-end tests. They run etcd, kube-apiserver and portcullis, and act as users of kubectl.
//!
//! Most tests share one cluster and run in parallel, each in its own namespace. To add tests, write a file with a
//! `CASES` list, declare its module below, and add the list to `WITHOUT_GATE` or `WITH_GATE`.
#![allow(unreachable_pub, reason = "a test binary has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test tells what it does")]

#[path = "../artifacts/mod.rs"]
mod artifacts;
#[allow(dead_code, reason = "shared with the tests of random trees")]
mod assets;
mod audit;
mod cache;
#[path = "../cases/mod.rs"]
mod cases;
mod certificate_ways;
#[path = "../chaos_cluster/mod.rs"]
mod chaos_cluster;
mod chart;
mod cleanup;
mod cluster;
#[allow(dead_code, reason = "shared with the tests of traces")]
#[path = "../support/collector.rs"]
mod collector;
mod conformance;
mod context;
mod control_plane;
mod controller_manager;
mod crossplane;
mod daemon;
mod delivery;
mod delivery_crds;
mod deployer;
mod dry_run;
mod dry_run_annotations;
mod dry_run_deployer;
mod environments;
mod gate;
mod helm;
mod http;
mod kubectl;
mod landscaper;
mod leadership;
mod manifests;
mod overwrite_trees;
mod overwrites;
mod plans;
mod plugin;
mod protocol;
mod proxy;
#[allow(dead_code, reason = "shared with the tests of registries")]
#[path = "../registry/push.rs"]
mod push;
#[allow(dead_code, reason = "shared with the tests of registries")]
#[path = "../registry/server.rs"]
mod registry;
mod rights;
mod rollout;
mod self_managed;
mod sentences;
mod smoke;
mod stored;
#[path = "../support/mod.rs"]
mod support;
#[cfg(feature = "otlp")]
mod traces;
mod unreachable_server;
mod user;
mod validation;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use libtest_mimic::{Arguments, Trial};

use crate::artifacts::ArtifactServer;
use crate::cluster::Cluster;
use crate::collector::Collector;
use crate::context::{Context, ContextError};
use crate::gate::GateOptions;
use crate::support::deadline;

/// A test: its name and its function.
type Case = (&'static str, fn(&Context));
/// The [`Context`] that all tests share. It is set before the first test runs.
type SharedContext = Arc<OnceLock<Context>>;

/// The lists of tests that do not use the portcullis process of the shared [`Context`].
const WITHOUT_GATE: &[&[Case]] =
    &[certificate_ways::CASES, plugin::CASES, self_managed::CASES, smoke::CASES, stored::WITHOUT_GATE];
/// The lists of tests that use the portcullis process of the shared [`Context`].
const WITH_GATE: &[&[Case]] = &[
    audit::CASES,
    chart::CASES,
    conformance::CASES,
    crossplane::CASES,
    delivery::CASES,
    deployer::CASES,
    dry_run::CASES,
    dry_run_deployer::CASES,
    environments::CASES,
    leadership::CASES,
    dry_run_annotations::CASES,
    overwrite_trees::CASES,
    overwrites::CASES,
    plans::CASES,
    protocol::CASES,
    rollout::CASES,
    stored::CASES,
    #[cfg(feature = "otlp")]
    traces::CASES,
    validation::CASES,
];
/// The lists of tests that run one at a time after all other tests. `chart::LAST` deletes the webhook configurations.
/// `rights::CASES` checks the audit log of the whole run. So the tests in `rights::CASES` run only if the arguments
/// contain no filter.
const LAST: &[&[Case]] = &[chart::LAST, rights::CASES];

/// The configuration file of the portcullis process that all tests share, without the part for the tests in `delivery`.
const CONFIG: &str = include_str!("config.yaml");
/// An object that a rule denies by default. As soon as it is denied, the webhooks are active and the tests can start.
const PROBE: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata: {name: probe}
overwrites: [{source: {}, substitution: {repositoryContext: none}}]
";
/// An object that rule OW005 warns about as soon as the catalog watches Landscaper's kinds. The CRDs of these kinds are
/// installed after portcullis starts.
const LATE_PROBE: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata: {name: late-probe}
componentVersionOverwrites: missing
";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    cleanup::clean_up_on_signals().expect("a process may handle its signals");
    run(&arguments).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(101)
    })
}

fn run(arguments: &Arguments) -> Result<ExitCode, ContextError> {
    let shared = SharedContext::default();
    let (without, with) = (tests(WITHOUT_GATE, &shared), tests(WITH_GATE, &shared));
    let last = tests(if runs_all_tests(arguments) { LAST } else { &LAST[..1] }, &shared);
    let gate_is_needed = any_runs(arguments, &with) || any_runs(arguments, &last);
    if gate_is_needed || any_runs(arguments, &without) {
        let context = start(gate_is_needed)?;
        shared.set(context).unwrap_or_else(|_| unreachable!("it is set here only"));
    }
    let conclusion = libtest_mimic::run(arguments, without.into_iter().chain(with).collect());
    let sequential = Arguments { test_threads: Some(1), ..arguments.clone() };
    let last_conclusion = libtest_mimic::run(&sequential, last);
    drop(shared);
    Ok(if conclusion.has_failed() { conclusion } else { last_conclusion }.exit_code())
}

/// Returns whether the arguments contain no filter, so that all tests run.
fn runs_all_tests(arguments: &Arguments) -> bool {
    arguments.filter.is_none() && arguments.skip.is_empty()
}

fn tests(groups: &[&[Case]], shared: &SharedContext) -> Vec<Trial> {
    let cases = groups.iter().copied().flatten();
    cases.map(|(name, case)| test(name, *case, Arc::clone(shared))).collect()
}

fn test(name: &str, case: fn(&Context), shared: SharedContext) -> Trial {
    Trial::test(name, move || {
        case(shared.get().expect("the context is started when any test runs"));
        Ok(())
    })
}

fn any_runs(arguments: &Arguments, tests: &[Trial]) -> bool {
    !arguments.list && tests.iter().any(|test| !arguments.is_filtered_out(test))
}

fn start(gate_is_needed: bool) -> Result<Context, ContextError> {
    let begin = Instant::now();
    let is_active = |cluster: &Cluster| {
        gate::is_denied(cluster, "portcullis.dev", PROBE) && gate::is_warned_about(cluster, "OW005", LATE_PROBE)
    };
    let artifacts = ArtifactServer::start();
    let config = format!("{CONFIG}{}", delivery::configuration(&artifacts.host()));
    let collector = Collector::start();
    let traces = cfg!(feature = "otlp").then(|| collector.endpoint());
    let options =
        GateOptions { config: Some(&config), traces: traces.as_deref(), arguments: &[], is_active: &is_active };
    let context = Context::start(gate_is_needed.then_some(&options), artifacts, collector)?;
    eprintln!("e2e: ready after {:.1?}", begin.elapsed());
    Ok(context)
}
