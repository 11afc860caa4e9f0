//! Finds the folders that Flux builds in a checkout, which is a local copy of a git repository. Builds these folders,
//! and searches the output for more Flux Kustomizations, which refer to more folders. Repeats this until there is no
//! new Flux Kustomization.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use super::object::{KUSTOMIZE, Object, SOURCE, ToolObjects, Variables, text};
use super::pass::{Pass, TreeKey, resolved, take};
use super::reach::{Reach, Reaches};
use super::render::render;
use super::source::{COMPOSED, Place, Sources, Sync};
use super::{Build, Checkout, Cluster, Member, Survey, ignore};
use crate::kustomize::delivery::Kustomization;
use crate::kustomize::engine::Resource;
use crate::kustomize::options::{FluxSpec, Options, PostBuild, Profile};
use crate::kustomize::roots;
use crate::kustomize::tree::{Entry, Tree, TreePath};

/// Maximum number of Flux Kustomizations that are checked in a checkout of a git repository. Further Kustomizations are
/// skipped, and this is reported. The largest public repositories have about 2,000 Kustomizations.
const MAX_KUSTOMIZATIONS: usize = 20_000;
/// Maximum length of a chain of Kustomizations. In a chain, each Kustomization renders the next one. Real chains have
/// up to five members.
const MAX_DEPTH: usize = 32;
/// Maximum number of passes over the Flux Kustomizations of a checkout. Each pass uses the variables that the previous
/// pass found in the output of builds. The limit ends the search if the variables never stop changing.
const MAX_PASSES: usize = 8;

/// Finds which folders of a checkout Flux builds, and which Flux Kustomizations refer to these folders. `tool_objects`
/// contains the Flux objects in the files of the checkout.
pub(super) fn survey(checkout: &Checkout<'_>, tool_objects: &ToolObjects) -> Survey {
    if tool_objects.kustomizations.is_empty() && tool_objects.instances.is_empty() {
        return Survey::default();
    }
    let sources = sources(checkout, tool_objects);
    let mut surveyor = Surveyor {
        checkout,
        ignores: ignores(checkout),
        is_lenient: tool_objects.is_lenient,
        sources: &sources,
        reaches: Reaches::new(checkout.tree, checkout.files),
        words: words(tool_objects),
        trees: HashMap::new(),
        rendered: HashMap::new(),
        mentions: HashMap::new(),
    };
    let seeds = surveyor.seeds(tool_objects);
    surveyor.follow(&seeds, tool_objects)
}

/// Returns the Flux sources that the files of a checkout define.
pub(super) fn sources<'a>(checkout: &Checkout<'a>, tool_objects: &ToolObjects) -> Sources<'a> {
    let mut tops = vec![checkout.git.top.clone()];
    tops.extend(checkout.tops.iter().filter(|top| **top != checkout.git.top).cloned());
    Sources::new(checkout.tree, checkout.git, tops, checkout.sources, tool_objects)
}

/// Returns the `.sourceignore` files of the checkout, outer folders first.
fn ignores(checkout: &Checkout<'_>) -> Vec<TreePath> {
    let (tree, mut open, mut found) = (checkout.tree, vec![checkout.git.top.clone()], Vec::new());
    while let Some(folder) = open.pop() {
        for name in tree.names(&folder) {
            let path = folder.join(&name);
            match tree.entry(&path) {
                Some(Entry::File) if name == ignore::FILE => found.push(path),
                Some(Entry::Folder) if name != ".git" => open.push(path),
                _ => {}
            }
        }
    }
    found.sort_by_cached_key(|file| (file.as_str().matches('/').count(), file.clone()));
    found
}

/// Returns the API group of Flux Kustomizations, and the names of ConfigMaps and Secrets with Flux variables. The
/// search for Flux Kustomizations builds a folder only if a file of the folder contains one of these strings.
fn words(tool_objects: &ToolObjects) -> Vec<String> {
    let mut words = tool_objects.variables.clone();
    words.push(KUSTOMIZE.to_owned());
    words
}

/// The objects that kustomize renders from one folder, before Flux substitutes variables. `None` if the folder cannot
/// be built.
type Rendered = Option<Rc<Vec<Object>>>;

