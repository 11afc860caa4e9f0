//! Compares the time that Portcullis and kustomize need to build a root. Also measures Portcullis with a whole
//! repository and with one large tree.
//!
//! Generates a repository of 1 000 roots, and 3 000 bases and components. Runs `portcullis build`, `portcullis check`
//! and `kubectl kustomize` as processes on some of the roots. Also runs `kustomize build` if a `kustomize` is in
//! `PATH`. Rounds are interleaved, so that other load on the machine affects all programs equally.
//!
//! Then measures the whole repository and a repository of half its size, each in one process. At the end, measures a
//! tree of 4 000 objects with three levels of overlays.
//!
//! `cargo bench --bench kustomize` prints the tables; `-- --write` also writes them into `docs/performance.md`.
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
mod large;
mod repository;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use repository::Size;

/// Number of roots that are built. kubectl builds this many in about ten seconds.
const ROOTS_BUILT: usize = 30;
/// Number of runs of Portcullis for each root. A single run uses too little CPU time to be measured.
const RUNS_PER_ROOT: usize = 5;
/// Number of measurements of each command that processes a whole repository or the large tree.
const ROUNDS: usize = 5;
const WHOLE: Size = Size { roots: 1_000, parts: 3_000 };
const HALF: Size = Size { roots: 500, parts: 1_500 };
/// Number of objects in the large tree.
const LARGE_TREE_OBJECTS: usize = 4_000;
/// Time between two samples of a process's memory.
const SAMPLE_INTERVAL: Duration = Duration::from_micros(200);
/// The unit of CPU time in `/proc/self/stat`.
const TICK: Duration = Duration::from_millis(10);
/// How the measured binary is linked, as text for the report. `make bench` measures the static release build if it can
/// be built.
const LINKING: &str = if cfg!(target_env = "musl") {
    "linked statically, as `make dist` makes it"
} else {
    "linked as `cargo build` does it; that of `make dist` starts faster"
};
const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- kustomize: begin -->";
const END: &str = "<!-- kustomize: end -->";

/// The time and memory that a process needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    time: Duration,
    /// CPU time on all cores together. Results from a busy machine can be compared only by this value, not by `time`.
    cpu: Duration,
    /// Peak resident memory, in KiB.
    memory: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // `cargo test --benches` runs this program without `--bench`. The measurement takes long, so it is skipped then.
    if !has("--bench") {
        return;
    }
    let kubectl = assets::kubectl().unwrap_or_else(|error| panic!("{error}"));
    let table = measure(&kubectl);
    println!("{table}");
    if has("--write") {
        write(&table);
    }
}

fn measure(kubectl: &Path) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (whole, half) = (folder.path().join("whole"), folder.path().join("half"));
    repository::write(&whole, WHOLE).unwrap();
    repository::write(&half, HALF).unwrap();
    let roots = (0..ROOTS_BUILT).map(|number| whole.join(repository::root(number * (WHOLE.roots / ROOTS_BUILT))));
    let roots: Vec<_> = roots.collect();
    let builders: Vec<_> = std::iter::once(Builder::Kubectl(kubectl)).chain(kustomize()).collect();
    let mut others: Vec<Vec<Cost>> = builders.iter().map(|_| Vec::new()).collect();
    let (mut built, mut judged) = (Vec::new(), Vec::new());
    for root in &roots {
        for (builder, costs) in builders.iter().zip(&mut others) {
            costs.push(run(&mut builder.build(root)));
        }
        built.extend((0..RUNS_PER_ROOT).map(|_| run(&mut build(root))));
        judged.extend((0..RUNS_PER_ROOT).map(|_| run(&mut check(root))));
    }
    let rounds = |command: &dyn Fn() -> Command| (0..ROUNDS).map(|_| run(&mut command())).collect();
    let output = folder.path().join("output");
    let all = || {
        // `portcullis build` does not write files that are unchanged, so the output is removed first.
        let _ = fs::remove_dir_all(&output);
        build_all(&whole, &output)
    };
    let cost = |builder: &Builder<'_>, built| Cost { memory: memory(builder.build(&roots[0])), ..median(built) };
    let others = builders.iter().zip(others).map(|(builder, built)| (builder.label(), cost(builder, built))).collect();
    let mut text = table(Costs {
        others,
        built: Cost { memory: memory(build(&roots[0])), ..median(built) },
        judged: Cost { memory: memory(check(&roots[0])), ..median(judged) },
        built_all: Cost { memory: memory(all()), ..median(rounds(&all)) },
        all: Cost { memory: memory(check(&whole)), ..median(rounds(&|| check(&whole))) },
        half: Cost { memory: memory(check(&half)), ..median(rounds(&|| check(&half))) },
    });
    text.push_str(&large_tree(folder.path(), builders.last().expect("the list contains kubectl")));
    text
}

