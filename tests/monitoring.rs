//! Tests that metrics, their documentation, the dashboard and the alerts are consistent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use portcullis::admission::Level;
use portcullis::catalog::metrics::{Counted, show};
use portcullis::catalog::{Freshness, LiveReader, LiveReading, Reference};
use portcullis::gate;
use portcullis::process::{self, Format, Telemetry};
use portcullis::{artifacts, audit, authority, reconciler, recording, server};
use prometheus_client::encoding::text;
use regex::Regex;
use support::harness::get;
use support::pki::{Authority, SecretMount};

/// Metrics of the API server about webhooks, from the "Kubernetes Metrics Reference".
const API_SERVER: [&str; 4] = [
    "apiserver_admission_webhook_admission_duration_seconds_bucket",
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_rejection_count",
    "apiserver_admission_webhook_request_total",
];

fn file(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

/// A live reader that finds no objects.
struct EmptyReader;

impl LiveReader for EmptyReader {
    fn read<'a>(&'a self, _: &'a Reference) -> LiveReading<'a> {
        Box::pin(async { Ok(None) })
    }
}

/// Returns the output of `/metrics` with all metrics of the server and the controller manager.
fn all_metrics() -> String {
    let mut registry = process::registry();
    let rules = gate::Registry::standard();
    server::Metrics::register(&mut registry, rules.ids());
    artifacts::Metrics::register(&mut registry);
    let (telemetry, _) = Telemetry::new(Format::Text, "info", std::io::sink()).unwrap();
    process::register_log(&mut registry, &telemetry);
    show(&mut registry, Arc::new(rules.catalog()), Some(Freshness::default()));
    Counted::new(EmptyReader, &mut registry);
    recording::Metrics::register(&mut registry);
    reconciler::Metrics::register(&mut registry).initialize("controller");
    authority::Metrics::register(&mut registry);
    let entry = audit::Entry {
        subject: audit::Subject::default(),
        rule: "OW001",
        level: Level::Deny,
        is_exempt: false,
        field: String::new(),
        message: String::new(),
        help: None,
        is_new: None,
    };
    let audited = audit::Audited { entries: vec![entry], ..audit::Audited::default() };
    audit::Metrics::register(&mut registry).done(&audited, Duration::ZERO);
    let mut text = String::new();
    text::encode(&mut text, &registry).unwrap();
    text
}

/// Converts `shown`, an output of `/metrics`, to the rows of a Markdown table with name, type and description of each
/// metric.
fn rows(shown: &str) -> BTreeSet<String> {
    let of = |key: &str| -> Vec<(String, String)> {
        let lines = shown.lines().filter_map(|line| line.strip_prefix(key)?.split_once(' '));
        lines.map(|(name, rest)| (name.to_owned(), rest.to_owned())).collect()
    };
    let (helps, types) = (of("# HELP "), of("# TYPE "));
    let row = |(name, kind): &(String, String)| {
        let help = &helps.iter().find(|(one, _)| one == name).unwrap().1;
        format!("| `{name}{}` | {kind} | {help} |", suffix(kind))
    };
    types.iter().map(row).collect()
}

/// Returns the suffix that the Prometheus text format appends to the names of metrics of the type `kind`.
fn suffix(kind: &str) -> &'static str {
    match kind {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    }
}

/// Returns the names of all metrics that a query may use: metrics of the API server, and metrics of Portcullis. `rows`
/// is the table of Portcullis' metrics, one row for each metric.
fn names(rows: &BTreeSet<String>) -> BTreeSet<String> {
    let mut names = BTreeSet::from(API_SERVER.map(str::to_owned));
    for row in rows {
        let [_, name, kind, ..] = row.split(" | ").flat_map(|cell| cell.split("| ")).collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let name = name.trim_matches('`');
        match kind {
            "histogram" => names.extend(["_bucket", "_sum", "_count"].map(|part| format!("{name}{part}"))),
            _ => drop(names.insert(name.to_owned())),
        }
    }
    names
}

