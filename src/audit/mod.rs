//! Audits stored objects: runs the admission rules on objects that are already in a cluster, or on objects in files.
//!
//! An audit of a cluster has these steps:
//!
//! 1. It selects the resources that the rules match.
//! 2. It lists the objects of each resource, page by page.
//! 3. It runs the rules on each object. To do so, it creates an admission request that updates the object without
//!    changes.
//! 4. It returns all findings. They are printed as text or JSON, or exported as metrics. They can also be compared with
//!    the PolicyReports in the cluster, which are then updated.
//!
//! So a finding of level `deny` means that the next update of the object will be denied. Rules about changes report
//! nothing for an update without changes. Rules that tolerate existing errors report them at a lower level. For rules
//! that apply only to creations, the audit uses an admission request that creates the object.
//!
//! The objects that rules look up are loaded into a cache, the catalog. The checked objects are not kept in memory.

mod finding;
mod judge;
pub mod metrics;
mod objects;
pub mod reports;
mod target;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher as _, BuildHasherDefault};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use futures::{TryStreamExt as _, stream};
use kube::Client;
use serde_json::Value;
use tokio::runtime::Runtime;

pub use finding::{Audited, Entry, Outcome, Subject, UNREADABLE, Unread};
pub use metrics::Metrics;
pub use reports::{ReportError, Reports};
pub use target::Chosen;

use crate::admission::{Metadata, json};
use crate::catalog::cluster;
use crate::catalog::cluster::pages::{Item, Pages};
use crate::catalog::manifests::{self, DEFAULT_NAMESPACE, ManifestError};
use crate::catalog::{Kind, Scope};
use crate::gate::{Gate, Registry};
use target::{Served, Target};

/// Maximum number of objects that are checked concurrently. Some of them wait until their kustomize tree is fetched.
const AT_ONCE: usize = 8;

/// An audit of stored objects. It runs the chosen rules on the objects of a cluster or of files.
pub struct Audit {
    /// The gate that checks the objects. The audit fills and clears the catalog of this gate, so nothing else may use
    /// the catalog.
    pub gate: Arc<Gate>,
    /// Namespaces whose objects are checked; empty for all objects.
    pub namespaces: Vec<String>,
    /// The rules that the audit runs.
    pub chosen: Chosen,
}

/// The progress of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of objects that have been checked so far.
    pub done: usize,
    /// Number of objects that the audit has found so far, checked or not.
    pub all: usize,
}

impl Audit {
    /// Audits a cluster. Calls `progress` after each checked object.
    ///
    /// # Errors
    /// If the API server cannot be reached. It is not an error if the objects of some kinds cannot be listed. These
    /// kinds are returned in `Audited::unread`.
    pub async fn cluster(
        &self,
        client: &Client,
        mut progress: impl FnMut(Progress) + Send,
    ) -> Result<Audited, kube::Error> {
        client.apiserver_version().await?;
        let failed = cluster::load_what_can_be(client, self.gate.catalog()).await;
        let mut audited = Audited::default();
        audited.unread.extend(failed.iter().map(|(kind, error)| Unread::kind(kind, error)));
        for target in target::all(&self.gate, &self.chosen) {
            let before = audited.objects;
            let mut reported =
                |done: usize, left: usize| progress(Progress { done: before + done, all: before + done + left });
            match self.target(client, target.clone(), &mut reported).await {
                Ok(judged) => audited.add(judged),
                Err(error) if audited.unread.iter().any(|known| known.resource == target.full_name()) => drop(error),
                Err(error) => audited.unread.push(Unread::target(&target, &error)),
            }
        }
        self.gate.catalog().clear();
        Ok(audited.sorted())
    }

    /// Audits the objects in files instead of a cluster. Fetches kustomize trees on `runtime`. Keeps only one object in
    /// memory at a time, besides the objects in the catalog.
    ///
    /// # Errors
    ///
    /// If files or objects cannot be read. Returns one error for each of them.
    pub fn files(
        &self,
        paths: &[PathBuf],
        runtime: &Runtime,
        mut progress: impl FnMut(Progress),
    ) -> Result<Audited, Vec<ManifestError>> {
        let all = manifests::fill(self.gate.catalog(), paths, DEFAULT_NAMESPACE)?;
        let targets = target::all(&self.gate, &self.chosen);
        // Skips objects that are read twice: a file that turns out not to be JSON is read again as YAML.
        let (mut audited, mut seen) = (Audited::default(), HashSet::new());
        let errors = manifests::each(paths, |object| {
            let target = targets.iter().find(|target| target.is_of(object.group(), object.kind));
            let Some(target) = target else { return Ok(()) };
            let mut value = json::parse(object.text).map_err(|error| error.to_string())?;
            manifests::set_stored_namespace(&mut value, self.gate.catalog(), DEFAULT_NAMESPACE);
            if self.is_wanted(&value) && seen.insert(identity(&value)) {
                audited.add(runtime.block_on(judge::judge(&self.gate, &self.chosen, target, value)));
                progress(Progress { done: audited.objects, all });
            }
            Ok(())
        });
        if errors.is_empty() { Ok(audited.sorted()) } else { Err(errors) }
    }

    fn is_wanted(&self, object: &Value) -> bool {
        self.covers(Metadata::of(object).namespace())
    }

