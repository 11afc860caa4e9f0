//! The changes of objects between two commits. They are either parsed from the output of `portcullis diff`, or computed
//! from the builds of both commits with kustomize.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::reference::{Built, Id};

/// The changed objects of a kustomize root. A replaced or moved object counts as a deletion and a creation.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Changes {
    pub state: String,
    pub create: BTreeSet<Id>,
    pub delete: BTreeSet<Id>,
    pub change: BTreeSet<Id>,
    pub unchanged: usize,
}

/// The objects that labels or annotations exclude from pruning. The key is the path of the kustomize root that renders
/// them.
pub type PruneExclusions = BTreeMap<String, BTreeSet<Id>>;

/// The changes between two commits: the changes of each kustomize root, the numbers in the summary, and the number of
/// roots that are not affected.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub roots: BTreeMap<String, Changes>,
    pub summary: BTreeMap<&'static str, usize>,
    pub untouched: usize,
}

impl Plan {
    /// Parses the JSON output of `portcullis diff`.
    pub fn read(text: &[u8]) -> Self {
        let plan: Value = serde_json::from_slice(text).expect("diff prints JSON");
        let mut roots = BTreeMap::<String, Changes>::new();
        for root in plan["roots"].as_array().expect("a plan has roots") {
            let path = path(&root["root"]);
            let changes = roots.entry(path.clone()).or_default();
            changes.state = text_of(&root["state"]);
            changes.unchanged = root["unchanged"].as_u64().unwrap_or_default() as usize;
            for object in root["objects"].as_array().into_iter().flatten() {
                add(&mut roots, &path, object);
            }
        }
        let names = ["create", "change", "replace", "delete", "orphan", "move", "unchanged"];
        let number = |name| (name, plan["summary"][name].as_u64().expect("the value is a number") as usize);
        let untouched = plan["untouchedRoots"].as_u64().expect("the value is a number") as usize;
        Self { roots, summary: names.into_iter().map(number).collect(), untouched }
    }

    pub fn is_unknown(&self, root: &str) -> bool {
        self.roots.get(root).is_some_and(|root| root.state == "unknown")
    }
}

fn add(roots: &mut BTreeMap<String, Changes>, root: &str, object: &Value) {
    let field = |name: &str| text_of(&object[name]);
    let id = (field("group"), field("kind"), field("namespace"), field("name"));
    let changes = roots.entry(root.to_owned()).or_default();
    match object["action"].as_str().unwrap_or_default() {
        "create" => drop(changes.create.insert(id)),
        "change" => drop(changes.change.insert(id)),
        "delete" | "orphan" => drop(changes.delete.insert(id)),
        "replace" => {
            changes.delete.insert((id.0.clone(), id.1.clone(), id.2.clone(), field("replaces")));
            changes.create.insert(id);
        }
        "move" => {
            changes.delete.insert(id.clone());
            roots.entry(path(&object["movedTo"])).or_default().create.insert(id);
        }
        action => panic!("unknown action {action}"),
    }
}

/// Returns the path of a kustomize root. `value` is the path in the output of `portcullis diff`, in which `.` is the
/// top folder of the repository. Returns an empty path for the top folder.
fn path(value: &Value) -> String {
    Some(text_of(value)).filter(|path| path != ".").unwrap_or_default()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the changes of a kustomize root between two commits. `before` is its build in the first commit, and `after`
/// is its build in the second commit. A build is `None` if the root does not exist in the commit. At least one of them
/// must not be `None`.
pub fn expected(before: Option<&Built>, after: Option<&Built>) -> Changes {
    let (old, new) = (before.and_then(Built::objects), after.and_then(Built::objects));
    let state = match (before.is_some(), after.is_some(), old, new) {
        (_, false, ..) => "vanishes",
        (true, true, Some(_), None) => "stops-building",
        (_, true, _, None) => "fails",
        (false, true, ..) => "appears",
        (true, true, None, Some(_)) => "begins-to-build",
        (true, true, Some(_), Some(_)) => "builds",
    };
    let mut changes = Changes { state: state.to_owned(), ..Changes::default() };
    if matches!(state, "stops-building" | "fails") {
        return changes;
    }
    let none = BTreeMap::new();
    let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
    changes.create = new.keys().filter(|id| !old.contains_key(*id)).cloned().collect();
    changes.delete = old.keys().filter(|id| !new.contains_key(*id)).cloned().collect();
    let both: Vec<_> = old.iter().filter_map(|(id, value)| Some((id, value, new.get(id)?))).collect();
    changes.change = both.iter().filter(|(_, old, new)| old != new).map(|(id, ..)| (*id).clone()).collect();
    changes.unchanged = both.len() - changes.change.len();
    changes
}

/// Returns the numbers that the summary of `portcullis diff` must contain. `roots` contains the changes of each
/// kustomize root. `excluded` contains the objects of each root that labels or annotations exclude from pruning.
pub fn summary(roots: &BTreeMap<String, Changes>, excluded: &PruneExclusions) -> BTreeMap<&'static str, usize> {
    let (mut replaced, mut created, mut deleted) = (0, BTreeMap::<&Id, usize>::new(), BTreeMap::<&Id, usize>::new());
    let mut orphans = BTreeMap::<&Id, usize>::new();
    for (path, root) in roots {
        let (mut deletions, mut creations) = (root.delete.iter().collect::<Vec<_>>(), Vec::new());
        for id in &root.create {
            match deletions.iter().position(|old| is_regenerated(old, id)) {
                Some(at) => (replaced, _) = (replaced + 1, deletions.remove(at)),
                None => creations.push(id),
            }
        }
        let is_excluded = |id: &Id| excluded.get(path).is_some_and(|ids| ids.contains(id));
        for id in deletions {
            *deleted.entry(id).or_default() += 1;
            *orphans.entry(id).or_default() += usize::from(is_excluded(id));
        }
        creations.into_iter().for_each(|id| *created.entry(id).or_default() += 1);
    }
    let moves = |id: &Id| deleted.get(id).copied().min(created.get(id).copied()).unwrap_or_default();
    let moved: usize = deleted.keys().map(|id| moves(id)).sum();
    let orphaned: usize = orphans.iter().map(|(id, count)| count.saturating_sub(moves(id))).sum();
    let sum = |of: &BTreeMap<&Id, usize>| of.values().sum::<usize>() - moved;
    BTreeMap::from([
        ("create", sum(&created)),
        ("change", roots.values().map(|root| root.change.len()).sum()),
        ("replace", replaced),
        ("delete", sum(&deleted) - orphaned),
        ("orphan", orphaned),
        ("move", moved),
        ("unchanged", roots.values().map(|root| root.unchanged).sum()),
    ])
}

/// Returns whether two ids belong to the same generated ConfigMap or Secret, and differ only in the hash suffix of the
/// name.
fn is_regenerated(old: &Id, new: &Id) -> bool {
    let stem = |id: &Id| {
        let (stem, hash) = id.3.rsplit_once('-')?;
        let is_hash = hash.len() == 10 && hash.bytes().all(|byte| b"bcdfghkmt2456789".contains(&byte));
        is_hash.then(|| (id.1.clone(), id.2.clone(), stem.to_owned()))
    };
    old.0.is_empty()
        && matches!(old.1.as_str(), "ConfigMap" | "Secret")
        && stem(old).is_some()
        && stem(old) == stem(new)
}