fn documented_rows() -> BTreeSet<String> {
    file("docs/metrics.md").lines().filter(|line| line.starts_with("| `portcullis_")).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_page_lists_every_metric_and_no_other() {
    let server_rows = rows(&metrics_of_a_server().await);
    assert!(server_rows.len() > 20, "{server_rows:?}");
    let (documented, shown) = (documented_rows(), rows(&all_metrics()).union(&server_rows).cloned().collect());
    let missing: Vec<_> = BTreeSet::difference(&shown, &documented).map(String::as_str).collect();
    let superfluous: Vec<_> = documented.difference(&shown).map(String::as_str).collect();
    assert!(
        missing.is_empty() && superfluous.is_empty(),
        "docs/metrics.md lacks:\n{}\nand has too much:\n{}",
        missing.join("\n"),
        superfluous.join("\n")
    );
}

/// Returns the output of `/metrics` of a running server that has a configuration file.
async fn metrics_of_a_server() -> String {
    let (mount, manifests) = (SecretMount::new(&Authority::new().leaf()), tempfile::tempdir().unwrap());
    fs::write(manifests.path().join("portcullis.yaml"), "# nothing\n").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--certs"])
        .arg(mount.path())
        .arg("--manifests")
        .arg(manifests.path())
        .arg("--config")
        .arg(manifests.path().join("portcullis.yaml"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let reported =
        log.lines().map(Result::unwrap).find_map(|line| line.split_once("admin=").map(|(_, rest)| rest.to_owned()));
    let admin = reported.unwrap().trim_matches('"').parse().unwrap();
    let (_, shown) = get(admin, "/metrics").await.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    shown
}

#[test]
fn no_label_names_an_object_or_a_namespace() {
    let label = Regex::new(r#"[{,]([a-z_]+)=""#).unwrap();
    let shown = all_metrics();
    let found: BTreeSet<&str> = label.captures_iter(&shown).map(|found| found.get(1).unwrap().as_str()).collect();
    let allowed = BTreeSet::from([
        "allowed",
        "class",
        "controller",
        "entry",
        "family",
        "from",
        "kind",
        "le",
        "level",
        "operation",
        "outcome",
        "phase",
        "reason",
        "result",
        "rule",
        "step",
        "version",
        "would",
    ]);
    assert!(found.is_subset(&allowed), "{found:?}");
}

#[test]
fn dashboard_and_alerts_use_existing_metrics() {
    let names = names(&rows(&all_metrics()));
    let metric = Regex::new(r"\b(?:portcullis|apiserver_admission)_[a-z_]+\b").unwrap();
    for path in ["charts/portcullis/dashboards/portcullis.json", "charts/portcullis/monitoring/alerts.yaml"] {
        let text = file(path);
        let used: BTreeSet<&str> = metric.find_iter(&text).map(|found| found.as_str()).collect();
        let unknown: Vec<_> = used.iter().filter(|name| !names.contains(**name)).collect();
        assert!(unknown.is_empty() && used.len() > 10, "{path} uses unknown metrics {unknown:?}, of {used:?}");
    }
    serde_json::from_str::<serde_json::Value>(&file("charts/portcullis/dashboards/portcullis.json")).unwrap();
}

#[test]
fn the_alert_about_the_catalog_fires_at_a_quarter_of_the_memory_limit() {
    let values = file("charts/portcullis/values.yaml");
    let limit = Regex::new(r"\nresources:\n.*\n  limits: \{memory: (\d+)Gi\}").unwrap();
    let gib: u64 = limit.captures(&values).expect("the server has a limit")[1].parse().unwrap();
    let alerts = file("charts/portcullis/monitoring/alerts.yaml");
    assert!(alerts.contains(&format!("(portcullis_catalog_bytes) > {}\n", (gib << 30) / 4)));
}

#[test]
fn every_alert_has_its_page_and_every_page_its_alert() {
    let alerts = file("charts/portcullis/monitoring/alerts.yaml");
    let pages: BTreeSet<String> = fs::read_dir(root().join("docs/runbooks"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().trim_end_matches(".md").to_owned())
        .collect();
    let name = Regex::new(r"- alert: (\w+)").unwrap();
    let named: BTreeSet<String> = name.captures_iter(&alerts).map(|found| found[1].to_owned()).collect();
    assert_eq!(named, pages);
    for name in named {
        assert!(alerts.contains(&format!("runbook: docs/runbooks/{name}.md\n")), "{name} names its page");
        let page = file(&format!("docs/runbooks/{name}.md"));
        assert!(page.starts_with(&format!("# {name}\n")), "{name}");
        for part in ["## What users see", "## What to check", "## How to fix it"] {
            assert!(page.contains(part), "{name} lacks {part:?}");
        }
    }
}