struct Surveyor<'a> {
    checkout: &'a Checkout<'a>,
    /// Whether Flux replaces unset variables with the empty string. This is the case if a file of the checkout installs
    /// a version of kustomize-controller before 1.9.
    is_lenient: bool,
    /// The `.sourceignore` files, outer folders first.
    ignores: Vec<TreePath>,
    sources: &'a Sources<'a>,
    reaches: Reaches<'a>,
    words: Vec<String>,
    trees: HashMap<TreeKey, Arc<Tree>>,
    rendered: HashMap<(TreeKey, TreePath, FluxSpec), Rendered>,
    /// Whether a file contains the API group of Flux Kustomizations, or the name of a ConfigMap or Secret with Flux
    /// variables. The key is the path of the file. The results are cached, so that each file is searched only once.
    mentions: HashMap<TreePath, bool>,
}

/// A Kustomization or folder at which the search for Flux Kustomizations in a checkout begins.
enum Seed {
    /// A root: a Flux Kustomization that no other Flux Kustomization applies. If Kustomizations apply each other in a
    /// cycle, one of them is the root. The `bool` says whether Flux was probably bootstrapped from this Kustomization.
    /// It is true if the Kustomization applies itself, is in a cycle, or is created for a FluxInstance.
    Object(Object, bool),
    /// A folder that contains Kustomizations, but that no Kustomization builds. Users probably apply such a folder by
    /// hand.
    Folder(TreePath),
}

impl Seed {
    /// Returns whether Flux was probably bootstrapped from this seed. Returns `false` if the seed is a folder.
    fn is_bootstrap(&self) -> bool {
        matches!(self, Self::Object(_, true))
    }
}

