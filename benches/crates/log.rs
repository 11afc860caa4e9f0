//! Measures the CPU time of writing a log record. Compares Portcullis's own log writer and formats with the crates
//! tracing-appender and tracing-subscriber.
//!
//! Each record has the fields of a decision. Records are written in bursts, at the rate of a busy server. As in a
//! container, the output is a pipe. A process at the other end of the pipe discards the records. The measured CPU time
//! includes all threads of this process.

use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use portcullis::process::{Format, Telemetry};
use tracing::Subscriber;
use tracing::subscriber::with_default;
use tracing_appender::non_blocking::{NonBlocking, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// Number of records in a burst. A burst simulates the requests that arrive while the server computes another decision.
const BURST: usize = 50;
/// Time between the starts of two bursts. With this interval, 5,000 records are written per second.
const INTERVAL: Duration = Duration::from_millis(10);
const BURSTS: usize = 500;
/// Number of measurements of each variant. The variants are measured in turn, and the table shows the median of each.
const ROUNDS: usize = 5;

const VARIANTS: [Variant; 4] = [
    Variant { name: "text, ours", install: |out| ours(Format::Text, out) },
    Variant { name: "text, tracing-subscriber and tracing-appender", install: crates_text },
    Variant { name: "JSON, ours", install: |out| ours(Format::Json, out) },
    Variant { name: "JSON, tracing-subscriber and tracing-appender", install: crates_json },
];

struct Variant {
    name: &'static str,
    /// Creates a subscriber that writes its records to the given pipe. Also returns a guard, which writes the remaining
    /// records when it is dropped.
    install: fn(ChildStdin) -> (Box<dyn Subscriber + Send + Sync>, Guard),
}

#[expect(dead_code, reason = "they are kept until they are dropped")]
enum Guard {
    Ours(Telemetry),
    Appender(WorkerGuard),
}

/// Measures all variants, and returns the table of the CPU time per record.
pub fn table() -> String {
    let mut times = [const { Vec::new() }; VARIANTS.len()];
    for _ in 0..ROUNDS {
        for (variant, times) in VARIANTS.iter().zip(&mut times) {
            times.push(measure(variant));
        }
    }
    let medians = times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    });
    let mut table = String::from("| a log record | CPU, µs | ratio |\n|:--|--:|--:|\n");
    for (at, (variant, median)) in VARIANTS.iter().zip(medians).enumerate() {
        let micros = median.as_secs_f64() * 1e6;
        let ratio = median.as_secs_f64() / medians[at / 2 * 2].as_secs_f64();
        table += &format!("| {} | {micros:.1} | {ratio:.1} |\n", variant.name);
    }
    table
}

/// Measures one of the [`VARIANTS`] of writing the log. Returns the CPU time that this variant needs for one record.
fn measure(variant: &Variant) -> Duration {
    let (reader, out) = reader();
    let (subscriber, guard) = (variant.install)(out);
    let idle = idle_cost();
    let before = cpu();
    with_default(subscriber, || write_in_bursts(record));
    // After this delay, both writers have written all but the last records, and their threads still exist.
    thread::sleep(Duration::from_millis(200));
    let used = cpu() - before;
    drop(guard);
    wait(reader);
    used.saturating_sub(idle) / u32::try_from(BURST * BURSTS).unwrap()
}

/// Returns the CPU time that [`write_in_bursts`] needs without writing records. It is subtracted from the measured
/// times.
fn idle_cost() -> Duration {
    let before = cpu();
    write_in_bursts(|_| ());
    cpu() - before
}

fn write_in_bursts(write: impl Fn(usize)) {
    let begin = Instant::now();
    for burst in 0..BURSTS {
        (0..BURST).for_each(|at| write(burst * BURST + at));
        let next = INTERVAL * u32::try_from(burst + 1).unwrap();
        thread::sleep(next.saturating_sub(begin.elapsed()));
    }
}

/// Writes the log record of a decision, with the same fields as `server::log`.
fn record(number: usize) {
    let uid = format!("705ab4f5-6393-11e8-b7cc-{number:012}");
    tracing::info!(
        target: "decision",
        uid = uid.as_str(),
        webhook = "validate",
        operation = "UPDATE",
        group = "landscaper.gardener.cloud",
        resource = "installations",
        subresource = "",
        namespace = "team-a",
        name = "ingress-controller",
        user = "system:serviceaccount:landscaper:landscaper-controller",
        dry_run = false,
        allowed = true,
        rules = %"OW006=warn",
        micros = 28_u64,
    );
}

fn ours(format: Format, out: ChildStdin) -> (Box<dyn Subscriber + Send + Sync>, Guard) {
    let (telemetry, subscriber) = Telemetry::new(format, "info", out).unwrap();
    (subscriber, Guard::Ours(telemetry))
}

fn crates_text(out: ChildStdin) -> (Box<dyn Subscriber + Send + Sync>, Guard) {
    let (writer, guard) = appender(out);
    let builder = tracing_subscriber::fmt().with_env_filter(EnvFilter::new("info"));
    (Box::new(builder.with_ansi(false).with_writer(writer).finish()), Guard::Appender(guard))
}

fn crates_json(out: ChildStdin) -> (Box<dyn Subscriber + Send + Sync>, Guard) {
    let (writer, guard) = appender(out);
    let builder = tracing_subscriber::fmt().with_env_filter(EnvFilter::new("info"));
    (Box::new(builder.json().flatten_event(true).with_writer(writer).finish()), Guard::Appender(guard))
}

fn appender(out: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard) {
    tracing_appender::non_blocking(out)
}

fn reader() -> (Child, ChildStdin) {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let out = child.stdin.take().unwrap();
    (child, out)
}

fn wait(mut reader: Child) {
    // The thread of our writer may keep the pipe open a little longer than its handle exists, so `cat` is killed.
    let _ = reader.kill();
    reader.wait().unwrap();
}

/// Returns the CPU time that all threads of this process have used.
fn cpu() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let times = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    times.map(|time| Duration::from_nanos(time.split(' ').next().unwrap().parse().unwrap())).sum()
}
