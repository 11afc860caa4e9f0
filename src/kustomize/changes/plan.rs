//! Compares the builds of all kustomization roots before and after a change of files. A root is a folder that is built.
//! The result is a plan: the list of objects that the change creates, changes or deletes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use super::compare::{self, Action, ObjectChange};
use super::object::Object;
use super::side::{Key, Root, Side};
use crate::kustomize::engine::{Built, Stop};
use crate::kustomize::finding::Site;
use crate::kustomize::identity::ObjectId;
use crate::kustomize::tree::TreePath;

/// The effects of a change of files on all kustomization roots, which are the folders that are built.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The built folders (kustomization roots) whose output may change because of changed files, sorted by path. Each
    /// one is listed with its changed objects. A folder is included if it is new or removed, if its build may read a
    /// changed file, or if its build settings change.
    pub roots: Vec<RootChange>,
    /// The number of built folders (kustomization roots) whose output cannot change. Their build settings stay the
    /// same, and their builds read none of the changed files.
    pub untouched: usize,
}

/// The effects of a change on one root.
#[derive(Debug, Clone)]
pub struct RootChange {
    /// The kustomization root: the path of the folder that is built.
    pub root: TreePath,
    /// The objects whose controllers build this folder, such as the Flux object `Kustomization flux-system/apps`. Empty
    /// if no such object is known.
    pub owners: Vec<Owner>,
    /// Whether the root builds before and after the change.
    pub state: State,
    /// The changed objects.
    pub objects: Vec<ObjectChange>,
    /// Number of unchanged objects.
    pub unchanged: usize,
}

/// An object whose controller builds a folder and applies the result to a cluster, such as a Flux Kustomization or an
/// Argo CD Application.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The cluster of the object, identified by the folder whose manifests are applied to the cluster by hand or by
    /// `flux bootstrap`. `None` if this folder is unknown.
    pub cluster: Option<TreePath>,
    /// Kind, namespace and name, such as `Kustomization flux-system/apps`.
    pub object: String,
}

/// The reason why the output of a kustomize build is unknown, with its position in the files. Either the build fails,
/// or it needs an operation that Portcullis does not perform, such as rendering a Helm chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The position of the problem: a list entry in a kustomization file, or an object. The problem is an error in the
    /// build, or a build step whose result cannot be determined.
    pub site: Site,
    /// The message of the error, without the position.
    pub message: String,
}

impl From<Stop> for Cause {
    fn from(stop: Stop) -> Self {
        Self { site: stop.site(), message: stop.message().to_owned() }
    }
}

/// The results of building a folder before and after a change of files. For example, the build succeeds before the
/// change, and fails after it. The folder may also exist only before or only after the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The build of the kustomization succeeds before and after the change.
    Builds,
    /// The built folder exists only after the change. All its objects count as created.
    Appears,
    /// The built folder exists only before the change. All its objects count as deleted, except for orphaned objects,
    /// which the cluster keeps.
    Vanishes,
    /// The build of the kustomization fails before the change, and succeeds after it. All its objects count as created.
    BeginsToBuild,
    /// The build of the kustomization succeeds before the change, and fails after it. The effect on its objects is then
    /// unknown. Contains the error.
    StopsBuilding(Cause),
    /// The build of the kustomization fails after the change. Before the change, the build fails too, or the folder
    /// does not exist. Contains the error after the change.
    Fails(Cause),
    /// The changes are unknown. The build before or after the change depends on an operation that Portcullis does not
    /// perform, such as a network request, or running another program.
    Unknown(Cause),
}

impl State {
    /// Returns the name of the state in reports, such as `builds`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Builds => "builds",
            Self::Appears => "appears",
            Self::Vanishes => "vanishes",
            Self::BeginsToBuild => "begins-to-build",
            Self::StopsBuilding(_) => "stops-building",
            Self::Fails(_) => "fails",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Returns the reason why the changes of the root's objects are unknown; `None` if the changes are known.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::StopsBuilding(cause) | Self::Fails(cause) | Self::Unknown(cause) => Some(cause),
            Self::Builds | Self::Appears | Self::Vanishes | Self::BeginsToBuild => None,
        }
    }
}

