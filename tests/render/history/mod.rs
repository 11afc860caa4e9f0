//! Compares the output of `portcullis diff --git` with a reference, for the last commits of public repositories, and
//! measures the time of both. For the reference, `kustomize build` builds every root of both commits, and the test
//! compares the built objects.
//!
//! `tests/repositories/histories.txt` lists the repositories and their newest commits. The environment variable
//! `PORTCULLIS_CHECKOUTS` contains the path of a folder with a clone of each repository in `OWNER/NAME`. A clone may be
//! bare.

mod commit;
mod plan;
mod reference;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::{env, fs, thread};

use commit::{Commit, Repository};
use plan::{Changes, Plan, PruneExclusions};
use reference::{Built, Cost, Reference};

const LIST: &str = include_str!("../../repositories/histories.txt");
const FOLDER: &str = "PORTCULLIS_CHECKOUTS";
const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- history: begin -->";
const END: &str = "<!-- history: end -->";

/// Options for the comparison of `portcullis diff --git` with `kustomize build`.
pub struct Request<'a> {
    /// The number of commits to compare in each repository.
    pub commits: usize,
    /// The name of the only repository to compare, if set.
    pub repository: Option<&'a str>,
    /// Whether to write the table into docs/performance.md.
    pub write: bool,
}

/// The results for a repository.
#[derive(Default)]
struct Row {
    name: &'static str,
    commits: usize,
    /// The number of compared roots. A root counts once for each commit.
    roots: usize,
    unknown: usize,
    /// The number of objects that are created, changed, replaced, deleted, orphaned or moved.
    objects: usize,
    differences: Vec<String>,
    /// The time of `portcullis diff --git --profile kubectl`.
    ours: Cost,
    /// The time of `portcullis diff --git` with the default profile.
    auto: Cost,
    /// The number of builds of the compared roots with `kustomize build`. A root counts once for each side: the old and
    /// the new commit.
    builds: usize,
    reference: Cost,
    /// The number of builds of all roots with `kustomize build`. A root counts once for each side: the old and the new
    /// commit.
    all_builds: usize,
    all: Cost,
}

/// The builds of all roots of a commit, by the path of the root.
type Builds = BTreeMap<String, Rc<Built>>;

