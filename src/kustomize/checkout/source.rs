//! Determines which Flux sources refer to a checkout, which is a local copy of a git repository.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::git::Git;
use super::object::{Object, ToolObjects, text};
use super::url::Repository;
use crate::kustomize::delivery::SourceRef;
use crate::kustomize::tree::{Located, Tree, TreePath};

/// The location of the files of a Flux source: a folder of the checkout, or another repository or artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// The files of the source are in a folder of the checkout.
    Checkout {
        /// The folder of the checkout that is the root of the source.
        top: TreePath,
        /// The patterns in `spec.ignore` of the source. The artifact does not contain files that match them.
        ignore: Option<String>,
    },
    /// The files of the source are not in the checkout. The string is the name of their repository, such as
    /// `github.com/org/apps`, or the name of the Flux source if the repository is unknown.
    Elsewhere(String),
}

/// The kind of a Flux source whose artifact is not produced by source-controller, but by another controller, such as
/// source-watcher.
pub(super) const COMPOSED: &str = "ExternalArtifact";
/// The name of the file in which `flux bootstrap` defines the Kustomization of the cluster and its source.
const BOOTSTRAP: &str = "gotk-sync.yaml";
/// Usual names of the default branch. A source that follows such a branch is assumed to follow the branch of the
/// checkout.
const DEFAULT_BRANCHES: [&str; 2] = ["main", "master"];
/// The namespace in which Flux is installed, unless configured otherwise.
const FLUX_NAMESPACE: &str = "flux-system";

/// The Flux sources that files of a checkout define, and the Kustomizations that use them. Portcullis determines from
/// this data whether the files of a source are in the checkout, and in which folder.
pub(super) struct Sources<'a> {
    tree: &'a Tree,
    git: &'a Git,
    /// Folders that may be the root of the repository.
    tops: Vec<TreePath>,
    given: &'a BTreeMap<(String, String), TreePath>,
    definitions: Vec<Definition>,
    users: BTreeMap<(String, String), Vec<User>>,
    /// A cache of the locations of sources, by [`SourceRef::key`].
    places: RefCell<HashMap<String, Place>>,
}

/// A Flux source that a file of the checkout defines.
struct Definition {
    file: TreePath,
    kind: String,
    namespace: String,
    name: String,
    url: String,
    /// The `spec.ref` of the source, such as a branch or a tag.
    reference: Value,
    ignore: Option<String>,
}

/// A Kustomization that uses a source: its file, and `spec.path`.
struct User {
    file: TreePath,
    path: String,
}

/// The field `spec.sync` of a FluxInstance. From this field, the Flux Operator creates a source and a Kustomization.
/// Both have the same name.
pub(super) struct Sync<'a> {
    object: &'a Object,
    sync: &'a Value,
}

impl<'a> Sync<'a> {
    /// Returns the sync settings of a FluxInstance, or of a HelmRelease that installs a FluxInstance. `None` if the
    /// object contains no such settings.
    pub(super) fn of(object: &'a Object) -> Option<Self> {
        let sync = ["/spec/sync", "/spec/values/instance/sync"];
        let sync = sync.into_iter().find_map(|pointer| object.value.pointer(pointer))?;
        Some(Self { object, sync })
    }

    fn namespace(&self) -> String {
        let target = text(self.object.value.pointer("/spec/targetNamespace"));
        let own = if target.is_empty() { self.object.namespace() } else { target };
        if own.is_empty() { FLUX_NAMESPACE.to_owned() } else { own.to_owned() }
    }

    /// Returns the Kustomization that the Flux Operator creates from these settings. If the settings contain no `name`,
    /// the name of the Kustomization is the name of its namespace. If they contain no `kind`, its source is a
    /// GitRepository.
    pub(super) fn kustomization(&self) -> Object {
        let given = text(self.sync.get("name"));
        let namespace = self.namespace();
        let name = if given.is_empty() { namespace.clone() } else { given.to_owned() };
        let kind = match text(self.sync.get("kind")) {
            "" => "GitRepository",
            kind => kind,
        };
        let value = serde_json::json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"path": text(self.sync.get("path")), "sourceRef": {"kind": kind, "name": name}},
        });
        Object { value, ..self.object.clone() }
    }

    fn definition(&self) -> Definition {
        let Object { value, .. } = self.kustomization();
        Definition {
            file: self.object.file.clone(),
            kind: text(value.pointer("/spec/sourceRef/kind")).to_owned(),
            namespace: self.namespace(),
            name: text(value.pointer("/metadata/name")).to_owned(),
            url: text(self.sync.get("url")).to_owned(),
            reference: serde_json::json!({"name": self.sync.get("ref")}),
            ignore: None,
        }
    }
}