impl Surveyor<'_> {
    /// Returns where the search for Flux Kustomizations starts: at Kustomizations and folders that no other Flux
    /// Kustomization applies. For Kustomizations that apply each other in a cycle, it starts at one of them.
    fn seeds(&mut self, tool_objects: &ToolObjects) -> Vec<Seed> {
        let of_instances = tool_objects.instances.iter().filter_map(Sync::of).map(|sync| sync.kustomization());
        let mut all: Vec<Object> = of_instances.collect();
        let made = all.len();
        all.extend(tool_objects.kustomizations.iter().cloned());
        let reaches: Vec<Reach> = all.iter().map(|object| self.reach(object)).collect();
        let own: Vec<_> = all.iter().map(|object| self.may_be_own(object)).collect();
        let folders = self.folders(&all, &reaches, &own);
        // The Kustomizations that FluxInstances create are in no rendered folder.
        let in_folder = |at: usize| at >= made && folders.iter().any(|(_, reach)| reach.files.contains(&all[at].file));
        let is_inner = |at: usize| {
            let others = reaches.iter().enumerate().filter(|(other, _)| *other != at);
            others.map(|(_, reach)| reach).any(|reach| reach.files.contains(&all[at].file)) || in_folder(at)
        };
        let (inner, outer): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(|at| is_inner(*at));
        let mut reached: HashSet<usize> = HashSet::new();
        let follow = |from: usize, reached: &mut HashSet<usize>| {
            let mut open = vec![from];
            while let Some(at) = open.pop() {
                if reached.insert(at) {
                    open.extend((0..all.len()).filter(|next| reaches[at].files.contains(&all[*next].file)));
                }
            }
        };
        outer.iter().for_each(|at| follow(*at, &mut reached));
        let is_own = |at: usize| reaches[at].files.contains(&all[at].file);
        let mut seeds: Vec<(usize, bool)> = outer.into_iter().map(|at| (at, at < made || is_own(at))).collect();
        for at in inner {
            // Adds one Kustomization of each cycle that no Kustomization outside of the cycle renders.
            if !reached.contains(&at) && !in_folder(at) {
                follow(at, &mut reached);
                seeds.push((at, true));
            }
        }
        let of_folders = folders.into_iter().map(|(folder, _)| Seed::Folder(folder));
        seeds.into_iter().map(|(at, proves)| Seed::Object(all[at].clone(), proves)).chain(of_folders).collect()
    }

    /// Returns whether the checkout is or may be the source of the Flux Kustomization in `object`. It may be the source
    /// if the source is unknown, for example because `spec.sourceRef` contains variables, or because a patch in another
    /// file sets this field.
    fn may_be_own(&mut self, object: &Object) -> bool {
        let read = Kustomization::of(&object.value, object.namespace());
        read.is_none_or(|read| read.source.name.is_empty()) || self.root(object).is_some()
    }

    /// Returns the folders with kustomization files that users probably apply by hand. Such a folder contains Flux
    /// Kustomizations, but no Flux Kustomization builds it. Each folder is returned with the files that its build
    /// reads.
    ///
    /// `reaches` contains the files and folders that the build of each Kustomization in `all` reads. `own` says for
    /// each Kustomization in `all` whether the checkout may be its source. Kustomizations with other sources are
    /// ignored.
    fn folders(&mut self, all: &[Object], reaches: &[Reach], own: &[bool]) -> Vec<(TreePath, Reach)> {
        let reached: HashSet<&TreePath> = reaches.iter().flat_map(|reach| &reach.folders).collect();
        let files: HashSet<&TreePath> =
            all.iter().zip(own).filter(|(_, own)| **own).map(|(object, _)| &object.file).collect();
        let mut found = Vec::new();
        for root in self.roots() {
            let reach = self.reaches.of(&root, &[]);
            if !reached.contains(&root) && reach.files.iter().any(|file| files.contains(file)) {
                found.push((root, reach));
            }
        }
        found
    }

    /// Returns the folders of the checkout to which no other folder refers.
    fn roots(&self) -> Vec<TreePath> {
        let Checkout { tree, files, folders, .. } = self.checkout;
        let options = Options::of(Profile::Flux);
        roots::roots(folders, |folder| roots::references(tree, folder, &options, files).folders)
    }

    /// Returns the folder that a Kustomization builds, and a key that identifies the files of the Kustomization's
    /// source. The key contains the top folder of the source in the checkout, and the ignore patterns of the source.
    /// `None` if the source is unknown, or is not this checkout.
    fn root(&mut self, object: &Object) -> Option<(TreeKey, TreePath)> {
        let read = Kustomization::of(&object.value, object.namespace())?;
        match self.sources.place(&read.source) {
            Place::Checkout { top, ignore } => {
                let root = TreePath::from(&*format!("{top}/{}", TreePath::from(&*read.path).as_str()));
                Some(((top, ignore), root))
            }
            Place::Elsewhere(_) => None,
        }
    }

    /// Returns the folders and files that kustomize reads to build a Kustomization (`spec.path` and `spec.components`).
    /// The result is empty if the source of the Kustomization is not this checkout.
    fn reach(&mut self, object: &Object) -> Reach {
        let Some((_, root)) = self.root(object) else { return Reach::default() };
        let components = object.value.pointer("/spec/components").and_then(serde_json::Value::as_array);
        let components: Vec<_> = components.into_iter().flatten().map(|entry| text(Some(entry)).to_owned()).collect();
        self.reaches.of(&root, &components)
    }

    /// Finds the folders that Flux builds, beginning with the Kustomizations and folders in `seeds`. Flux variables can
    /// come from ConfigMaps that are found only during the search. So the search is repeated until it finds no new
    /// values of variables.
    fn follow(&mut self, seeds: &[Seed], tool_objects: &ToolObjects) -> Survey {
        let mut variables: Vec<Variables> = Vec::new();
        let clusters = clusters(seeds);
        for passes in 1.. {
            let mut pass = self.pass(seeds, &clusters, &variables);
            if pass.variables == variables || passes == MAX_PASSES {
                self.add_unrendered(tool_objects, &mut pass);
                return pass.survey;
            }
            variables = pass.variables;
        }
        Survey::default()
    }

    fn pass(&mut self, seeds: &[Seed], clusters: &[(TreePath, usize)], variables: &[Variables]) -> Pass {
        let mut pass = Pass::default();
        let is_bootstrapped = seeds.iter().any(Seed::is_bootstrap);
        for (seed, (folder, cluster)) in seeds.iter().zip(clusters) {
            if *cluster == pass.survey.clusters.len() {
                pass.add_cluster(Some(folder.clone()));
            }
            let known = variables.get(*cluster).cloned().unwrap_or_default();
            let is_applied = seed.is_bootstrap() || !is_bootstrapped;
            let first = match seed {
                Seed::Object(object, _) => vec![object.clone()],
                Seed::Folder(folder) => self.folder(folder, *cluster, is_applied, &mut pass),
            };
            self.chain(first, is_applied, *cluster, &known, &mut pass);
        }
        pass
    }

    /// Adds the Flux Kustomizations in `first` to `pass`, the results of the search. Then builds their folders, and
    /// adds the Kustomizations in the output in the same way.
    ///
    /// `cluster` is the index of the cluster to which all of them belong. `known` contains the Flux variables of this
    /// cluster. `is_applied` is true if, as far as the files show, Flux or a user applies the Kustomizations in `first`
    /// to the cluster.
    fn chain(&mut self, first: Vec<Object>, is_applied: bool, cluster: usize, known: &Variables, pass: &mut Pass) {
        let mut open: Vec<_> = first.into_iter().map(|object| (object, None, 0)).collect();
        while let Some((object, parent, depth)) = open.pop() {
            let own = pass.survey.clusters[cluster].members.len();
            let member = Member { object: object.clone(), parent, is_applied, build: None };
            let inner = self.kustomization(member, cluster, known, pass);
            if depth == MAX_DEPTH && !inner.is_empty() {
                pass.problem(format!(
                    "Kustomization {} is nested more than {MAX_DEPTH} levels deep",
                    object.qualified_name()
                ));
            } else {
                open.extend(inner.into_iter().map(|object| (object, Some(own), depth + 1)));
            }
        }
    }

    /// Builds `folder` with kustomize, and returns the Flux Kustomizations in the output.
    ///
    /// If the `spec.path` of some of these Kustomizations is `folder` itself, returns only these. The caller builds the
    /// folder again for them, and this build finds the other Kustomizations. If there are no such Kustomizations, adds
    /// the build of `folder` to `pass`, the results of the search.
    ///
    /// `cluster` is the index of the cluster in the results. `is_used` says whether the folder is probably applied to
    /// this cluster.
    fn folder(&mut self, folder: &TreePath, cluster: usize, is_used: bool, pass: &mut Pass) -> Vec<Object> {
        let key = (self.checkout.git.top.clone(), None);
        let options = Options::of(Profile::Flux);
        let objects = self.rendered(&key, folder, &options, pass);
        let mut inner = take(&objects, None, cluster, pass);
        let own: Vec<_> =
            inner.iter().map(|object| self.root(object).is_some_and(|(_, root)| root == *folder)).collect();
        if own.contains(&true) {
            let mut own = own.into_iter();
            inner.retain(|_| own.next() == Some(true));
        } else {
            let tree = self.tree(&key);
            pass.add(Build { tree, root: folder.clone(), options, owners: Vec::new(), is_used }, key);
        }
        inner
    }

    /// Adds a Flux Kustomization to the results in `pass`, builds its folder, and returns the Flux Kustomizations in
    /// the output. Returns none if the folder cannot be built, for example because it is not in the checkout, or if the
    /// Kustomization was already added.
    fn kustomization(&mut self, member: Member, cluster: usize, known: &Variables, pass: &mut Pass) -> Vec<Object> {
        let (object, is_used) = (&member.object.clone(), member.is_applied);
        pass.count += 1;
        if pass.count > MAX_KUSTOMIZATIONS {
            pass.problem(format!("only the first {MAX_KUSTOMIZATIONS} Kustomizations are checked"));
            return Vec::new();
        }
        if !pass.seen.insert((cluster, format!("{} {}", object.qualified_name(), object.value))) {
            return Vec::new();
        }
        let members = &mut pass.survey.clusters[cluster].members;
        let own = members.len();
        members.push(member);
        let Some(read) = Kustomization::of(&object.value, object.namespace()) else {
            self.not_read(object, pass);
            return Vec::new();
        };
        let Some((key, root)) = self.root(object) else {
            if let Place::Elsewhere(label) = self.sources.place(&read.source) {
                let is_composed = read.source.kind == COMPOSED;
                let list = if is_composed { &mut pass.survey.composed } else { &mut pass.survey.elsewhere };
                list.push((object.clone(), label));
            }
            return Vec::new();
        };
        let Kustomization { source, spec: mut flux, .. } = read;
        pass.survey.sources.insert((source.namespace, source.name), key.0.clone());
        let is_lenient = self.is_lenient;
        let resolved = |post_build| PostBuild { is_lenient, ..resolved(post_build, object.namespace(), known) };
        flux.post_build = flux.post_build.map(resolved);
        let options = Options { flux, ..Options::of(Profile::Flux) };
        let objects = self.rendered(&key, &root, &options, pass);
        let tree = self.tree(&key);
        let post_build = options.flux.post_build.clone();
        let build = pass.add(Build { tree, root, options, owners: vec![object.clone()], is_used }, key);
        pass.survey.clusters[cluster].members[own].build = Some(build);
        take(&objects, post_build.as_ref(), cluster, pass)
    }

    /// Adds the Flux Kustomization `object` to the search results `pass` without building its folder:
    ///
    /// - If the Kustomization is suspended, adds the files that its build would read, so that they are not reported as
    ///   unused.
    /// - Otherwise, adds an entry which says that the path or the source of the Kustomization is unknown.
    fn not_read(&mut self, object: &Object, pass: &mut Pass) {
        let mut resumed = object.clone();
        let suspend = resumed.value.pointer_mut("/spec/suspend").filter(|suspend| **suspend == true);
        match suspend {
            Some(suspend) => {
                *suspend = false.into();
                pass.reached(self.reach(&resumed));
            }
            None => {
                let why = "its path or source has variables whose values are unknown";
                pass.survey.unknown.push((object.clone(), why.to_owned()));
            }
        }
    }

    /// Builds the folder `root` with kustomize, and returns the Flux objects, ConfigMaps and Secrets in the output.
    /// `key` identifies the tree with the files of the Flux source that contains `root`. Returns an empty list if the
    /// build fails.
    ///
    /// Does not build the folder, and returns an empty list, if none of its files contains a string of the field
    /// `words`. The objects in such a folder do not affect which folders Flux builds.
    fn rendered(&mut self, key: &TreeKey, root: &TreePath, options: &Options, pass: &mut Pass) -> Rc<Vec<Object>> {
        let reach = self.reaches.of(root, &options.flux.components);
        let matters = reach.files.iter().any(|file| self.mentions(file));
        pass.reached(reach);
        if !matters {
            return Rc::default();
        }
        let mut options = options.clone();
        options.flux.post_build = None;
        let known = (key.clone(), root.clone(), options.flux.clone());
        if let Some(rendered) = self.rendered.get(&known) {
            return rendered.clone().unwrap_or_default();
        }
        let tree = self.tree(key);
        let rendered = render(&tree, root, &options, self.checkout.files, wanted).ok().map(Rc::new);
        self.rendered.insert(known, rendered.clone());
        rendered.unwrap_or_default()
    }

    /// Returns whether a file contains one of the strings in the field `words`. Files without these strings define no
    /// objects that affect which folders Flux builds.
    fn mentions(&mut self, file: &TreePath) -> bool {
        if let Some(known) = self.mentions.get(file) {
            return *known;
        }
        let bytes = self.checkout.tree.read(file).unwrap_or_else(|_| [].into());
        let has = |word: &String| memchr::memmem::find(&bytes, word.as_bytes()).is_some();
        let found = self.words.iter().any(has);
        self.mentions.insert(file.clone(), found);
        found
    }

    fn tree(&mut self, key: &TreeKey) -> Arc<Tree> {
        let (tree, ignores) = (self.checkout.tree, &self.ignores);
        let make = || Arc::new(ignore::artifact(tree, &key.0, ignores, key.1.as_deref()));
        Arc::clone(self.trees.entry(key.clone()).or_insert_with(make))
    }

    /// Adds the Flux Kustomizations that are in files, but not in the output of any build, to the results in `pass`.
    /// Usually, kustomize cannot build the folders that contain them. The cluster of these Kustomizations is unknown,
    /// so they get a separate entry in the list of clusters.
    fn add_unrendered(&mut self, tool_objects: &ToolObjects, pass: &mut Pass) {
        let known: HashSet<TreePath> =
            pass.survey.clusters.iter().flat_map(Cluster::objects).map(|object| object.file.clone()).collect();
        let rest: Vec<_> = tool_objects.kustomizations.iter().filter(|object| !known.contains(&object.file)).collect();
        pass.survey.rendered = known;
        if rest.is_empty() {
            return;
        }
        let cluster = pass.add_cluster(None);
        for object in rest {
            // It is unknown whether Flux applies the Kustomizations that these Kustomizations render, but they are
            // added too.
            self.chain(vec![object.clone()], true, cluster, &Variables::default(), pass);
        }
    }
}