/// Measures `portcullis build` of one large tree, and of a tree of twice its size. For comparison, also measures how
/// `builder` builds the first tree. Returns table rows.
fn large_tree(folder: &Path, builder: &Builder<'_>) -> String {
    let write = |name: &str, objects: usize| {
        let folder = folder.join(name);
        large::write(&folder, objects).unwrap();
        folder.join(large::ROOT)
    };
    let (one, two) = (write("one", LARGE_TREE_OBJECTS), write("two", 2 * LARGE_TREE_OBJECTS));
    let ours = |root: &Path| {
        let costs = (0..ROUNDS).map(|_| run(&mut build(root))).collect();
        Cost { memory: memory(build(root)), ..median(costs) }
    };
    let (ours, twice) = (ours(&one), ours(&two));
    let (theirs, peak) = run_sampling_memory(&mut builder.build(&one));
    let theirs = Cost { memory: peak, ..theirs };
    let times = theirs.time.as_secs_f64() / ours.time.as_secs_f64();
    let growth = twice.time.as_secs_f64() / ours.time.as_secs_f64();
    let mut text = String::new();
    row(&mut text, cells(&format!("{}, {LARGE_TREE_OBJECTS} objects", builder.label()), theirs, String::new()));
    let aim = format!("100 times faster: {times:.0} times; half the memory: {:.0} %", memory_percent(ours, theirs));
    row(&mut text, cells(&format!("`portcullis build` of it, {LARGE_TREE_OBJECTS} objects"), ours, aim));
    let aim = format!("at most 2.2 times as long: {growth:.1} times");
    row(&mut text, cells(&format!("`portcullis build`, {} objects", 2 * LARGE_TREE_OBJECTS), twice, aim));
    text
}

/// Returns the memory of our process in percent of the memory of the compared process.
fn memory_percent(ours: Cost, theirs: Cost) -> f64 {
    100.0 * ours.memory as f64 / theirs.memory as f64
}

/// A program other than Portcullis that builds a root.
enum Builder<'a> {
    Kubectl(&'a Path),
    /// The program `kustomize` that is found in `PATH`. The string is its version.
    Kustomize(String),
}

/// Returns the program `kustomize` that is found in `PATH`; `None` if there is none.
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

    fn label(&self) -> String {
        match self {
            Self::Kubectl(_) => "`kubectl kustomize` of a root".to_owned(),
            Self::Kustomize(version) => format!("`kustomize build` of it, {version}"),
        }
    }
}

/// The CPU time, elapsed time and memory of each command in the table of the generated repository.
struct Costs {
    /// The costs of building a root with other programs. Each entry consists of the name of a program and its cost.
    others: Vec<(String, Cost)>,
    /// The cost of `portcullis build` of a root.
    built: Cost,
    /// The cost of `portcullis check` of a root.
    judged: Cost,
    /// The cost of `portcullis build --all`.
    built_all: Cost,
    /// The cost of `portcullis check` of the whole repository.
    all: Cost,
    /// The cost of `portcullis check` of a second repository, which has half as many roots; see [`HALF`].
    half: Cost,
}

fn portcullis(arguments: &[&Path]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(arguments);
    command
}

fn check(folder: &Path) -> Command {
    portcullis(&["check".as_ref(), folder])
}

fn build(folder: &Path) -> Command {
    portcullis(&["build".as_ref(), folder])
}

fn build_all(folder: &Path, output: &Path) -> Command {
    portcullis(&["build".as_ref(), "--all".as_ref(), folder, "--output".as_ref(), output])
}

/// Runs a process, and panics if it fails. Returns its elapsed time and its CPU time. The field `memory` of the result
/// is 0, because this function does not measure the memory.
fn run(command: &mut Command) -> Cost {
    let (cpu_before, begin) = (children_cpu_time(), Instant::now());
    let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    let (time, cpu) = (begin.elapsed(), children_cpu_time() - cpu_before);
    assert!(ended.success(), "{command:?}: {ended}");
    Cost { time, cpu, memory: 0 }
}

/// Returns the peak resident memory of a process, in KiB. Sampling takes time, so [`run`] does not measure memory.
fn memory(mut command: Command) -> usize {
    // A process of a few milliseconds may end before a sample near its peak is taken, so several runs are needed.
    (0..RUNS_PER_ROOT).map(|_| run_sampling_memory(&mut command).1).max().unwrap_or_default()
}

