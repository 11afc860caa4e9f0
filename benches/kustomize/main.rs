//! Compares judging a root with building it, and measures a whole repository.
//!
//! Runs `portcullis check`, `kubectl kustomize`, and `kustomize build` if a `kustomize` is on the path, as processes,
//! on roots of a generated repository of 1 000 roots and 3 000 bases and components. Rounds are interleaved, so that
//! other load on the machine affects all equally. Then measures the memory for the whole repository and for half of it.
//!
//! `cargo bench --bench kustomize` prints the tables; `-- --write` writes them into `docs/performance.md`.
#![allow(unreachable_pub, reason = "a benchmark has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a benchmark a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report goes there")]

#[allow(dead_code, reason = "the end-to-end tests need more of it")]
#[path = "../../tests/e2e/assets.rs"]
mod assets;
#[path = "../../tests/e2e/cache.rs"]
mod cache;
#[allow(dead_code, reason = "the end-to-end tests need more of it")]
#[path = "../../tests/e2e/cleanup.rs"]
mod cleanup;
mod repository;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use repository::Size;

/// As many as kubectl builds in some ten seconds.
const BUILT: usize = 30;
/// Number of times a root is judged per build, so that the CPU time is measurable.
const JUDGED: usize = 5;
/// How often the whole repository is judged.
const ROUNDS: usize = 5;
const WHOLE: Size = Size { roots: 1_000, parts: 3_000 };
const HALF: Size = Size { roots: 500, parts: 1_500 };
/// How often a process is asked for its memory.
const PAUSE: Duration = Duration::from_micros(200);
/// The kernel's unit of CPU time.
const TICK: Duration = Duration::from_millis(10);
/// How the measured binary is linked: `make bench` uses the released form if it can be built.
const LINKED: &str = if cfg!(target_env = "musl") {
    "linked statically, as `make dist` makes it"
} else {
    "linked as `cargo build` does it; that of `make dist` starts faster"
};
const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- kustomize: begin -->";
const END: &str = "<!-- kustomize: end -->";

/// The cost of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    time: Duration,
    /// On all cores together; where the machine is busy, this is what can be compared.
    cpu: Duration,
    /// The most that was resident, in KiB.
    memory: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // without cargo's word for "do not just see whether it runs"
    if !has("--bench") {
        return;
    }
    let kubectl = assets::kubectl().unwrap_or_else(|error| panic!("{error}"));
    let table = measured(&kubectl);
    println!("{table}");
    if has("--write") {
        write(&table);
    }
}

fn measured(kubectl: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (whole, half) = (folder.path().join("whole"), folder.path().join("half"));
    repository::write(&whole, WHOLE).unwrap();
    repository::write(&half, HALF).unwrap();
    let roots = (0..BUILT).map(|number| whole.join(repository::root(number * (WHOLE.roots / BUILT))));
    let roots: Vec<_> = roots.collect();
    let builders: Vec<_> = std::iter::once(Builder::Kubectl(kubectl)).chain(kustomize()).collect();
    let mut built: Vec<Vec<Cost>> = builders.iter().map(|_| Vec::new()).collect();
    let mut judged = Vec::new();
    for root in &roots {
        for (builder, built) in builders.iter().zip(&mut built) {
            built.push(run(&mut builder.build(root)));
        }
        judged.extend((0..JUDGED).map(|_| run(&mut check(root))));
    }
    let all = (0..ROUNDS).map(|_| run(&mut check(&whole))).collect();
    let fewer = (0..ROUNDS).map(|_| run(&mut check(&half))).collect();
    let cost = |builder: &Builder<'_>, built| Cost { memory: memory(builder.build(&roots[0])), ..middle(built) };
    let built = builders.iter().zip(built).map(|(builder, built)| (builder.words(), cost(builder, built))).collect();
    table(Costs {
        built,
        judged: Cost { memory: memory(check(&roots[0])), ..middle(judged) },
        all: Cost { memory: memory(check(&whole)), ..middle(all) },
        half: Cost { memory: memory(check(&half)), ..middle(fewer) },
    })
}

/// Who builds a root.
enum Builder<'a> {
    Kubectl(&'a Path),
    /// The `kustomize` on the path, and its version.
    Kustomize(String),
}

/// Returns the `kustomize` on the path, if any.
fn kustomize() -> Option<Builder<'static>> {
    let reported =
        Command::new("kustomize").arg("version").output().ok().filter(|reported| reported.status.success())?;
    Some(Builder::Kustomize(String::from_utf8_lossy(&reported.stdout).trim().to_owned()))
}