/// Returns the folder and the cluster number of each seed. A seed is a starting point of the search for Flux
/// Kustomizations in a repository: a folder, or a Flux Kustomization. The folder of a Kustomization is the folder that
/// contains its file.
///
/// Portcullis assumes one Kubernetes cluster for each folder. So seeds with the same folder have the same cluster
/// number. The numbers start at 0.
fn clusters(seeds: &[Seed]) -> Vec<(TreePath, usize)> {
    let mut known: BTreeMap<TreePath, usize> = BTreeMap::new();
    let of = |seed: &Seed| {
        let folder = match seed {
            Seed::Object(object, _) => object.file.parent().unwrap_or_default(),
            Seed::Folder(folder) => folder.clone(),
        };
        let next = known.len();
        let cluster = *known.entry(folder.clone()).or_insert(next);
        (folder, cluster)
    };
    seeds.iter().map(of).collect()
}

/// Returns whether a rendered object matters to the search for Flux Kustomizations. Such an object is a Kustomization,
/// a Flux source, a ConfigMap or a Secret.
fn wanted(resource: &Resource) -> bool {
    let version = resource.node.get("apiVersion").and_then(|version| version.text().map(str::to_owned));
    let version = version.unwrap_or_default();
    let is_flux = [KUSTOMIZE, SOURCE].iter().any(|group| version.starts_with(group));
    is_flux || version == "v1" && ["ConfigMap", "Secret"].contains(&resource.kind())
}