    /// Returns whether the audit checks objects in a namespace.
    pub fn covers(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|wanted| wanted == namespace)
    }

    /// Checks all objects of a resource. The result is empty if the cluster does not serve the resource. After each
    /// object, calls `reported` with the number of objects checked so far, and the number of objects that are not
    /// listed yet ([`Pages::left`]).
    async fn target(
        &self,
        client: &Client,
        target: Target,
        reported: &mut (dyn FnMut(usize, usize) + Send),
    ) -> Result<Audited, kube::Error> {
        let mut audited = Audited::default();
        let Some(served) = Served::find(client, target).await? else { return Ok(audited) };
        let namespaces: Vec<Option<&str>> = match (self.namespaces.as_slice(), served.scope) {
            ([], _) => vec![None],
            (_, Scope::Cluster) => Vec::new(),
            (namespaces, Scope::Namespaced) => namespaces.iter().map(|name| Some(name.as_str())).collect(),
        };
        for namespace in namespaces {
            let listed = self.pages(&served, Pages::of(served.api(client, namespace)), |done, left| {
                reported(audited.objects + done, left);
            });
            let listed = listed.await?;
            audited.add(listed);
        }
        Ok(audited)
    }

    /// Lists the objects of a resource page by page, and checks each object when it arrives. At most [`AT_ONCE`]
    /// objects are in memory at the same time. After each object, calls `reported` with the number of objects checked
    /// so far, and the number of objects that are not listed yet ([`Pages::left`]).
    async fn pages(
        &self,
        served: &Served,
        pages: Pages,
        mut reported: impl FnMut(usize, usize) + Send,
    ) -> Result<Audited, kube::Error> {
        let arriving = stream::try_unfold(pages, |mut pages| async {
            let item = pages.next().await?.map(|item| match item {
                Item::Beginning => None,
                Item::Object(text) => Some(text.to_owned()),
            });
            Ok::<_, kube::Error>(item.map(|item| ((item, pages.left()), pages)))
        });
        let judging = arriving.map_ok(|(text, left)| async move {
            let judged = match text {
                Some(text) => Some(self.judged_text(served, &text).await),
                None => None,
            };
            Ok((judged, left))
        });
        let (mut judged, mut listed) = (pin!(judging.try_buffered(AT_ONCE)), Audited::default());
        while let Some((one, left)) = judged.try_next().await? {
            match one {
                // The continue token has expired; the list starts again.
                None => listed = Audited::default(),
                Some(one) => listed.add(one),
            }
            reported(listed.objects, usize::try_from(left).unwrap_or(usize::MAX / 2));
        }
        Ok(listed)
    }

    async fn judged_text(&self, served: &Served, text: &str) -> Audited {
        match judge::value(text, served) {
            Ok(object) => judge::judge(&self.gate, &self.chosen, &served.target, object).await,
            Err(unread) => unread,
        }
    }
}

/// Returns a hash of the API version, kind, namespace and name of an object.
fn identity(object: &Value) -> u64 {
    let text = |key| object.get(key).and_then(Value::as_str);
    let metadata = Metadata::of(object);
    let parts = (text("apiVersion"), text("kind"), metadata.namespace(), metadata.name());
    BuildHasherDefault::<DefaultHasher>::default().hash_one(parts)
}

impl Unread {
    fn kind(kind: &Kind, error: &kube::Error) -> Self {
        let group_kind = (kind.group.to_owned(), kind.kind.to_owned());
        Self { resource: kind.full_name(), group_kind, why: error.to_string() }
    }

    fn target(target: &Target, error: &kube::Error) -> Self {
        let group_kind = (target.group.clone(), target.kind.clone());
        Self { resource: target.full_name(), group_kind, why: error.to_string() }
    }
}

/// A resource that an audit lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// API group of the resource; empty for the core group.
    pub group: &'static str,
    /// Plural name of the resource, such as `installations`.
    pub plural: &'static str,
    /// The id prefixes of the rules that read the resource, such as `LS`, sorted.
    pub families: Vec<&'static str>,
}

/// Returns the resources that an audit lists. The RBAC permissions of the audit are created from them.
///
/// Composites are not included, because their kinds are known only at run time. Resources that only the rules of the
/// family `GD` need are not included either, because this family is not enabled by default.
pub fn listed() -> Vec<Listed> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for family in Registry::standard().default_families() {
        for resource in resources(&Registry::standard().only(&[family])) {
            all.entry(resource).or_default().push(family);
        }
    }
    all.into_iter().map(|((group, plural), families)| Listed { group, plural, families }).collect()
}

fn resources(registry: &Registry) -> Vec<(&'static str, &'static str)> {
    let of_rules = registry.rules().iter().flat_map(|rule| rule.matchers);
    let matchers = of_rules.chain(registry.deliveries().iter().flat_map(|delivery| delivery.matchers));
    let judged = matchers.filter(|matcher| !matcher.is_declared()).map(|matcher| (matcher.group, matcher.plural));
    let looked_up = registry.kinds().into_iter().map(|kind| (kind.group, kind.plural));
    let mut all: Vec<_> =
        judged.chain(looked_up).filter(|(group, plural)| !target::is_confidential(group, plural)).collect();
    all.sort_unstable();
    all.dedup();
    all
}