/// Runs a process, and panics if it fails. Returns its elapsed time and CPU time, and its peak resident memory in KiB.
/// Reads the peak memory repeatedly while the process runs. The field `memory` of the returned `Cost` is 0.
fn run_sampling_memory(command: &mut Command) -> (Cost, usize) {
    let (cpu_before, begin) = (children_cpu_time(), Instant::now());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut memory = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        memory = memory.max(peak_memory(&status).unwrap_or_default());
        thread::sleep(SAMPLE_INTERVAL);
    };
    assert!(ended.success(), "{command:?}: {ended}");
    (Cost { time: begin.elapsed(), cpu: children_cpu_time() - cpu_before, memory: 0 }, memory)
}

/// Returns the CPU time of all child processes that have ended, in steps of ten milliseconds.
fn children_cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the name of the process in parentheses. The name may contain any character.
    let fields: Vec<u64> = stat
        .rsplit(')')
        .next()
        .map_or_else(Vec::new, |rest| rest.split_whitespace().map(|field| field.parse().unwrap_or_default()).collect());
    let ticks = fields.get(13..15).map_or(0, |times| times.iter().sum());
    TICK * ticks as u32
}

/// Returns the peak resident memory of a running process in KiB. Returns `None` if the process has ended.
fn peak_memory(status: &Path) -> Option<usize> {
    let status = fs::read_to_string(status).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.trim().trim_end_matches(" kB").parse().ok()
}

/// Returns the cost of the run with the median time. Its CPU time is replaced with the mean of all runs, because the
/// CPU time of a single run is too coarse.
fn median(mut costs: Vec<Cost>) -> Cost {
    costs.sort();
    let cpu = costs.iter().map(|cost| cost.cpu).sum::<Duration>() / costs.len() as u32;
    Cost { cpu, ..costs[costs.len() / 2] }
}

fn table(Costs { others, built, judged, built_all, all, half }: Costs) -> String {
    let times = |than: Cost, of: Cost| {
        let times = |what: fn(Cost) -> Duration| what(than).as_secs_f64() / what(of).as_secs_f64();
        let (by_clock, by_cpu) = (times(|cost| cost.time), times(|cost| cost.cpu));
        format!("{by_clock:.0} times by the clock, {by_cpu:.0} times by CPU time")
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let mut text = format!(
        "Made by `cargo bench --bench kustomize -- --write` on {cores} cores; {load} processes wanted one at the end. Processes; \
         the middle of their times, the mean of their CPU times. `portcullis` is {LINKING}.\n\n"
    );
    row(&mut text, ["what", "ms", "CPU, ms", "MiB", "aim"].map(str::to_owned));
    row(&mut text, [":--", "--:", "--:", "--:", ":--"].map(str::to_owned));
    for (what, cost) in &others {
        row(&mut text, cells(what, *cost, String::new()));
    }
    let (_, theirs) = others.last().expect("the list contains kubectl");
    let aim =
        format!("50 times faster: {}; half the memory: {:.0} %", times(*theirs, built), memory_percent(built, *theirs));
    row(&mut text, cells("`portcullis build` of it", built, aim));
    row(&mut text, cells("`portcullis check` of it", judged, format!("50 times faster: {}", times(*theirs, judged))));
    let cpu_ratio_per_root = |cost: Cost| theirs.cpu.as_secs_f64() / (cost.cpu.as_secs_f64() / WHOLE.roots as f64);
    let built_in_time = met(built_all.time < Duration::from_millis(1_500));
    let aim = format!(
        "under 1.5 s: {built_in_time}; 200 times less CPU time a root: {:.0} times",
        cpu_ratio_per_root(built_all)
    );
    row(&mut text, cells("`portcullis build --all`, 1 000 roots", built_all, aim));
    row(&mut text, cells("`portcullis check`, 500 roots", half, String::new()));
    let judged_in_time = met(all.time < Duration::from_secs(1));
    let aim = format!("under a second: {judged_in_time}; {:.0} times less CPU time a root", cpu_ratio_per_root(all));
    row(&mut text, cells("`portcullis check`, 1 000 roots", all, aim));
    text
}

fn row(text: &mut String, cells: [String; 5]) {
    writeln!(text, "| {} |", cells.join(" | ")).expect("writing to a String cannot fail");
}

fn cells(what: &str, cost: Cost, aim: String) -> [String; 5] {
    let [time, cpu] = [cost.time, cost.cpu].map(|time| format!("{:.1}", millis(time)));
    [what.to_owned(), time, cpu, format!("{:.1}", mib(cost.memory)), aim]
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

/// Replaces the text between two markers in `docs/performance.md` with `table`.
fn write(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the first marker");
    let (_, after) = rest.split_once(END).expect("the page has the second marker");
    fs::write(path, format!("{before}{BEGIN}\n{table}{END}{after}")).unwrap();
}
