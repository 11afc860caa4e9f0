//! Formats the results as Markdown.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::called::{Call, Memory};

const PAGE: &str = "docs/performance.md";
/// The libraries whose versions the report names. They determine the cost of the baseline, a server that makes no
/// decision.
const LIBRARIES: [&str; 6] = ["tokio", "hyper", "rustls", "ring", "serde_json", "mimalloc"];
const LOCK: &str = include_str!("../../Cargo.lock");
/// Target for the resident memory with an empty catalog, in MiB. The report says whether the server stays below this
/// value.
const RESIDENT_AIM: f64 = 20.0;
/// Target for the cost of a call with a larger catalog, as a multiple of the cost with the smallest catalog. The report
/// says whether the cost stays below this value.
const CATALOG_AIM: f64 = 1.2;

/// The measured costs of a call to Portcullis, and of a call to the baseline server, which makes no decision. A cost is
/// the CPU time of the server in microseconds.
#[derive(Clone)]
pub struct Costs {
    name: &'static str,
    size: usize,
    aim: Option<f64>,
    floor: f64,
    cost: f64,
    /// The cost of the call as a multiple of the cost of the baseline. Each round has its own ratio, and this is the
    /// median of all rounds. `spread` is half of the interquartile range of the ratios.
    ratio: f64,
    spread: f64,
}

impl Costs {
    /// Summarizes the measured costs of `call` and of the baseline by their medians. `cost` contains the costs of the
    /// call, and `floor` the costs of the baseline. Both have one element for each round of the benchmark.
    pub fn new(call: &Call, floor: &[f64], cost: &[f64]) -> Self {
        let ratios: Vec<f64> = cost.iter().zip(floor).map(|(cost, floor)| cost / floor).collect();
        let spread = (quantile(&ratios, 0.75) - quantile(&ratios, 0.25)) / 2.0;
        let [floor, cost, ratio] = [floor, cost, &ratios].map(|series| quantile(series, 0.5));
        Self { name: call.name, size: call.size, aim: call.aim, floor, cost, ratio, spread }
    }
}

fn quantile(series: &[f64], part: f64) -> f64 {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, floor, cost, ratio, spread, .. } = self;
        // The aims apply only to reviews of the typical size.
        let aim = self.aim.filter(|_| (3_000..3_500).contains(&self.size));
        let aim = aim.map_or(String::new(), |aim| format!("≤ {aim:.1}: {}", met(*ratio <= aim)));
        let size = bytes(self.size);
        writeln!(f, "| {name} | {size} | {floor:.1} | {cost:.1} | {ratio:.2} ± {spread:.2} | {aim} |")
    }
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

/// Formats a size in bytes, with a unit.
pub fn bytes(count: usize) -> String {
    match count {
        0..1_000_000 => format!("{:.1} KB", count as f64 / 1e3),
        _ => format!("{:.1} MiB", count as f64 / (1024.0 * 1024.0)),
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [resident, anonymous] = [self.resident, self.anonymous].map(|kib| kib as f64 / 1024.0);
        let aim = met(resident <= RESIDENT_AIM);
        writeln!(f, "| {} | {resident:.1} MiB | {anonymous:.1} MiB | ≤ {RESIDENT_AIM} MiB: {aim} |", self.when)
    }
}

/// The results of all measurements.
#[derive(Default)]
pub struct Report {
    pub costs: Vec<Costs>,
    /// The costs of `/validate` and `/mutate`, for each number of objects in the catalog.
    pub catalogs: Vec<(usize, Vec<Costs>)>,
    pub memory: Vec<Memory>,
    pub rounds: usize,
}

impl Report {
    pub fn new(rounds: usize) -> Self {
        Self { rounds, ..Self::default() }
    }

    /// Writes the report into `docs/performance.md`, between the two markers with the name `measured`.
    pub fn write(&self) {
        write("measured", &format!("\n{self}\n"));
    }

