//! An overview of a repository: which tool builds which folder, in which order, and which files are unused.

mod graph;
mod text;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use super::object::text;
use super::{Build, Cluster, Member, Object, Survey};
use crate::kustomize::options::Profile;
use crate::kustomize::tree::TreePath;

/// An overview of the folders of a repository that Flux, Argo CD, Fleet and Sveltos build, and of unused files. All
/// paths are formatted for display.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// The clusters to which Flux applies the repository.
    pub clusters: Vec<ClusterOverview>,
    /// The folders that Argo CD builds. The key is kind, namespace and name of the Application or ApplicationSet.
    pub applications: BTreeMap<String, Vec<String>>,
    /// The folders that Fleet and Sveltos build. The key is kind, namespace and name of the object that refers to the
    /// folders, such as a Bundle or a ClusterProfile.
    pub others: BTreeMap<String, Vec<String>>,
    /// The kustomizations and manifests to which nothing refers.
    pub unused: Unused,
    /// Problems that make the overview incomplete.
    pub problems: Vec<String>,
}

/// The Flux Kustomizations of a cluster.
#[derive(Debug, PartialEq, Eq)]
pub struct ClusterOverview {
    /// The folder from which the cluster is set up, by hand or with `flux bootstrap`. `None` if the cluster of the Flux
    /// Kustomizations in `entries` is unknown, because kustomize cannot build the folders that contain them.
    pub folder: Option<String>,
    /// The Kustomizations of the cluster. Each one comes after the Kustomization that renders it. Kustomizations with
    /// the same parent have the order in which Flux applies them.
    pub entries: Vec<Entry>,
}

/// A Flux Kustomization of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Namespace and name, such as `flux-system/apps`.
    pub name: String,
    /// The index in `ClusterOverview::entries` of the Kustomization that renders this Kustomization, if any.
    pub parent: Option<usize>,
    /// The folder or artifact that the Kustomization builds.
    pub builds: Builds,
    /// The names in `dependsOn`, with namespaces.
    pub depends_on: Vec<String>,
    /// The stage in the order of application. A Kustomization without dependencies has stage 1. The stage of any other
    /// Kustomization is one higher than the highest stage of its dependencies. `None` for members of a cycle, and for
    /// Kustomizations that depend on such members.
    pub stage: Option<usize>,
}

/// The folder or artifact that a Kustomization builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Builds {
    /// A folder of the repository.
    Folder(String),
    /// A folder of another repository. Contains the name of the repository.
    Elsewhere(String),
    /// An ExternalArtifact of Flux. It is created by a controller other than source-controller, such as source-watcher.
    /// Contains the name of the artifact.
    Composed(String),
    /// It is unknown which folder or artifact the Kustomization builds. Contains the reason as a text.
    Unknown(String),
}

/// The kustomizations and manifests to which nothing refers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unused {
    /// Folders with a kustomization file that nothing uses. No other kustomization file includes such a folder, and no
    /// object such as a Flux Kustomization builds it.
    pub roots: Vec<String>,
    /// Folders of Components that no kustomization includes.
    pub components: Vec<String>,
    /// Manifests that no kustomization lists.
    pub files: Vec<String>,
}

impl Overview {
    /// Creates the overview from the roots and objects that were found in the repository. `show` formats a path for
    /// display.
    pub fn of(survey: &Survey, unused: Unused, show: &dyn Fn(&TreePath) -> String) -> Self {
        let reasons = Reasons::of(survey);
        let of = |cluster: &Cluster| ClusterOverview {
            folder: cluster.folder.as_ref().map(show),
            entries: entries(&cluster.members, &reasons, show),
        };
        let clusters = survey.clusters.iter().filter(|cluster| !cluster.members.is_empty()).map(of).collect();
        let applications = roots(survey, &[Profile::ArgoCd], show);
        let others = roots(survey, &[Profile::Fleet, Profile::Sveltos], show);
        Self { clusters, applications, others, unused, problems: survey.problems.clone() }
    }

    /// Returns the overview as JSON.
    pub fn to_json(&self) -> Value {
        let Unused { roots, components, files } = &self.unused;
        json!({
            "clusters": self.clusters.iter().map(ClusterOverview::to_json).collect::<Vec<_>>(),
            "applications": self.applications,
            "others": self.others,
            "unused": {"roots": roots, "components": components, "files": files},
            "problems": self.problems,
        })
    }

    /// Returns the names of the Flux Kustomizations that are not built from this repository. The key is the name of the
    /// repository from which they are built.
    pub fn elsewhere(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut repositories: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for entry in self.clusters.iter().flat_map(|cluster| &cluster.entries) {
            if let Builds::Elsewhere(repository) = &entry.builds {
                repositories.entry(repository).or_default().insert(&entry.name);
            }
        }
        repositories
    }
}

impl ClusterOverview {
    fn to_json(&self) -> Value {
        let entry = |entry: &Entry| {
            let (key, value) = match &entry.builds {
                Builds::Folder(folder) => ("root", folder),
                Builds::Elsewhere(repository) => ("elsewhere", repository),
                Builds::Composed(artifact) => ("artifact", artifact),
                Builds::Unknown(why) => ("unknown", why),
            };
            let parent = entry.parent.and_then(|parent| self.entries.get(parent)).map(|parent| &parent.name);
            json!({
                "name": entry.name, key: value, "renderedBy": parent, "dependsOn": entry.depends_on, "stage": entry.stage,
            })
        };
        json!({"folder": self.folder, "kustomizations": self.entries.iter().map(entry).collect::<Vec<_>>()})
    }
}