impl Definition {
    fn of(source: &Object) -> Self {
        let spec = |key: &str| source.value.get("spec").and_then(|spec| spec.get(key));
        Self {
            file: source.file.clone(),
            kind: source.kind().to_owned(),
            namespace: source.namespace().to_owned(),
            name: source.name().to_owned(),
            url: text(spec("url")).to_owned(),
            reference: spec("ref").cloned().unwrap_or_default(),
            ignore: spec("ignore").and_then(Value::as_str).map(str::to_owned),
        }
    }

    /// Returns the branch that the source follows. The string is empty if the source does not name a branch. `None` if
    /// the source follows a tag, a version, a commit or a digest.
    fn branch(&self) -> Option<&str> {
        let of = |key: &str| text(self.reference.get(key));
        if ["tag", "semver", "commit", "digest"].into_iter().any(|key| !of(key).is_empty()) {
            return None;
        }
        match of("name") {
            "" => Some(of("branch")),
            name => name.strip_prefix("refs/heads/"),
        }
    }
}

impl<'a> Sources<'a> {
    /// Collects the Flux sources that files of the checkout define. `tops` contains the candidates for the root folder
    /// of the repository. `given` contains the folders that the user sets for sources, by namespace and name.
    pub(super) fn new(
        tree: &'a Tree,
        git: &'a Git,
        tops: Vec<TreePath>,
        given: &'a BTreeMap<(String, String), TreePath>,
        tool_objects: &ToolObjects,
    ) -> Self {
        let syncs = tool_objects.instances.iter().filter_map(Sync::of);
        let mut definitions: Vec<_> = tool_objects.sources.iter().map(Definition::of).collect();
        definitions.extend(syncs.map(|sync| sync.definition()));
        let mut users: BTreeMap<_, Vec<User>> = BTreeMap::new();
        let made =
            tool_objects.instances.iter().filter_map(Sync::of).map(|sync| sync.kustomization()).collect::<Vec<_>>();
        for object in tool_objects.kustomizations.iter().chain(&made) {
            let spec = |pointer: &str| text(object.value.pointer(pointer)).to_owned();
            let key = (spec("/spec/sourceRef/kind"), spec("/spec/sourceRef/name"));
            users.entry(key).or_default().push(User { file: object.file.clone(), path: spec("/spec/path") });
        }
        Self { tree, git, tops, given, definitions, users, places: RefCell::default() }
    }

    /// Returns the location of the files of a Flux source: a folder of the checkout, or another repository or artifact.
    pub(super) fn place(&self, source: &SourceRef) -> Place {
        let key = source.key();
        if let Some(known) = self.places.borrow().get(&key) {
            return known.clone();
        }
        let place = self.find(source);
        self.places.borrow_mut().insert(key, place.clone());
        place
    }

    fn find(&self, source: &SourceRef) -> Place {
        let given = (source.namespace.clone(), source.name.clone());
        if let Some(top) = self.given.get(&given) {
            return Place::Checkout { top: top.clone(), ignore: None };
        }
        let is_same = |namespace: &str| [namespace, &source.namespace].contains(&"") || namespace == source.namespace;
        let mut defined = self.definitions.iter().filter(|definition| {
            definition.kind == source.kind && definition.name == source.name && is_same(&definition.namespace)
        });
        let definition = defined.clone().find(|definition| self.is_remote(definition)).or_else(|| defined.next());
        let users = self.users.get(&(source.kind.clone(), source.name.clone())).map_or(&[][..], Vec::as_slice);
        let ignore = definition.and_then(|definition| definition.ignore.clone());
        let found = match definition {
            Some(definition) if self.is_remote(definition) => self.remote(definition, users),
            Some(definition) if is_known(&definition.url) => self.bootstrapped(users, Some(&definition.file)),
            // Another controller composes the artifact, so its paths are not those of the checkout.
            None if source.kind == COMPOSED => None,
            _ => self.bootstrapped(users, None).or_else(|| self.most(users, true)),
        };
        match (found, definition) {
            (Some(top), _) => Place::Checkout { top, ignore },
            (None, Some(definition)) => Place::Elsewhere(self.label(definition)),
            (None, None) => Place::Elsewhere(format!("{} {}/{}", source.kind, source.namespace, source.name)),
        }
    }

