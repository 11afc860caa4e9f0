//! The plan of a change: its effects on all roots of a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::compare::{self, Action, ObjectChange};
use super::object::{Id, Object};
use super::side::Side;
use crate::kustomize::build::{Built, Stop};
use crate::kustomize::finding::Site;
use crate::kustomize::tree::TreePath;

/// The effects of a change on all roots.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The roots that a changed file reaches, sorted by path.
    pub roots: Vec<RootChange>,
    /// The number of roots that no changed file reaches.
    pub untouched: usize,
}

/// The effects of a change on one root.
#[derive(Debug, Clone)]
pub struct RootChange {
    /// The folder.
    pub root: TreePath,
    /// Whether it builds before and after the change.
    pub state: State,
    /// The changed objects.
    pub objects: Vec<ObjectChange>,
    /// Number of unchanged objects.
    pub unchanged: usize,
}

/// The reason why the objects of a root are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The entry or object that is the cause.
    pub site: Site,
    /// The error, without the position.
    pub message: String,
}

impl From<Stop> for Cause {
    fn from(stop: Stop) -> Self {
        Self { site: stop.site(), message: stop.message().to_owned() }
    }
}

/// The state of a root: whether it builds before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Both sides build.
    Builds,
    /// The root is new.
    Appears,
    /// The root does not exist any more. Its objects count as deleted.
    Vanishes,
    /// Only the new side builds. Its objects count as created.
    BeginsToBuild,
    /// Only the old side builds. The changes of its objects are unknown.
    StopsBuilding(Cause),
    /// Neither side builds.
    Fails(Cause),
    /// The result of a side depends on something that is not executed, so the changes are unknown.
    Unknown(Cause),
}

impl State {
    /// Returns the name in reports.
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

    /// Returns the reason why the objects of the root are unknown.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::StopsBuilding(cause) | Self::Fails(cause) | Self::Unknown(cause) => Some(cause),
            Self::Builds | Self::Appears | Self::Vanishes | Self::BeginsToBuild => None,
        }
    }
}

/// Numbers of objects by action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Created objects.
    pub create: usize,
    /// Changed objects.
    pub change: usize,
    /// Objects that are deleted and created with another hash in their names.
    pub replace: usize,
    /// Deleted objects.
    pub delete: usize,
    /// Objects that move to another root.
    pub moved: usize,
    /// Unchanged objects in roots that a changed file reaches.
    pub unchanged: usize,
}

impl Counts {
    /// Returns the number of objects before the change.
    pub fn before(&self) -> usize {
        self.change + self.replace + self.delete + self.moved + self.unchanged
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { create, change, replace, delete, moved, unchanged } = self;
        write!(
            f,
            "{create} to create, {change} to change, {replace} to replace, {delete} to delete, {moved} moved, \
             {unchanged} unchanged"
        )
    }
}

impl RootChange {
    /// Returns whether there is something to report.
    pub fn is_changed(&self) -> bool {
        !self.objects.is_empty() || !matches!(self.state, State::Builds | State::Fails(_))
    }
}

impl Plan {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        !self.roots.iter().any(RootChange::is_changed)
    }

    /// Creates the plan of some roots, and finds the objects that move between them.
    pub fn new(roots: Vec<RootChange>, untouched: usize) -> Self {
        let mut plan = Self { roots, untouched };
        plan.find_moves();
        plan
    }

    /// Returns the sums over all roots.
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
                    Action::Move { .. } => counts.moved += 1,
                }
            }
        }
        counts
    }
}

/// Compares two sides. Only roots that one of the changed files reaches are built; `None` builds all.
pub fn plan(old: &Side, new: &Side, changed: Option<&BTreeSet<TreePath>>) -> Plan {
    let (reached, untouched) = reached(old, new, changed);
    Plan::new(reached.iter().map(|root| root_change(root, old, new)).collect(), untouched)
}

/// Returns the roots that a changed file reaches, and the number of other roots.
pub fn reached(old: &Side, new: &Side, changed: Option<&BTreeSet<TreePath>>) -> (Vec<TreePath>, usize) {
    let all: BTreeSet<&TreePath> = old.roots.union(&new.roots).collect();
    let count = all.len();
    let is_wanted = |root: &&TreePath| changed.is_none_or(|changed| is_reached(root, old, new, changed));
    let reached: Vec<_> = all.into_iter().filter(is_wanted).cloned().collect();
    let untouched = count - reached.len();
    (reached, untouched)
}

/// Returns whether a changed file may change the output of a root. A root that exists on only one side is part of
/// another root on the other side, or absent there.
fn is_reached(root: &TreePath, old: &Side, new: &Side, changed: &BTreeSet<TreePath>) -> bool {
    old.roots.contains(root) != new.roots.contains(root)
        || [old, new].into_iter().any(|side| side.reach(root).has_any(changed))
}

/// The result of building one side of a root.
enum Rendering<'a> {
    Absent,
    Built(Vec<Object>, Box<Built<'a>>),
    Refused(Cause),
    Unknown(Cause),
}

impl<'a> Rendering<'a> {
    fn of(side: &'a Side, root: &TreePath) -> Self {
        if !side.roots.contains(root) {
            return Self::Absent;
        }
        let built = side.build(root).and_then(|built| Ok((Object::of_build(&built)?, built)));
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

/// Builds both sides of a root and compares them.
pub fn root_change(root: &TreePath, old: &Side, new: &Side) -> RootChange {
    let (before, after) = (Rendering::of(old, root), Rendering::of(new, root));
    let state = match (&before, &after) {
        (Rendering::Unknown(cause), _) | (_, Rendering::Unknown(cause)) => State::Unknown(cause.clone()),
        (Rendering::Built(..), Rendering::Refused(cause)) => State::StopsBuilding(cause.clone()),
        (_, Rendering::Refused(cause)) => State::Fails(cause.clone()),
        (Rendering::Absent, _) => State::Appears,
        (_, Rendering::Absent) => State::Vanishes,
        (Rendering::Refused(_), _) => State::BeginsToBuild,
        (Rendering::Built(..), Rendering::Built(..)) => State::Builds,
    };
    let (objects, unchanged) = match state.cause() {
        Some(_) => (Vec::new(), 0),
        None => compare::objects(before.objects(), after.objects()),
    };
    RootChange { root: root.clone(), state, objects, unchanged }
}

impl Plan {
    /// Finds objects that are deleted from one root and created in another, and sets their action to a move.
    fn find_moves(&mut self) {
        let mut created: BTreeMap<Id, (usize, String)> = BTreeMap::new();
        for (number, root) in self.roots.iter().enumerate() {
            let of_root = root.objects.iter().filter(|object| object.action == Action::Create);
            created.extend(of_root.map(|object| (object.id.clone(), (number, object.after.clone()))));
        }
        let names: Vec<String> = self.roots.iter().map(|root| root.root.shown().to_owned()).collect();
        let mut moved = BTreeSet::new();
        for object in self.roots.iter_mut().flat_map(|root| &mut root.objects) {
            if object.action == Action::Delete
                && let Some((number, after)) = created.remove(&object.id)
            {
                (object.action, object.after) = (Action::Move { to: names[number].clone() }, after);
                moved.insert((number, object.id.clone()));
            }
        }
        for (number, root) in self.roots.iter_mut().enumerate() {
            let is_moved = |object: &ObjectChange| moved.contains(&(number, object.id.clone()));
            root.objects.retain(|object| object.action != Action::Create || !is_moved(object));
        }
    }
}
