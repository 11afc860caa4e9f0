//! Policy reports: reading what an earlier audit wrote, comparing, writing what changed, and taking away what is over.
//!
//! A report belongs to us if it carries our label ([`MANAGED_BY`]); no other is ever changed. A result keeps the version and
//! the time at which it was first found, so that nothing is written where nothing changed.

mod api;
mod document;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use futures::{FutureExt as _, StreamExt as _, stream};
use kube::api::{Api, DeleteParams, DynamicObject, ObjectMeta, PostParams, Preconditions};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use time::OffsetDateTime;

use super::{Audited, Unread};
use crate::catalog::cluster::pages::{Item, Pages};
use crate::gate::Registry;
use api::{APIS, ReportApi};
pub use document::{CUT, MANAGED_BY, VERSION};
use document::{First, Key, Writer};

/// Reports that are written at once.
const AT_ONCE: usize = 4;

/// Why reports cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The API server refused, or was not there.
    #[error("policy reports cannot be read: {0}")]
    Read(kube::Error),
    /// Nobody has installed the definitions.
    #[error(
        "the cluster has no kind for policy reports: install the CustomResourceDefinitions of openreports.io/v1alpha1 or \
         wgpolicyk8s.io/v1alpha2, or leave the reports out"
    )]
    NotInstalled,
    /// Some were not written; the others were.
    #[error("{} of the policy reports could not be written: {}", .0.len(), .0.join("; "))]
    Write(Vec<String>),
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Reports that were created.
    pub created: usize,
    /// Reports that were changed.
    pub changed: usize,
    /// Reports that were there as they should be.
    pub unchanged: usize,
    /// Reports that were deleted.
    pub deleted: usize,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { created, changed, unchanged, deleted } = self;
        write!(f, "{created} created, {changed} changed, {deleted} deleted, {unchanged} as they should be")
    }
}

/// A report of ours that is there.
struct Stored {
    api: &'static ReportApi,
    object: DynamicObject,
}

/// The reports of an earlier audit.
pub struct Reports {
    client: Client,
    /// Where reports are written; `None` where no API is installed.
    api: Option<&'static ReportApi>,
    stored: Vec<Stored>,
    known: HashMap<Key, First>,
}

impl Reports {
    /// Reads what there is.
    ///
    /// # Errors
    /// When it cannot be read; that there is no API for reports is none.
    pub async fn read(client: Client) -> Result<Self, ReportError> {
        let mut reports = Self { client, api: None, stored: Vec::new(), known: HashMap::new() };
        for api in &APIS {
            if !api.is_installed(&reports.client).await.map_err(ReportError::Read)? {
                continue;
            }
            reports.api = reports.api.or(Some(api));
            for listed in api.everywhere(&reports.client) {
                let objects = ours(listed).await.map_err(ReportError::Read)?;
                reports.stored.extend(objects.into_iter().map(|object| Stored { api, object }));
            }
        }
        let results = reports.stored.iter().flat_map(|stored| results(&stored.object));
        reports.known = results.map(|result| (document::key(result), document::first(result))).collect();
        Ok(reports)
    }

    /// The version that wrote them; `None` where there are none.
    pub fn version(&self) -> Option<String> {
        let versions = self.stored.iter().filter_map(|stored| stored.object.annotations().get(VERSION));
        versions.max().cloned()
    }

    /// Marks what the reports do not have as new, where there are reports to compare with.
    pub fn compare(&self, audited: &mut Audited) {
        if self.stored.is_empty() {
            return;
        }
        for entry in &mut audited.entries {
            entry.is_new = Some(!self.known.contains_key(&document::key_of(entry)));
        }
    }

    /// Brings the reports of `namespaces`, or of all and of the cluster where there are none, to what was found.
    ///
    /// # Errors
    /// When there is no API for reports, or some could not be written: what one report fails at keeps no other from being
    /// written.
    pub async fn write(
        self,
        audited: &Audited,
        registry: &Registry,
        namespaces: &[String],
    ) -> Result<Written, ReportError> {
        let steps = self.steps(audited, registry, namespaces)?;
        self.take(steps).await
    }

    fn steps(
        &self,
        audited: &Audited,
        registry: &Registry,
        namespaces: &[String],
    ) -> Result<Vec<Step<'_>>, ReportError> {
        let api = self.api.ok_or(ReportError::NotInstalled)?;
        let known = |key: &Key| self.known.get(key).cloned();
        let writer = Writer { registry, api, now: OffsetDateTime::now_utc().unix_timestamp(), known: &known };
        let mut wanted = writer.reports(audited, self.kept(&audited.unread));
        let is_ours = |namespace: &str| namespaces.is_empty() || namespaces.iter().any(|ours| ours == namespace);
        wanted.retain(|(namespace, _), _| is_ours(namespace));
        let mut steps = Vec::new();
        for stored in self.stored.iter().filter(|stored| is_ours(&stored.namespace())) {
            let name = (stored.namespace(), stored.object.name_any());
            let report = if std::ptr::eq(stored.api, api) { wanted.remove(&name) } else { None };
            steps.push(Step::on(stored, report));
        }
        steps.extend(wanted.into_iter().map(|((namespace, _), report)| Step::Create(api, namespace, report)));
        Ok(steps)
    }

    async fn take(&self, steps: Vec<Step<'_>>) -> Result<Written, ReportError> {
        let taking: Vec<_> = steps.into_iter().map(|step| step.take(&self.client).boxed()).collect();
        let taken: Vec<_> = stream::iter(taking).buffer_unordered(AT_ONCE).collect().await;
        let (mut written, mut failed) = (Written::default(), Vec::new());
        for done in taken {
            match done {
                Ok(count) => count(&mut written),
                Err(error) => failed.push(error),
            }
        }
        if failed.is_empty() { Ok(written) } else { Err(ReportError::Write(failed)) }
    }

    /// The results about kinds that could not be read, by namespace: they may still be so.
    fn kept(&self, unread: &[Unread]) -> BTreeMap<String, Vec<Value>> {
        let mut kept: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for stored in &self.stored {
            let is_about = |result: &&Value| unread.iter().any(|unread| is_of(result, unread));
            let results: Vec<_> = results(&stored.object).filter(is_about).cloned().collect();
            if !results.is_empty() {
                kept.entry(stored.namespace()).or_default().extend(results);
            }
        }
        kept
    }
}