    /// Returns whether the URL of a source is a git remote of the checkout.
    fn is_remote(&self, definition: &Definition) -> bool {
        Repository::parse(&definition.url).is_some_and(|url| self.git.remotes.contains(&url))
    }

    /// Returns the folder of the checkout that is the root of a Flux source. The caller has checked that the URL of the
    /// source is a git remote of the checkout. `users` are the Kustomizations that use the source.
    ///
    /// Returns `None` if the source follows a tag, a commit, or a branch other than that of the checkout. The files of
    /// the source may then differ from the checkout. If the branch of the checkout is unknown, also returns `None` if
    /// fewer than half of the paths of `users` exist.
    fn remote(&self, definition: &Definition, users: &[User]) -> Option<TreePath> {
        let branch = definition.branch()?;
        let Git { branches, .. } = self.git;
        let is_own = branch.is_empty() || branches.contains(branch) || DEFAULT_BRANCHES.contains(&branch);
        if is_own {
            return self.most(users, false).or_else(|| self.tops.first().cloned());
        }
        // With a detached HEAD, the branch of the checkout is unknown.
        if branches.is_empty() { self.most(users, true) } else { None }
    }

    /// Returns the top folder of a Flux source: the folder to which `spec.path` of its Kustomizations is relative.
    /// `users` are the Kustomizations that use the source. The result is one of the folders in `tops`, or `None`.
    ///
    /// The function looks for a Kustomization whose own file is in the folder that it builds, because `flux bootstrap`
    /// writes such a file. For example, if `infra/clusters/a/flux-system/gotk-sync.yaml` contains the path
    /// `clusters/a`, the top folder is `infra`.
    ///
    /// If `defined_in` is set, only Kustomizations in this file are considered. A Kustomization that builds the whole
    /// top folder is then considered only if the file has the name `gotk-sync.yaml`. Without this condition, such a
    /// Kustomization would fit every folder in `tops` that contains its file.
    fn bootstrapped(&self, users: &[User], defined_in: Option<&TreePath>) -> Option<TreePath> {
        let is_below = |top: &TreePath, user: &User| {
            let folder = TreePath::from(&*format!("{top}/{}", user.path));
            let proves =
                defined_in.is_none_or(|file| user.file == *file && (folder != *top || file.name() == BOOTSTRAP));
            is_known(&user.path) && proves && user.file.is_within(&folder)
        };
        self.tops.iter().find(|top| users.iter().any(|user| is_below(top, user))).cloned()
    }

    /// Returns the folder in `tops` that is probably the root of the repository. `users` are the Kustomizations that
    /// use the source. The result is the folder below which most of their paths (`spec.path`) exist.
    ///
    /// If `is_needed` is set, returns `None` if less than half of the paths exist below this folder, or if there are no
    /// paths.
    fn most(&self, users: &[User], is_needed: bool) -> Option<TreePath> {
        let paths: BTreeSet<&str> = users.iter().map(|user| &*user.path).filter(|path| is_known(path)).collect();
        let count = |top: &&TreePath| {
            let path = |path: &str| TreePath::from(&*format!("{top}/{path}"));
            let exists = |text: &&&str| {
                let located = self.tree.locate(&TreePath::root(), path(text).as_str());
                matches!(located, Ok(Located::Folder(_)))
            };
            paths.iter().filter(exists).count()
        };
        // If several folders have the same count, the first one is used.
        let best = self.tops.iter().rev().max_by_key(count)?;
        let enough = count(&best) * 2 >= paths.len() && !paths.is_empty();
        (enough || !is_needed).then(|| best.clone())
    }

    /// Returns the name by which messages refer to a Flux source whose files are not in the checkout, such as
    /// `github.com/org/apps (branch dev)`. If the repository is unknown, this is kind, namespace and name of the
    /// source.
    fn label(&self, definition: &Definition) -> String {
        let Definition { kind, namespace, name, url, .. } = definition;
        let repository = Repository::parse(url).map(|Repository { host, path }| format!("{host}/{path}"));
        let label = repository.unwrap_or_else(|| format!("{kind} {namespace}/{name}"));
        match definition.branch() {
            _ if !self.is_remote(definition) => label,
            Some(branch) => format!("{label} (branch {branch})"),
            None => format!("{label} (another revision)"),
        }
    }
}

/// Returns whether a text contains no variables (`${…}`).
fn is_known(text: &str) -> bool {
    !text.contains("${")
}