/// A lookup table with the folder that each Flux Kustomization builds. If a Kustomization builds no folder of the
/// checkout, the table contains the reason: the files are in another repository or artifact, or the path or source is
/// unknown.
struct Reasons<'s> {
    builds: &'s [Build],
    elsewhere: HashMap<String, &'s str>,
    composed: HashMap<String, &'s str>,
    unknown: HashMap<String, &'s str>,
}

impl<'s> Reasons<'s> {
    fn of(survey: &'s Survey) -> Self {
        let by_name =
            |list: &'s [(Object, String)]| list.iter().map(|(object, why)| (object.qualified_name(), &**why)).collect();
        Self {
            builds: &survey.builds,
            elsewhere: by_name(&survey.elsewhere),
            composed: by_name(&survey.composed),
            unknown: by_name(&survey.unknown),
        }
    }

    fn builds(&self, member: &Member, show: &dyn Fn(&TreePath) -> String) -> Builds {
        let name = member.object.qualified_name();
        match member.build.and_then(|build| self.builds.get(build)) {
            Some(build) => Builds::Folder(show(&build.root)),
            None => match (self.elsewhere.get(&name), self.composed.get(&name), self.unknown.get(&name)) {
                (Some(repository), ..) => Builds::Elsewhere((*repository).to_owned()),
                (None, Some(artifact), _) => Builds::Composed((*artifact).to_owned()),
                (None, None, Some(why)) => Builds::Unknown((*why).to_owned()),
                (None, None, None) => Builds::Unknown("it is suspended".to_owned()),
            },
        }
    }
}

/// Returns the folders that tools such as Argo CD build, grouped by the object that refers to them, such as an
/// Application. Only folders of the tools in `profiles` are included. The keys are kind, namespace and name of the
/// objects.
fn roots(survey: &Survey, profiles: &[Profile], show: &dyn Fn(&TreePath) -> String) -> BTreeMap<String, Vec<String>> {
    let mut roots: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for build in survey.builds.iter().filter(|build| profiles.contains(&build.options.profile)) {
        for owner in &build.owners {
            let (shown, listed) = (show(&build.root), roots.entry(owner.title()).or_default());
            if !listed.contains(&shown) {
                listed.push(shown);
            }
        }
    }
    roots
}

/// Returns the names in `dependsOn`, with namespaces. A name without a namespace gets the namespace of the
/// Kustomization.
fn depends_on(object: &Object) -> Vec<String> {
    let list = object.value.pointer("/spec/dependsOn").and_then(Value::as_array);
    let entry = |entry: &Value| match (text(entry.get("namespace")), object.namespace()) {
        ("", "") => text(entry.get("name")).to_owned(),
        ("", namespace) | (namespace, _) => format!("{namespace}/{}", text(entry.get("name"))),
    };
    list.into_iter().flatten().map(entry).collect()
}

/// Returns the overview entries for `members`, the Flux Kustomizations of a cluster. Each Kustomization has one entry,
/// even if it is rendered several times.
///
/// The parent of a Kustomization is the Kustomization that renders it. A parent comes before its children. The children
/// of one parent have the order in which Flux applies them.
fn entries(members: &[Member], reasons: &Reasons<'_>, show: &dyn Fn(&TreePath) -> String) -> Vec<Entry> {
    let names: Vec<_> = members.iter().map(|member| member.object.qualified_name()).collect();
    let dependencies: Vec<_> = members.iter().map(|member| depends_on(&member.object)).collect();
    let stages = stages(&names, &dependencies);
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (at, member) in members.iter().enumerate() {
        if *first.entry(&names[at]).or_insert(at) == at {
            let parent = member.parent.and_then(|parent| first.get(&*names[parent]).copied());
            children.entry(parent).or_default().push(at);
        }
    }
    for siblings in children.values_mut() {
        siblings.sort_by_key(|at| (stages[*at].unwrap_or(usize::MAX), &names[*at]));
    }
    let mut entries: Vec<Entry> = Vec::new();
    let below = |at, parent| children.get(&at).into_iter().flatten().rev().map(move |child| (*child, parent));
    let mut open: Vec<(usize, Option<usize>)> = below(None, None).collect();
    while let Some((at, parent)) = open.pop() {
        let own = entries.len();
        entries.push(Entry {
            name: names[at].clone(),
            parent,
            builds: reasons.builds(&members[at], show),
            depends_on: dependencies[at].clone(),
            stage: stages[at],
        });
        open.extend(below(Some(at), Some(own)));
    }
    entries
}

/// Returns the stage in which Flux applies each Kustomization. The stage is 1 for a Kustomization without dependencies,
/// and otherwise one higher than the highest stage of the dependencies. `None` for members of a dependency cycle, and
/// for Kustomizations that depend on such members.
///
/// `names` contains the names of the Kustomizations, and `dependencies` the names in `dependsOn` of each one. Ignores
/// dependencies on Kustomizations that are not in `names`.
fn stages(names: &[String], dependencies: &[Vec<String>]) -> Vec<Option<usize>> {
    let known: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (&**name, at)).collect();
    let mut stages = vec![None; names.len()];
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        for (at, list) in dependencies.iter().enumerate().filter(|(at, _)| stages[*at].is_none()).collect::<Vec<_>>() {
            let mut inner = list.iter().filter_map(|name| known.get(&**name));
            if let Some(last) = inner.try_fold(0, |last, inner| stages[*inner].map(|stage: usize| last.max(stage))) {
                stages[at] = Some(last + 1);
                has_changed = true;
            }
        }
    }
    stages
}
