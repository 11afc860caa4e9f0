//! Compares the plans of commits of public repositories with a reference: both sides of each root, built by kustomize and
//! compared object by object.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use portcullis::kustomize::changes::{Action, Plan, RootChange, Side, State, plan};
use portcullis::kustomize::object_id::ObjectId;
use portcullis::kustomize::options::{Options, Restrictor};
use portcullis::kustomize::tree::Repository;
use portcullis::yaml::{self, Limits};
use serde_json::Value;

use crate::oracle::{Answer, Oracle};

/// The numbers of a comparison.
#[derive(Default)]
struct Counts {
    commits: usize,
    roots: usize,
    unknown: usize,
    differences: Vec<String>,
    ours: Duration,
    reference: Duration,
}

/// What happens to the objects of a root: their identities by the word for the change.
type Changes = BTreeMap<&'static str, BTreeSet<ObjectId>>;

/// Compares the plans of the last `commits` commits of each checkout.
pub fn run(checkouts: &[(&str, PathBuf)], commits: usize) -> ExitCode {
    let (mut counts, mut oracle) = (Counts::default(), Oracle::start());
    for (name, folder) in checkouts {
        for revisions in history(folder, commits).windows(2) {
            compare(name, folder, (&revisions[1], &revisions[0]), &mut oracle, &mut counts);
        }
        println!("{name}: {} commits, {} roots so far", counts.commits, counts.roots);
    }
    let Counts { commits, roots, unknown, differences, ours, reference } = &counts;
    differences.iter().for_each(|difference| println!("{difference}"));
    println!(
        "{commits} commits, {roots} changed roots, {unknown} unknown, {} differences; plans took {ours:.1?}, two builds of each \
         root with kustomize {reference:.1?}",
        differences.len()
    );
    if differences.is_empty() && *roots > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the commits on the first parents of HEAD, newest first.
fn history(folder: &Path, commits: usize) -> Vec<String> {
    let count = (commits + 1).to_string();
    let output = git(folder, &["log", "--first-parent", "--format=%H", "-n", &count]);
    String::from_utf8(output).expect("git prints text").lines().map(str::to_owned).collect()
}

fn git(folder: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git").arg("-C").arg(folder).args(args).output().expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn compare(name: &str, folder: &Path, (old, new): (&str, &str), oracle: &mut Oracle, counts: &mut Counts) {
    let start = Instant::now();
    let plan = planned(folder, old, new);
    counts.ours += start.elapsed();
    counts.commits += 1;
    if plan.roots.is_empty() {
        return;
    }
    let (before, after) = (Exported::of(folder, old), Exported::of(folder, new));
    for root in &plan.roots {
        if let State::Unknown(_) = root.state {
            counts.unknown += 1;
            continue;
        }
        counts.roots += 1;
        let start = Instant::now();
        let built = [&before, &after].map(|side| side.build(root, oracle));
        counts.reference += start.elapsed();
        let expected = expected(&built, &plan, root);
        let found = found(root);
        if expected.as_ref() != Some(&found) {
            let path = root.root.shown();
            counts.differences.push(format!("{name} {new} {path}: {found:?}, but kustomize: {expected:?}"));
        }
    }
}

fn planned(folder: &Path, old: &str, new: &str) -> Plan {
    let repository = Repository::discover(folder).expect("it is a repository");
    let [old, new] = [old, new].map(|revision| repository.revision(revision).expect("it has the commit"));
    let changed = old.changed_files(&new);
    let options = Options { restrictor: Restrictor::None, ..Options::default() };
    let side = |tree| Side::new(tree, &options);
    plan(&side(old.into_tree()), &side(new.into_tree()), Some(&changed))
}

/// The files of a commit in a temporary folder.
struct Exported(tempfile::TempDir);

impl Exported {
    fn of(folder: &Path, revision: &str) -> Self {
        let exported = tempfile::tempdir().expect("there is room");
        let archive = exported.path().join("archive.tar");
        let output = format!("--output={}", archive.display());
        git(folder, &["archive", &output, revision]);
        let mut tar = Command::new("tar");
        let status = tar.arg("-xf").arg(&archive).arg("-C").arg(exported.path()).status().expect("tar runs");
        assert!(status.success(), "the archive of {revision} is unpacked");
        Self(exported)
    }

    /// Returns the objects that kustomize builds of a root; `None` if it refuses, or if there is no such folder.
    fn build(&self, root: &RootChange, oracle: &mut Oracle) -> Option<BTreeMap<ObjectId, Value>> {
        let folder = self.0.path().join(root.root.as_str());
        match oracle.build_folder(&folder, true, false) {
            Answer::Builds(text) => Some(objects(&text)),
            Answer::Refuses(_) => None,
        }
    }
}

fn objects(text: &str) -> BTreeMap<ObjectId, Value> {
    let limits = Limits::default();
    let documents = yaml::documents(text, &limits).map(|document| document.expect("kustomize prints YAML").value);
    let field =
        |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = |value: &Value| ObjectId {
        group: field(value, "/apiVersion").rsplit_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default(),
        kind: field(value, "/kind"),
        namespace: field(value, "/metadata/namespace"),
        name: field(value, "/metadata/name"),
    };
    documents.filter(Value::is_object).map(|value| (id(&value), value)).collect()
}

/// Returns the changes between two builds; `None` if the state of the root is another one than these builds show.
fn expected(
    [before, after]: &[Option<BTreeMap<ObjectId, Value>>; 2],
    plan: &Plan,
    root: &RootChange,
) -> Option<Changes> {
    let none = BTreeMap::new();
    let (old, new) = match root.state {
        State::Builds => (before.as_ref()?, after.as_ref()?),
        State::Appears | State::BeginsToBuild => (&none, after.as_ref()?),
        State::Vanishes => (before.as_ref()?, &none),
        State::StopsBuilding(_) => return (before.is_some() && after.is_none()).then(Changes::new),
        State::Fails(_) => return after.is_none().then(Changes::new),
        State::Unknown(_) => return None,
    };
    let moved: BTreeSet<&ObjectId> =
        plan.roots.iter().flat_map(|root| &root.objects).filter(is_move).map(|one| &one.id).collect();
    let ids = |of: &BTreeMap<ObjectId, Value>, without: &BTreeMap<ObjectId, Value>| {
        of.keys().filter(|id| !without.contains_key(*id) && !moved.contains(id)).cloned().collect::<BTreeSet<_>>()
    };
    let changed = old.iter().filter(|(id, value)| new.get(*id).is_some_and(|new| new != *value));
    let all =
        [("create", ids(new, old)), ("delete", ids(old, new)), ("change", changed.map(|(id, _)| id.clone()).collect())];
    Some(all.into_iter().filter(|(_, ids)| !ids.is_empty()).collect())
}

fn is_move(object: &&portcullis::kustomize::changes::ObjectChange) -> bool {
    matches!(object.action, Action::Move { .. })
}

/// Returns the changes of a plan. A replacement is a deletion and a creation; objects that move are left out.
fn found(root: &RootChange) -> Changes {
    let mut changes = Changes::new();
    for object in &root.objects {
        match &object.action {
            Action::Replace { old } => {
                changes.entry("create").or_default().insert(object.id.clone());
                changes.entry("delete").or_default().insert(old.clone());
            }
            Action::Move { .. } => {}
            action => drop(changes.entry(action.as_str()).or_default().insert(object.id.clone())),
        }
    }
    changes
}