    fn write_catalogs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((smallest, base)) = self.catalogs.first() else { return Ok(()) };
        writeln!(
            f,
            "\n| objects in the catalog | /validate, µs | against {smallest} | /mutate, µs | against {smallest} | aim |"
        )?;
        writeln!(f, "|--:|--:|--:|--:|--:|:--|")?;
        for (objects, costs) in &self.catalogs {
            let [validate, mutate] = [0, 1].map(|at| (costs[at].cost, costs[at].ratio / base[at].ratio));
            let aim = met(validate.1.max(mutate.1) <= CATALOG_AIM);
            let ((validate, validate_ratio), (mutate, mutate_ratio)) = (validate, mutate);
            writeln!(
                f,
                "| {objects} | {validate:.1} | {validate_ratio:.2} | {mutate:.1} | {mutate_ratio:.2} | ≤ {CATALOG_AIM}: {aim} |"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Made by `cargo bench --bench admission -- --write --rounds={}`: {}.\n", self.rounds, versions())?;
        writeln!(f, "| call | review | floor, µs | portcullis, µs | ratio | aim |\n|:--|--:|--:|--:|--:|:--|")?;
        self.costs.iter().try_for_each(|costs| costs.fmt(f))?;
        self.write_catalogs(f)?;
        writeln!(f, "\n| an empty catalog | resident | of it anonymous | aim |\n|:--|--:|--:|:--|")?;
        self.memory.iter().try_for_each(|memory| memory.fmt(f))
    }
}

/// Replaces the text between two markers in `docs/performance.md` with `text`. `name` is the name in the markers, such
/// as `<!-- before: begin -->`.
fn write(name: &str, text: &str) {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(&begin).expect("the page has the first marker");
    let (_, after) = rest.split_once(&end).expect("the page has the second marker");
    fs::write(path, format!("{before}{begin}{text}{end}{after}")).unwrap();
}

/// A comparison of an earlier build of Portcullis with the measured build: the costs of calls, and the memory usage.
pub struct Comparison {
    pub rounds: usize,
    /// The costs of each measured call, and the number of objects that the catalog contained during the call. In these
    /// [`Costs`], `floor` is the cost of the call to the earlier build. There is no baseline server in this comparison.
    pub costs: Vec<(usize, Costs)>,
    /// The memory with an empty catalog. Index 0: the earlier build. Index 1: the measured build.
    pub memory: [Vec<Memory>; 2],
}

impl Comparison {
    /// Writes the tables into `docs/performance.md`, between the two comments that mark the section `before`, such as
    /// `<!-- before: begin -->`.
    pub fn write(&self) {
        write("before", &self.to_string());
    }

    fn write_memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n| memory with an empty catalog | before, MiB | after, MiB | ratio |\n|:--|--:|--:|--:|")?;
        let [before, after] = &self.memory;
        for (before, after) in before.iter().zip(after) {
            let when = &after.when;
            let parts =
                [("", before.resident, after.resident), (", of it anonymous", before.anonymous, after.anonymous)];
            for (part, before, after) in parts {
                let ([before, after], ratio) = ([before, after].map(|kib| kib as f64), after as f64 / before as f64);
                writeln!(f, "| {when}{part} | {:.1} | {:.1} | {ratio:.2} |", before / 1024.0, after / 1024.0)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounds = self.rounds;
        writeln!(
            f,
            "Made by `cargo bench --bench admission -- --before=PATH --binary=PATH --write --rounds={rounds}`:\n"
        )?;
        writeln!(f, "| objects in the catalog | call | before, µs | after, µs | ratio |\n|--:|:--|--:|--:|--:|")?;
        self.costs.iter().try_for_each(|(objects, Costs { name, floor, cost, ratio, spread, .. })| {
            writeln!(f, "| {objects} | {name} | {floor:.1} | {cost:.1} | {ratio:.2} ± {spread:.2} |")
        })?;
        self.write_memory(f)
    }
}

/// Returns the versions of Portcullis, the compiler and the libraries, and the number of cores.
fn versions() -> String {
    let rustc = Command::new("rustc").arg("--version").output().unwrap().stdout;
    let rustc = String::from_utf8(rustc).unwrap().split(' ').take(2).collect::<Vec<_>>().join(" ");
    let libraries = LIBRARIES.map(|library| format!("{library} {}", locked_version(library)));
    let cores = std::thread::available_parallelism().unwrap();
    format!("portcullis {}, {rustc}, {}, {cores} cores", env!("CARGO_PKG_VERSION"), libraries.join(", "))
}

fn locked_version(library: &str) -> &'static str {
    let entry = format!("name = \"{library}\"\nversion = \"");
    LOCK.split_once(&entry).and_then(|(_, rest)| rest.split('"').next()).expect("the library is in Cargo.lock")
}