impl Stored {
    fn namespace(&self) -> String {
        self.object.namespace().unwrap_or_default()
    }
}

/// Our reports, of any namespace.
async fn ours(api: Api<DynamicObject>) -> Result<Vec<DynamicObject>, kube::Error> {
    let mut pages = Pages::of(api).labelled(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
    let mut objects = Vec::new();
    while let Some(item) = pages.next().await? {
        match item {
            Item::Beginning => objects.clear(),
            Item::Object(text) => objects.push(serde_json::from_str(text).map_err(kube::Error::SerdeError)?),
        }
    }
    Ok(objects)
}

fn results(report: &DynamicObject) -> impl Iterator<Item = &Value> {
    report.data.get("results").and_then(Value::as_array).into_iter().flatten()
}

fn is_of(result: &Value, unread: &Unread) -> bool {
    let text = |part| result.pointer(part).and_then(Value::as_str).unwrap_or_default();
    let group = text("/resources/0/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    (group, text("/resources/0/kind")) == (&unread.group_kind.0, &unread.group_kind.1)
}

/// What is to be done about one report.
enum Step<'s> {
    Create(&'static ReportApi, String, Value),
    Change(&'s Stored, Value),
    Leave,
    Delete(&'s Stored),
}

impl<'s> Step<'s> {
    /// What makes a stored report the wanted one, if one is wanted.
    fn on(stored: &'s Stored, wanted: Option<Value>) -> Self {
        match wanted {
            None => Self::Delete(stored),
            Some(wanted) if is_so(&stored.object, &wanted) => Self::Leave,
            Some(wanted) => Self::Change(stored, wanted),
        }
    }

    async fn take(self, client: &Client) -> Result<fn(&mut Written), String> {
        match self {
            Self::Leave => Ok(|written| written.unchanged += 1),
            Self::Create(api, namespace, report) => {
                let report: DynamicObject = serde_json::from_value(report).map_err(|error| error.to_string())?;
                let created = api.api(client, &namespace).create(&PostParams::default(), &report).await;
                created.map_err(|error| told(&namespace, &report.name_any(), &error))?;
                Ok(|written| written.created += 1)
            }
            Self::Change(stored, report) => {
                let mut report: DynamicObject = serde_json::from_value(report).map_err(|error| error.to_string())?;
                // Whoever changed it meanwhile is not overwritten; what others added to its metadata stays.
                let ObjectMeta { labels, annotations, .. } = std::mem::take(&mut report.metadata);
                report.metadata = stored.object.metadata.clone();
                report.metadata.managed_fields = None;
                report.labels_mut().extend(labels.unwrap_or_default());
                report.annotations_mut().remove(CUT);
                report.annotations_mut().extend(annotations.unwrap_or_default());
                let (namespace, name) = (stored.namespace(), stored.object.name_any());
                let replaced = stored.api.api(client, &namespace).replace(&name, &PostParams::default(), &report).await;
                replaced.map_err(|error| told(&namespace, &name, &error))?;
                Ok(|written| written.changed += 1)
            }
            Self::Delete(stored) => {
                let (namespace, name) = (stored.namespace(), stored.object.name_any());
                let resource_version = stored.object.resource_version();
                let preconditions = Some(Preconditions { uid: stored.object.uid(), resource_version });
                let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
                match stored.api.api(client, &namespace).delete(&name, &parameters).await {
                    Ok(_) => {}
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    Err(error) => return Err(told(&namespace, &name, &error)),
                }
                Ok(|written| written.deleted += 1)
            }
        }
    }
}

fn told(namespace: &str, name: &str, error: &kube::Error) -> String {
    format!("{namespace}/{name}: {error}")
}

/// Whether a report says all that is wanted of it.
fn is_so(stored: &DynamicObject, wanted: &Value) -> bool {
    let own = ["summary", "results", "source"];
    let annotation = |key| wanted["metadata"]["annotations"][key].as_str();
    let has = |key| stored.annotations().get(key).map(String::as_str) == annotation(key);
    own.iter().all(|part| stored.data.get(part) == wanted.get(part)) && [VERSION, CUT].into_iter().all(has)
}
