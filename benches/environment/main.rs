//! Measures the cost of a composite's environment at admission: five EnvironmentConfigs are selected and merged, and
//! fifty patches are computed.
//!
//! A [`Gate`] decides about the creation of a composite in both admission phases, mutation and validation. The
//! benchmark calls the gate directly, without HTTP and TLS. It alternates between catalogs of several sizes, so that
//! other load on the machine affects all of them equally.
//!
//! `cargo bench --bench environment` prints the table; `-- --write` also writes it into `docs/performance.md`.
#![allow(unreachable_pub, reason = "a benchmark has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a benchmark a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report goes there")]

mod objects;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use portcullis::admission::{Object, Operation, Phase, Request, Resource, User};
use portcullis::config;
use portcullis::gate::{Gate, Registry};
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Numbers of EnvironmentConfigs in the measured catalogs.
const SIZES: [usize; 3] = [100, 1_000, 10_000];
const WARM_UP: usize = 50;
const ROUNDS: usize = 1_000;
const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- environment: begin -->";
const END: &str = "<!-- environment: end -->";

/// The durations of the decisions with one catalog, by phase.
#[derive(Default)]
struct Times {
    mutating: Vec<Duration>,
    validating: Vec<Duration>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // `cargo test --benches` runs this program without `--bench`. The measurement takes long, so it is skipped then.
    if !has("--bench") {
        return;
    }
    let table = table(&measure());
    println!("{table}");
    if has("--write") {
        write(&table);
    }
}

fn measure() -> Vec<Times> {
    let gates = SIZES.map(|size| {
        let registry = Registry::standard();
        let catalog = registry.catalog_of(objects::stored(size));
        let policy = config::parse("environmentConfigs: {native: enabled}\n", "the benchmark", &registry).unwrap();
        Gate::new(registry, policy, Arc::new(catalog))
    });
    let text = objects::composite().to_string();
    let mut times: Vec<Times> = SIZES.iter().map(|_| Times::default()).collect();
    gates.iter().for_each(|gate| check(gate, &text));
    for round in 0..WARM_UP + ROUNDS {
        for (gate, times) in gates.iter().zip(&mut times) {
            let (mutating, validating) =
                (time_decision(gate, Phase::Mutate, &text), time_decision(gate, Phase::Validate, &text));
            if round >= WARM_UP {
                times.mutating.push(mutating);
                times.validating.push(validating);
            }
        }
    }
    times
}

/// Checks the decision about the composite `text`. The patch of the decision must add references to five
/// EnvironmentConfigs, and must set fields whose path begins with `spec.out`.
fn check(gate: &Gate, text: &str) {
    let verdict = block_on(gate.decide(Phase::Mutate, &request(text)));
    let patch = serde_json::to_value(verdict.patch.expect("the composite is patched")).unwrap();
    let added = |path: &str| {
        let operations = patch.as_array().unwrap().iter();
        operations.filter(|operation| operation["path"].as_str().unwrap().starts_with(path)).count()
    };
    let references =
        patch.as_array().unwrap().iter().find(|operation| operation["path"] == "/spec/environmentConfigRefs");
    assert_eq!(references.unwrap()["value"].as_array().unwrap().len(), 5, "{patch}");
    assert!(added("/spec/out") > 0, "{patch}");
}

fn time_decision(gate: &Gate, phase: Phase, text: &str) -> Duration {
    let begin = Instant::now();
    let verdict = block_on(gate.decide(phase, &request(text)));
    std::hint::black_box(verdict);
    begin.elapsed()
}

fn request(text: &str) -> Request<'_> {
    Request {
        uid: "3f5a".into(),
        resource: Resource {
            group: objects::GROUP.into(),
            version: "v1".into(),
            plural: "xapps".into(),
            kind: "XApp".into(),
            subresource: "".into(),
        },
        name: "app".into(),
        namespace: "".into(),
        operation: Operation::Create,
        user: User { name: "somebody".into(), groups: Vec::new() },
        dry_run: false,
        object: Object::raw(Some(text)),
        old_object: Object::parsed(Value::Null),
        deadline: None,
    }
}

fn table(times: &[Times]) -> String {
    let mut text =
        "Made by `cargo bench --bench environment -- --write`; microseconds for each decision of the gate, the \
                    composite's text included.\n\n"
            .to_owned();
    let mut row =
        |cells: [String; 5]| writeln!(text, "| {} |", cells.join(" | ")).expect("writing to a String cannot fail");
    row(["EnvironmentConfigs", "mutating p50", "p99", "validating p50", "p99"].map(str::to_owned));
    row(["--:"; 5].map(str::to_owned));
    for (size, times) in SIZES.iter().zip(times) {
        let of = |times: &[Duration], share: f64| micros(quantile(times, share));
        let [mutating, validating] = [&times.mutating, &times.validating];
        row([size.to_string(), of(mutating, 0.5), of(mutating, 0.99), of(validating, 0.5), of(validating, 0.99)]);
    }
    text
}

fn quantile(times: &[Duration], share: f64) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

fn micros(time: Duration) -> String {
    format!("{:.0}", time.as_secs_f64() * 1e6)
}

/// Replaces the text between the markers [`BEGIN`] and [`END`] in `docs/performance.md` with `table`.
fn write(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the first marker");
    let (_, after) = rest.split_once(END).expect("the page has the second marker");
    fs::write(path, format!("{before}{BEGIN}\n{table}{END}{after}")).unwrap();
}