/// Counts of the objects that a change of files creates, changes, deletes or moves. Also counts the objects that stay
/// the same, and those that stay in the cluster although no kustomization renders them any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of created objects.
    pub create: usize,
    /// Number of changed objects.
    pub change: usize,
    /// Number of generated objects that are deleted and created with another hash in their names.
    pub replace: usize,
    /// Number of deleted objects.
    pub delete: usize,
    /// Number of objects that stay in the cluster, although no kustomization renders them any more. They stay because
    /// pruning is disabled, or because they are excluded from pruning.
    pub orphan: usize,
    /// Number of objects that move from one kustomization to another. The first no longer renders the object after the
    /// change, and the second renders it instead.
    pub moved: usize,
    /// Number of unchanged objects in the folders that were compared. Folders that no changed file can affect are not
    /// compared.
    pub unchanged: usize,
}

impl Counts {
    /// Returns the number of objects before the change.
    pub fn before(&self) -> usize {
        self.change + self.replace + self.delete + self.orphan + self.moved + self.unchanged
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { create, change, replace, delete, orphan, moved, unchanged } = self;
        write!(f, "{create} to create, {change} to change, {replace} to replace, {delete} to delete, ")?;
        if *orphan > 0 {
            write!(f, "{orphan} orphaned, ")?;
        }
        write!(f, "{moved} moved, {unchanged} unchanged")
    }
}

impl RootChange {
    /// Returns the clusters to which the objects of this root are applied. Each cluster is identified by its bootstrap
    /// folder, which contains the manifests that are applied to the cluster first, for example by `flux bootstrap`.
    /// `None` represents a cluster whose bootstrap folder is unknown.
    fn clusters(&self) -> BTreeSet<Option<TreePath>> {
        self.owners.iter().map(|owner| owner.cluster.clone()).collect()
    }

    /// Returns whether a change of files affects this kustomization. True if objects change, or if the kustomization is
    /// added or removed. Also true if the build starts to succeed or to fail, or if the effect is unknown. A
    /// kustomization whose build fails after the change, and did not succeed before the change, counts as not affected.
    pub fn is_changed(&self) -> bool {
        !self.objects.is_empty() || !matches!(self.state, State::Builds | State::Fails(_))
    }
}

impl Plan {
    /// Returns whether the change affects no root.
    pub fn is_empty(&self) -> bool {
        !self.roots.iter().any(RootChange::is_changed)
    }

    /// Creates a plan of the changes of all kustomization roots. A root is a folder that is built. If an object
    /// disappears from one root and appears in another root that is applied to the same clusters, the plan records a
    /// move.
    ///
    /// `roots` contains the roots that the changed files can affect. `untouched` is the number of the other roots.
    pub fn new(roots: Vec<RootChange>, untouched: usize) -> Self {
        let mut plan = Self { roots, untouched };
        plan.find_moves();
        plan
    }

    /// Returns the numbers of created, changed, replaced, deleted, orphaned, moved and unchanged objects. Adds up the
    /// objects of all kustomizations. An orphaned object stays in the cluster, although no kustomization renders it any
    /// more.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for root in &self.roots {
            counts.unchanged += root.unchanged;
            for object in &root.objects {
                match object.action {
                    Action::Create => counts.create += 1,
                    Action::Change => counts.change += 1,
                    Action::Replace { .. } => counts.replace += 1,
                    Action::Delete => counts.delete += 1,
                    Action::Orphan => counts.orphan += 1,
                    Action::Move { .. } => counts.moved += 1,
                }
            }
        }
        counts
    }
}

/// A root that exists before a change, after it, or both. `old` is the index of the root in the [`Side`] before the
/// change, and `new` is its index in the `Side` after the change. An index is `None` if that `Side` does not have the
/// root.
#[derive(Debug, Clone)]
pub struct Pair {
    old: Option<usize>,
    new: Option<usize>,
    keys: Vec<Key>,
}