impl Builder<'_> {
    fn build(&self, root: &Path) -> Command {
        let (program, word) = match self {
            Self::Kubectl(kubectl) => (*kubectl, "kustomize"),
            Self::Kustomize(_) => (Path::new("kustomize"), "build"),
        };
        let mut command = Command::new(program);
        command.arg(word).arg(root);
        command
    }

    fn words(&self) -> String {
        match self {
            Self::Kubectl(_) => "`kubectl kustomize` of a root".to_owned(),
            Self::Kustomize(version) => format!("`kustomize build` of it, {version}"),
        }
    }
}

/// What all took.
struct Costs {
    /// Building a root, the one first that is the measure.
    built: Vec<(String, Cost)>,
    /// Judging it.
    judged: Cost,
    all: Cost,
    half: Cost,
}

fn check(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.arg("check").arg(folder);
    command
}

/// Runs a process that has to succeed.
fn run(command: &mut Command) -> Cost {
    let (begin, spent) = (Instant::now(), children());
    let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    let (time, cpu) = (begin.elapsed(), children() - spent);
    assert!(ended.success(), "{command:?}: {ended}");
    Cost { time, cpu, memory: 0 }
}

/// Returns the maximum resident memory of a process, in KiB. Sampling takes time, so [`run`] does not use it.
fn memory(mut command: Command) -> usize {
    // A process of some milliseconds is seen at its largest now and then.
    (0..JUDGED).map(|_| seen(&mut command)).max().unwrap_or_default()
}

fn seen(command: &mut Command) -> usize {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut memory = 0;
    while child.try_wait().unwrap().is_none() {
        memory = memory.max(highest(&status).unwrap_or_default());
        thread::sleep(PAUSE);
    }
    memory
}

/// Returns the CPU time of all finished child processes, in steps of ten milliseconds.
fn children() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // the name of the process, which may hold anything, is in brackets
    let fields: Vec<u64> = stat
        .rsplit(')')
        .next()
        .map_or_else(Vec::new, |rest| rest.split_whitespace().map(|field| field.parse().unwrap_or_default()).collect());
    let ticks = fields.get(13..15).map_or(0, |times| times.iter().sum());
    TICK * ticks as u32
}

/// Returns the peak memory of a process so far; `None` if it has ended.
fn highest(status: &Path) -> Option<usize> {
    let status = fs::read_to_string(status).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.trim().trim_end_matches(" kB").parse().ok()
}

/// Returns the median cost, with the total CPU time, because that is too coarse for a single run.
fn middle(mut costs: Vec<Cost>) -> Cost {
    costs.sort();
    let cpu = costs.iter().map(|cost| cost.cpu).sum::<Duration>() / costs.len() as u32;
    Cost { cpu, ..costs[costs.len() / 2] }
}

fn table(Costs { built, judged, all, half }: Costs) -> String {
    let times = |than: Cost| {
        let times = |of: fn(Cost) -> Duration| of(than).as_secs_f64() / of(judged).as_secs_f64();
        let (by_clock, by_cpu) = (times(|cost| cost.time), times(|cost| cost.cpu));
        format!("{by_clock:.0} times by the clock, {by_cpu:.0} times by CPU time")
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let mut text = format!(
        "Made by `cargo bench --bench kustomize -- --write` on {cores} cores; {load} processes wanted one at the end. Processes; \
         the middle of their times, the mean of their CPU times. `portcullis` is {LINKED}.\n\n"
    );
    let mut row = |cells: [String; 5]| writeln!(text, "| {} |", cells.join(" | ")).expect("a text takes more");
    let cells = |what: &str, cost: Cost, aim: String| {
        let [time, cpu] = [cost.time, cost.cpu].map(|time| format!("{:.1}", millis(time)));
        [what.to_owned(), time, cpu, format!("{:.1}", mib(cost.memory)), aim]
    };
    row(["what", "ms", "CPU, ms", "MiB", "aim"].map(str::to_owned));
    row([":--", "--:", "--:", "--:", ":--"].map(str::to_owned));
    for (what, cost) in &built {
        row(cells(what, *cost, format!("check is 50 times faster: {}", times(*cost))));
    }
    row(cells("`portcullis check` of it", judged, String::new()));
    row(cells("`portcullis check`, 500 roots", half, String::new()));
    let each = built[0].1.cpu.as_secs_f64() / (all.cpu.as_secs_f64() / WHOLE.roots as f64);
    let met = met(all.time < Duration::from_secs(1));
    row(cells(
        "`portcullis check`, 1 000 roots",
        all,
        format!("under a second: {met}; {each:.0} times less CPU time a root"),
    ));
    text
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn mib(kib: usize) -> f64 {
    kib as f64 / 1024.0
}

fn met(aim: bool) -> &'static str {
    if aim { "met" } else { "missed" }
}

/// Puts the table into its page, between the markers.
fn write(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the first marker");
    let (_, after) = rest.split_once(END).expect("the page has the second marker");
    fs::write(path, format!("{before}{BEGIN}\n{table}{END}{after}")).unwrap();
}
