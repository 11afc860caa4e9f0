//! Writes the findings of an audit into policy reports. An audit compares its findings with the reports of the previous
//! audit. It then creates, changes or deletes reports.
//!
//! Portcullis changes only reports with the label [`MANAGED_BY`]. A report states for each finding when it was first
//! reported, and by which version of Portcullis. Later audits keep both values, so a report with the same findings is
//! usually not written again.

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
use crate::admission::Metadata;
use crate::catalog::cluster::pages::{Item, Pages};
use crate::gate::Registry;
use api::{APIS, ReportApi};
pub use document::{CUT, MANAGED_BY, VERSION};
use document::{First, Key, Writer};

/// Maximum number of policy reports that are written concurrently.
const AT_ONCE: usize = 4;

/// The reason why policy reports cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Policy reports could not be read. Contains the error of the Kubernetes client.
    #[error("policy reports cannot be read: {0}")]
    Read(kube::Error),
    /// No API of policy reports is installed.
    #[error(
        "the cluster has no kind for policy reports: install the CustomResourceDefinitions of openreports.io/v1alpha1 or \
         wgpolicyk8s.io/v1alpha2, or turn the reports off"
    )]
    NotInstalled,
    /// Some policy reports could not be written. Contains one error message for each of them.
    #[error("{} of the policy reports could not be written: {}", .0.len(), .0.join("; "))]
    Write(Vec<String>),
}

/// Numbers of policy reports that were created, changed, left unchanged and deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of created reports.
    pub created: usize,
    /// Number of changed reports.
    pub changed: usize,
    /// Number of reports that needed no change.
    pub unchanged: usize,
    /// Number of deleted reports.
    pub deleted: usize,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { created, changed, unchanged, deleted } = self;
        write!(f, "{created} created, {changed} changed, {deleted} deleted, {unchanged} unchanged")
    }
}

/// A stored policy report that portcullis has written.
struct Stored {
    api: &'static ReportApi,
    object: DynamicObject,
}

/// The policy reports of earlier audits that the cluster stores.
pub struct Reports {
    client: Client,
    /// The API in which reports are written; `None` if the cluster serves none.
    api: Option<&'static ReportApi>,
    stored: Vec<Stored>,
    known: HashMap<Key, First>,
}

impl Reports {
    /// Reads the reports of earlier audits from the cluster.
    ///
    /// # Errors
    /// If the reports cannot be read. A cluster without an API for reports is not an error.
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

    /// Returns the version of portcullis that wrote the reports; `None` without reports.
    pub fn version(&self) -> Option<String> {
        let versions = self.stored.iter().filter_map(|stored| stored.object.annotations().get(VERSION));
        versions.max().cloned()
    }

    /// Sets the field `is_new` of each finding. A finding is new if the earlier reports do not contain it. Does nothing
    /// if there are no earlier reports.
    pub fn compare(&self, audited: &mut Audited) {
        if self.stored.is_empty() {
            return;
        }
        for entry in &mut audited.entries {
            entry.is_new = Some(!self.known.contains_key(&document::key_of(entry)));
        }
    }

    /// Writes the findings of an audit to policy reports. Creates, changes and deletes reports in `namespaces`. If
    /// `namespaces` is empty, writes reports in all namespaces, and cluster-scoped reports.
    ///
    /// # Errors
    /// If no API for reports is installed, or if some reports could not be written. After an error with one report, the
    /// other reports are still written.
    pub async fn write(
        self,
        audited: &Audited,
        registry: &Registry,
        namespaces: &[String],
    ) -> Result<Written, ReportError> {
        let steps = self.steps(audited, registry, namespaces)?;
        self.apply(steps).await
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
        let mut wanted = writer.reports(audited, self.carried_over(&audited.unread));
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

    async fn apply(&self, steps: Vec<Step<'_>>) -> Result<Written, ReportError> {
        let taking: Vec<_> = steps.into_iter().map(|step| step.apply(&self.client).boxed()).collect();
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

    /// Returns results of earlier reports that remain in the new reports, by namespace. These results are about objects
    /// of the kinds in `unread`, which this audit could not read.
    fn carried_over(&self, unread: &[Unread]) -> BTreeMap<String, Vec<Value>> {
        let mut carried_over: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for stored in &self.stored {
            let is_about = |result: &&Value| unread.iter().any(|unread| is_of(result, unread));
            let results: Vec<_> = results(&stored.object).filter(is_about).cloned().collect();
            if !results.is_empty() {
                carried_over.entry(stored.namespace()).or_default().extend(results);
            }
        }
        carried_over
    }
}

impl Stored {
    fn namespace(&self) -> String {
        self.object.namespace().unwrap_or_default()
    }
}

/// Returns the reports that portcullis has written, in all namespaces.
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

/// The action that brings one policy report up to date.
enum Step<'s> {
    Create(&'static ReportApi, String, Value),
    Change(&'s Stored, Value),
    Leave,
    Delete(&'s Stored),
}

impl<'s> Step<'s> {
    /// Returns the action for a stored report. The action changes the report to `wanted`, or leaves the report
    /// unchanged if it is up to date. The action deletes the report if `wanted` is `None`.
    fn on(stored: &'s Stored, wanted: Option<Value>) -> Self {
        match wanted {
            None => Self::Delete(stored),
            Some(wanted) if is_up_to_date(&stored.object, &wanted) => Self::Leave,
            Some(wanted) => Self::Change(stored, wanted),
        }
    }

    async fn apply(self, client: &Client) -> Result<fn(&mut Written), String> {
        match self {
            Self::Leave => Ok(|written| written.unchanged += 1),
            Self::Create(api, namespace, report) => {
                let report: DynamicObject = serde_json::from_value(report).map_err(|error| error.to_string())?;
                let created = api.api(client, &namespace).create(&PostParams::default(), &report).await;
                created.map_err(|error| error_text(&namespace, &report.name_any(), &error))?;
                Ok(|written| written.created += 1)
            }
            Self::Change(stored, report) => {
                let mut report: DynamicObject = serde_json::from_value(report).map_err(|error| error.to_string())?;
                // The resourceVersion makes the update fail if somebody has changed the report in the meantime. Labels
                // and annotations of others are kept.
                let ObjectMeta { labels, annotations, .. } = std::mem::take(&mut report.metadata);
                report.metadata = stored.object.metadata.clone();
                report.metadata.managed_fields = None;
                report.labels_mut().extend(labels.unwrap_or_default());
                report.annotations_mut().remove(CUT);
                report.annotations_mut().extend(annotations.unwrap_or_default());
                let (namespace, name) = (stored.namespace(), stored.object.name_any());
                let replaced = stored.api.api(client, &namespace).replace(&name, &PostParams::default(), &report).await;
                replaced.map_err(|error| error_text(&namespace, &name, &error))?;
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
                    Err(error) => return Err(error_text(&namespace, &name, &error)),
                }
                Ok(|written| written.deleted += 1)
            }
        }
    }
}

fn error_text(namespace: &str, name: &str, error: &kube::Error) -> String {
    format!("{namespace}/{name}: {error}")
}

/// Returns whether a stored report equals the wanted one in all fields that portcullis writes.
fn is_up_to_date(stored: &DynamicObject, wanted: &Value) -> bool {
    let own = ["summary", "results", "source"];
    let annotation = |key| Metadata::of(wanted).annotation(key);
    let has = |key| stored.annotations().get(key).map(String::as_str) == annotation(key);
    own.iter().all(|part| stored.data.get(part) == wanted.get(part)) && [VERSION, CUT].into_iter().all(has)
}