/// Compares the objects that each kustomization root renders before and after a change. A root is a folder that is
/// built, for example by a Flux Kustomization. If `changed` contains the changed files, skips roots that the change
/// cannot affect. If `changed` is `None`, builds all roots.
pub fn plan(old: &Side, new: &Side, changed: Option<&BTreeSet<TreePath>>) -> Plan {
    let (reached, untouched) = reached(old, new, changed);
    Plan::new(reached.iter().map(|pair| root_change(pair, old, new)).collect(), untouched)
}

/// Returns the roots to compare, sorted by folder, and the number of all other roots. A root is compared if it can read
/// a file in `changed`, if its build settings change, or if it exists only before or only after the change. If
/// `changed` is `None`, all roots are compared.
pub fn reached(old: &Side, new: &Side, changed: Option<&BTreeSet<TreePath>>) -> (Vec<Pair>, usize) {
    let mut pairs: BTreeMap<(Option<usize>, Option<usize>), Vec<Key>> = BTreeMap::new();
    let keys: BTreeSet<&Key> = old.keys.keys().chain(new.keys.keys()).collect();
    for key in keys {
        let indexes = (old.keys.get(key).copied(), new.keys.get(key).copied());
        pairs.entry(indexes).or_default().push(key.clone());
    }
    let count = pairs.len();
    let pairs = pairs.into_iter().map(|((old, new), keys)| Pair { old, new, keys });
    let is_wanted = |pair: &Pair| changed.is_none_or(|changed| pair.is_reached(old, new, changed));
    let mut reached: Vec<_> = pairs.filter(is_wanted).collect();
    reached.sort_by(|a, b| (a.folder(old, new), &a.keys).cmp(&(b.folder(old, new), &b.keys)));
    let untouched = count - reached.len();
    (reached, untouched)
}

impl Pair {
    fn roots<'s>(&self, old: &'s Side, new: &'s Side) -> (Option<&'s Root>, Option<&'s Root>) {
        (self.old.and_then(|at| old.roots.get(at)), self.new.and_then(|at| new.roots.get(at)))
    }

    fn folder(&self, old: &Side, new: &Side) -> TreePath {
        let (before, after) = self.roots(old, new);
        after.or(before).map(|root| root.folder.clone()).unwrap_or_default()
    }

    /// Returns whether a change can affect what the root renders. This is the case if the root can read one of the
    /// files in `changed`, if its build settings change, or if it exists only before or only after the change.
    fn is_reached(&self, old: &Side, new: &Side, changed: &BTreeSet<TreePath>) -> bool {
        let (Some(before), Some(after)) = self.roots(old, new) else { return true };
        !before.is_like(after) || old.reach(before).has_any(changed) || new.reach(after).has_any(changed)
    }

    fn owners(&self) -> Vec<Owner> {
        let owner = |key: &Key| Some(Owner { cluster: key.cluster().cloned(), object: key.owner()?.to_owned() });
        self.keys.iter().filter_map(owner).collect()
    }
}

/// The result of building a root before or after a change.
enum Rendering<'a> {
    Absent,
    Built(Vec<Object>, Box<Built<'a>>),
    Refused(Cause),
    Unknown(Cause),
}

impl<'a> Rendering<'a> {
    fn of(side: &'a Side, root: Option<&'a Root>) -> Self {
        let Some(root) = root else { return Self::Absent };
        let built = side.build(root).and_then(|built| Ok((Side::objects(root, &built)?, built)));
        match built {
            Ok((objects, built)) => Self::Built(objects, Box::new(built)),
            Err(stop @ Stop::Refused(_)) => Self::Refused(stop.into()),
            Err(stop @ Stop::Unknown(_)) => Self::Unknown(stop.into()),
        }
    }

    fn objects(&self) -> Option<compare::Rendered<'_, 'a>> {
        match self {
            Self::Built(objects, built) => Some((objects, built)),
            Self::Absent | Self::Refused(_) | Self::Unknown(_) => None,
        }
    }
}

