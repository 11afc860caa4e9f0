//! The results of one pass over the Flux Kustomizations of a checkout. They contain the Kustomizations that were found,
//! the folders that they build, and the variables of each cluster.

use std::collections::{HashMap, HashSet};

use super::object::{Data, KUSTOMIZE, Object, Variables, group};
use super::reach::Reach;
use super::render::substituted;
use super::{Build, Cluster, Survey};
use crate::kustomize::options::{Options, PostBuild};
use crate::kustomize::tree::TreePath;

/// An identifier of the files that a Flux source provides. The first element is the folder of the checkout that
/// contains the files. The second element contains the patterns in `spec.ignore`, which exclude some of the files.
pub(super) type TreeKey = (TreePath, Option<String>);

/// The results of one pass of the search for Flux Kustomizations in a checkout. They include the folders that Flux
/// builds, and the Flux variables of each cluster. The search is repeated as long as it finds new variables.
#[derive(Default)]
pub(super) struct Pass {
    pub(super) survey: Survey,
    builds: HashMap<(TreePath, Options, TreeKey), usize>,
    pub(super) variables: Vec<Variables>,
    pub(super) seen: HashSet<(usize, String)>,
    pub(super) count: usize,
}

impl Pass {
    /// Adds a Kubernetes cluster to the list of clusters in the result, and returns its index in this list. `folder` is
    /// the folder from which the cluster is set up, for example by `flux bootstrap`, or `None` if this folder is
    /// unknown.
    pub(super) fn add_cluster(&mut self, folder: Option<TreePath>) -> usize {
        self.variables.push(Variables::default());
        self.survey.clusters.push(Cluster { folder, members: Vec::new() });
        self.survey.clusters.len() - 1
    }

    pub(super) fn reached(&mut self, reach: Reach) {
        self.survey.reached.extend(reach.folders);
        self.survey.reached_files.extend(reach.files);
    }

    /// Adds a build to the results, and returns its index. `key` identifies the files of the Flux source. If the same
    /// root was already added with the same options and the same `key`, adds only the owners of the build to the
    /// existing build.
    pub(super) fn add(&mut self, build: Build, key: TreeKey) -> usize {
        let key = (build.root.clone(), build.options.clone(), key);
        let at = *self.builds.entry(key).or_insert(self.survey.builds.len());
        match self.survey.builds.get_mut(at) {
            Some(known) => {
                // The findings of a build are reported about its first owner, so owners that are applied to a cluster
                // come first.
                let at = if known.is_used { known.owners.len() } else { 0 };
                known.owners.splice(at..at, build.owners);
                known.is_used |= build.is_used;
            }
            None => self.survey.builds.push(build),
        }
        at
    }

    pub(super) fn problem(&mut self, problem: String) {
        if !self.survey.problems.contains(&problem) {
            self.survey.problems.push(problem);
        }
    }
}

/// Substitutes the Flux variables of `post_build` in `objects`, the output of a build. Returns the Flux Kustomizations
/// among the resulting objects. Adds the data of the ConfigMaps and Secrets among them to `pass.variables[cluster]`,
/// because Flux can use this data as variables.
pub(super) fn take(objects: &[Object], post_build: Option<&PostBuild>, cluster: usize, pass: &mut Pass) -> Vec<Object> {
    let mut inner = Vec::new();
    for object in objects {
        let object = substituted(object, post_build);
        if group(&object.value) == KUSTOMIZE {
            inner.push(object);
        } else {
            pass.variables[cluster].add(&object.value);
        }
    }
    inner
}

/// Returns `post_build` with the values of the variables that are known from files. `namespace` is the namespace of the
/// Flux Kustomization, and `known` contains the variables of its cluster.
///
/// If no file defines a ConfigMap or Secret in `substituteFrom`, the variables of this object are unknown. The
/// variables of earlier objects in the list are then also unknown, because this object may override them.
pub(super) fn resolved(post_build: PostBuild, namespace: &str, known: &Variables) -> PostBuild {
    let (mut found, mut from) = (Data::new(), Vec::new());
    for reference in &post_build.from {
        let (kind, name) = reference.split_once('/').unwrap_or((reference, ""));
        match known.get(kind, namespace, name) {
            Some(data) => found.extend(data.clone()),
            None => {
                found.clear();
                from.push(reference.clone());
            }
        }
    }
    found.extend(post_build.substitute.into_iter().map(|(name, value)| (name, Some(value))));
    let (known, unknown): (Data, Data) = found.into_iter().partition(|(_, value)| value.is_some());
    let substitute = known.into_iter().filter_map(|(name, value)| Some((name, value?.replace('\n', ""))));
    PostBuild { substitute: substitute.collect(), unknown: unknown.into_keys().collect(), from, ..post_build }
}