/// Compares the output of `portcullis diff --git` with the reference, for commits of all listed repositories. Prints
/// the differences and a table of the results.
pub fn run(request: &Request<'_>) -> ExitCode {
    let base =
        PathBuf::from(env::var_os(FOLDER).unwrap_or_else(|| panic!("{FOLDER} names the folder of the repositories")));
    let listed = LIST.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    let mut rows = Vec::new();
    for (name, newest) in listed.filter(|(name, _)| request.repository.is_none_or(|only| *name == only)) {
        let row = compare(name, &base.join(name), newest, request.commits);
        row.differences.iter().for_each(|difference| println!("{difference}"));
        println!("{}", row.print());
        rows.push(row);
    }
    rows.push(Row::sum(&rows));
    let table = table(&rows);
    println!("{table}");
    let differences: usize = rows.iter().map(|row| row.differences.len()).sum();
    if request.write && differences == 0 {
        write(&table);
    }
    let compared: usize = rows.iter().map(|row| row.roots).sum();
    if differences == 0 && compared > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn compare(name: &'static str, folder: &Path, newest: &str, commits: usize) -> Row {
    let mut row = Row { name, ..Row::default() };
    let (mut repository, mut reference) = (Repository::new(folder), Reference::new());
    let mut history = repository.history(newest, commits).into_iter();
    let first = repository.commit(&history.next().expect("the history is not empty"));
    let mut before = (reference.build_all(&repository, &first), first);
    for id in history {
        let commit = repository.commit(&id);
        let after = (reference.build_all(&repository, &commit), commit);
        row.compare(&before, &after, &repository);
        before = after;
    }
    row
}

impl Row {
    fn compare(&mut self, (before, old): &(Builds, Commit), (after, new): &(Builds, Commit), repository: &Repository) {
        let (cost, output) = diff(repository, (old, new), &["--profile", "kubectl"]);
        self.ours += cost;
        self.auto += diff(repository, (old, new), &[]).0;
        self.commits += 1;
        let found = Plan::read(&output);
        let (mut plan, mut excluded) = (Plan::default(), PruneExclusions::new());
        let roots: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        plan.untouched = roots.len().saturating_sub(found.roots.len());
        for root in roots {
            let sides = [before, after].map(|side| side.get(root).map(Rc::as_ref));
            for built in sides.into_iter().flatten() {
                self.all_builds += 1;
                self.all += built.cost;
            }
            if let Some(expected) = self.expected(&new.id, root, &found, sides) {
                excluded.insert(root.clone(), sides[0].map(Built::excluded_from_pruning).unwrap_or_default());
                plan.roots.insert(root.clone(), expected);
            }
        }
        self.roots += plan.roots.len();
        plan.summary = plan::summary(&plan.roots, &excluded);
        let changed = plan.summary.iter().filter(|(name, _)| **name != "unchanged");
        self.objects += changed.map(|(_, count)| count).sum::<usize>();
        self.check_plan(&new.id, &found, &plan);
    }

    /// Returns the changes that the plan `found` must contain for a root. `sides` contains the builds of the root in
    /// the old and in the new commit. Returns `None` if the plan need not contain the root, or if it reports the
    /// changes of the root as unknown.
    fn expected(&mut self, commit: &str, root: &str, found: &Plan, sides: [Option<&Built>; 2]) -> Option<Changes> {
        let [before, after] = sides;
        let is_found = found.roots.contains_key(root);
        if !is_found && before.zip(after).is_some_and(|(before, after)| before.text == after.text) {
            return None;
        }
        for built in sides.into_iter().flatten() {
            self.builds += 1;
            self.reference += built.cost;
        }
        if found.is_unknown(root) {
            self.unknown += 1;
            let builds = sides.iter().flatten().all(|built| built.text.is_some());
            self.check(!builds, || format!("{commit} {root}: unknown, but kustomize builds both sides"));
            return None;
        }
        Some(plan::expected(before, after))
    }

    fn check_plan(&mut self, commit: &str, found: &Plan, expected: &Plan) {
        let known = found.roots.iter().filter(|(root, _)| !found.is_unknown(root));
        let known: BTreeMap<&String, _> = known.collect();
        let names: BTreeSet<&String> = known.keys().copied().chain(expected.roots.keys()).collect();
        for root in names {
            let (found, expected) = (known.get(root).copied(), expected.roots.get(root));
            self.check(found == expected, || format!("{commit} {root}:\n  diff: {found:?}\n  kustomize: {expected:?}"));
        }
        let (of_diff, of_builds) = (&found.summary, &expected.summary);
        self.check(of_diff == of_builds, || format!("{commit}:\n  diff: {of_diff:?}\n  kustomize: {of_builds:?}"));
        let (untouched, of_commits) = (found.untouched, expected.untouched);
        self.check(untouched == of_commits, || {
            format!("{commit}: {untouched} other roots, but there are {of_commits}")
        });
    }

    fn check(&mut self, holds: bool, difference: impl Fn() -> String) {
        if !holds {
            self.differences.push(format!("{} {}", self.name, difference()));
        }
    }

    fn print(&self) -> String {
        let Self { name, commits, roots, unknown, objects, differences, ours, auto, .. } = self;
        format!(
            "{name}: {commits} commits, {roots} roots compared, {unknown} unknown, {objects} changed objects, {} differences; diff {ours}, \
             with the default profile {auto}; {} builds of these roots {}; {} builds of all roots {}",
            differences.len(),
            self.builds,
            self.reference,
            self.all_builds,
            self.all
        )
    }

    fn sum(rows: &[Self]) -> Self {
        let mut sum = Self { name: "all", ..Self::default() };
        for row in rows {
            sum.commits += row.commits;
            sum.roots += row.roots;
            sum.unknown += row.unknown;
            sum.objects += row.objects;
            sum.builds += row.builds;
            sum.ours += row.ours;
            sum.auto += row.auto;
            sum.reference += row.reference;
            sum.all_builds += row.all_builds;
            sum.all += row.all;
        }
        sum
    }
}

/// Runs `portcullis diff --git` for two commits. Returns the time and the output. The environment variable `PORTCULLIS`
/// can contain the path of the binary; the default is the binary of this build.
fn diff(repository: &Repository, (old, new): (&Commit, &Commit), options: &[&str]) -> (Cost, Vec<u8>) {
    let binary = env::var_os("PORTCULLIS").unwrap_or_else(|| env!("CARGO_BIN_EXE_portcullis").into());
    let mut command = Command::new(binary);
    command.args(["diff", "--output", "json", "--git", &format!("{}..{}", old.id, new.id), "--repository"]);
    command.arg(&repository.git_dir).args(options);
    let (cost, output) = reference::run_measured(&mut command);
    (cost, output.stdout)
}

/// Returns the table for docs/performance.md. It contains CPU times in seconds.
fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| repository | commits | compared roots | changed objects | `diff --profile kubectl` | `diff` | builds of the compared roots | times \
         `diff --profile kubectl` | builds of all roots | times `diff --profile kubectl` | times `diff` |\n\
         |:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        let times = |of: &Cost, ours: &Cost| format!("{:.1}", of.cpu.as_secs_f64() / ours.cpu.as_secs_f64());
        let builds = |number: usize, cost: &Cost| format!("{number}: {:.1}", cost.cpu.as_secs_f64());
        let cells = [
            row.name.to_owned(),
            row.commits.to_string(),
            row.roots.to_string(),
            row.objects.to_string(),
            format!("{:.1}", row.ours.cpu.as_secs_f64()),
            format!("{:.1}", row.auto.cpu.as_secs_f64()),
            builds(row.builds, &row.reference),
            times(&row.reference, &row.ours),
            builds(row.all_builds, &row.all),
            times(&row.all, &row.ours),
            times(&row.all, &row.auto),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// Replaces the text between two markers in docs/performance.md with `table`.
fn write(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).expect("the page can be read");
    let (before, rest) = page.split_once(BEGIN).expect("the page has the first marker");
    let (_, after) = rest.split_once(END).expect("the page has the second marker");
    let made = format!(
        "Made by `make history` with kustomize {} on {} cores.",
        reference::version(),
        thread::available_parallelism().map_or(1, usize::from)
    );
    fs::write(path, format!("{before}{BEGIN}\n{made}\n\n{table}{END}{after}")).expect("the page can be written");
}