/// Builds a root before and after a change, and compares the objects.
pub fn root_change(pair: &Pair, old: &Side, new: &Side) -> RootChange {
    let roots = pair.roots(old, new);
    let (before, after) = (Rendering::of(old, roots.0), Rendering::of(new, roots.1));
    let state = match (&before, &after) {
        (Rendering::Unknown(cause), _) | (_, Rendering::Unknown(cause)) => State::Unknown(cause.clone()),
        (Rendering::Built(..), Rendering::Refused(cause)) => State::StopsBuilding(cause.clone()),
        (_, Rendering::Refused(cause)) => State::Fails(cause.clone()),
        (Rendering::Absent, _) => State::Appears,
        (_, Rendering::Absent) => State::Vanishes,
        (Rendering::Refused(_), _) => State::BeginsToBuild,
        (Rendering::Built(..), Rendering::Built(..)) => State::Builds,
    };
    let prunes = match roots {
        (_, Some(after)) => after.prunes,
        (Some(before), None) => before.deletes,
        (None, None) => true,
    };
    let (objects, unchanged) = match state.cause() {
        Some(_) => (Vec::new(), 0),
        None => compare::objects(before.objects(), after.objects(), prunes),
    };
    RootChange { root: pair.folder(old, new), owners: pair.owners(), state, objects, unchanged }
}

impl Plan {
    /// Marks an object as moved if it disappears from the output of one folder, and is new in the output of another
    /// folder. Both folders must be applied to the same clusters. Removes the object from the created objects of the
    /// other folder.
    fn find_moves(&mut self) {
        let clusters: Vec<_> = self.roots.iter().map(RootChange::clusters).collect();
        // Several roots may create the same object, such as those of two environments.
        let mut created: BTreeMap<(&BTreeSet<_>, ObjectId), VecDeque<(usize, String)>> = BTreeMap::new();
        for (number, root) in self.roots.iter().enumerate() {
            for object in root.objects.iter().filter(|object| object.action == Action::Create) {
                let creators = created.entry((&clusters[number], object.id.clone())).or_default();
                creators.push_back((number, object.after.clone()));
            }
        }
        let names: Vec<String> = self.roots.iter().map(|root| root.root.shown().to_owned()).collect();
        let mut moved = BTreeSet::new();
        for (root, clusters) in self.roots.iter_mut().zip(&clusters) {
            let gone = |object: &&mut ObjectChange| matches!(object.action, Action::Delete | Action::Orphan);
            for object in root.objects.iter_mut().filter(gone) {
                let creators = created.get_mut(&(clusters, object.id.clone()));
                if let Some((number, after)) = creators.and_then(VecDeque::pop_front) {
                    (object.action, object.after) = (Action::Move { to: names[number].clone() }, after);
                    moved.insert((number, object.id.clone()));
                }
            }
        }
        for (number, root) in self.roots.iter_mut().enumerate() {
            let is_moved = |object: &ObjectChange| moved.contains(&(number, object.id.clone()));
            root.objects.retain(|object| object.action != Action::Create || !is_moved(object));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::options::Options;
    use crate::kustomize::tree::{Memory, Tree};

    #[test]
    fn objects_of_several_renamed_roots_move() {
        let side = |folders: [&str; 2]| {
            let files = folders.into_iter().fold(Memory::new(), |files, folder| {
                let map = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n";
                let files = files.file(&format!("{folder}/kustomization.yaml"), "resources: [a.yaml]\n");
                files.file(&format!("{folder}/a.yaml"), map)
            });
            Side::new(Tree::new(files, "/"), &Options::default())
        };
        let plan = plan(&side(["old/a", "old/b"]), &side(["new/a", "new/b"]), None);
        let counts = Counts { moved: 2, ..Counts::default() };
        assert_eq!(plan.counts(), counts);
        let targets = plan.roots.iter().flat_map(|root| &root.objects).map(|object| &object.action);
        let expected = ["new/a", "new/b"].map(|to| Action::Move { to: to.to_owned() });
        assert!(targets.eq(&expected));
    }
}
