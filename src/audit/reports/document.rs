//! The content of policy reports.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::api::ReportApi;
use crate::admission::Level;
use crate::audit::{Audited, Entry, Outcome, UNREADABLE};
use crate::gate::Registry;

/// The label that identifies reports of portcullis.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "portcullis");
/// The annotation with the version of portcullis that wrote a report.
pub const VERSION: &str = "portcullis.dev/version";
/// Annotation on the last report of a namespace. Its value is a message with the number of omitted results. It is
/// absent if no results are omitted.
pub const CUT: &str = "portcullis.dev/cut";
/// The value of the field `source` in reports and results.
const SOURCE: &str = "portcullis";
/// The name of the first report of a namespace. The names of further reports have a number as suffix, such as
/// `portcullis-audit-2`.
const NAME: &str = "portcullis-audit";
/// Maximum size of the results in one report, in bytes of JSON. It is less than half of 1.5 MiB, the size above which etcd
/// rejects objects by default. So there is enough room for the other fields of the report.
const MAX_BYTES: usize = 700 * 1024;
/// Maximum number of reports per namespace. If the findings do not fit into these reports, the least severe ones are
/// omitted and counted.
const MAX_PARTS: usize = 16;

/// The identity of a result in a policy report. It consists of rule, kind, namespace, name and field. If results of two
/// audits have the same identity, they count as the same result.
pub(super) type Key = [String; 5];

/// The version of portcullis and the time of the audit that first reported a result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct First {
    pub(super) version: Value,
    pub(super) timestamp: Value,
}

/// Returns the identity of a result in a stored policy report.
pub(super) fn key(result: &Value) -> Key {
    ["/policy", "/resources/0/kind", "/resources/0/namespace", "/resources/0/name", "/properties/field"]
        .map(|part| result.pointer(part).and_then(Value::as_str).unwrap_or_default().to_owned())
}

pub(super) fn key_of(entry: &Entry) -> Key {
    let subject = &entry.subject;
    [entry.rule, &subject.kind, &subject.namespace, &subject.name, &entry.field].map(str::to_owned)
}

pub(super) fn first(result: &Value) -> First {
    First { version: result["properties"]["version"].clone(), timestamp: result["timestamp"].clone() }
}

/// A writer that creates policy reports from the findings of an audit.
pub(super) struct Writer<'a> {
    pub(super) registry: &'a Registry,
    pub(super) api: &'static ReportApi,
    /// The current time in seconds since 1970, for new results.
    pub(super) now: i64,
    /// A function that looks up a result in earlier reports. It returns the time of the first report of the result, and
    /// the version of portcullis that wrote it; `None` for a new result.
    pub(super) known: &'a dyn Fn(&Key) -> Option<First>,
}

impl Writer<'_> {
    /// Returns the policy reports for the findings of an audit, by namespace and name of the report.
    ///
    /// `carried_over` contains results of earlier reports about objects that this audit could not read, by namespace.
    pub(super) fn reports(
        &self,
        audited: &Audited,
        carried_over: BTreeMap<String, Vec<Value>>,
    ) -> BTreeMap<(String, String), Value> {
        let mut results: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for entry in &audited.entries {
            results.entry(entry.subject.namespace.clone()).or_default().push(self.result(entry));
        }
        for (namespace, carried_over) in carried_over {
            results.entry(namespace).or_default().extend(carried_over);
        }
        let mut reports = BTreeMap::new();
        for (namespace, results) in results {
            let passes = audited.passes.get(&namespace).copied().unwrap_or_default();
            for (number, part) in parts(results).into_iter().enumerate() {
                let name = if number == 0 { NAME.to_owned() } else { format!("{NAME}-{}", number + 1) };
                let passes = if number == 0 { passes } else { 0 };
                let report = self.report(&namespace, &name, part, passes);
                reports.insert((namespace.clone(), name), report);
            }
        }
        reports
    }

    fn report(&self, namespace: &str, name: &str, part: Part, passes: usize) -> Value {
        let mut annotations = json!({VERSION: env!("CARGO_PKG_VERSION")});
        if part.cut > 0 {
            annotations[CUT] = format!("{} more results are omitted; `portcullis audit` prints them", part.cut).into();
        }
        let mut metadata = json!({"name": name, "labels": {MANAGED_BY.0: MANAGED_BY.1}, "annotations": annotations});
        if !namespace.is_empty() {
            metadata["namespace"] = namespace.into();
        }
        let mut summary = json!({"pass": passes});
        for outcome in [Outcome::Fail, Outcome::Warn, Outcome::Error, Outcome::Skip].map(Outcome::as_str) {
            summary[outcome] = part.results.iter().filter(|result| result["result"] == outcome).count().into();
        }
        let (api_version, kind) = (self.api.api_version(), self.api.kind(namespace));
        let mut report = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "summary": summary});
        report["results"] = part.results.into();
        if self.api.has_source {
            report["source"] = SOURCE.into();
        }
        report
    }

    fn result(&self, entry: &Entry) -> Value {
        let info = self.registry.info(entry.rule);
        let First { version, timestamp } = (self.known)(&key_of(entry)).unwrap_or_else(|| First {
            version: env!("CARGO_PKG_VERSION").into(),
            timestamp: json!({"seconds": self.now, "nanos": 0}),
        });
        let headline = if entry.field.is_empty() { String::new() } else { format!("{}: ", entry.field) };
        let texts = [("level", entry.level.as_str()), ("field", &entry.field)];
        let texts = texts.into_iter().chain(entry.help.as_deref().map(|help| ("help", help)));
        let mut properties: Map<String, Value> = texts.map(|(key, text)| (key.to_owned(), text.into())).collect();
        properties.insert("version".to_owned(), version);
        json!({
            "source": SOURCE,
            "policy": entry.rule,
            "rule": info.map_or(UNREADABLE, |info| info.name),
            "category": info.map_or("Portcullis", |info| category(info.family())),
            "severity": severity(entry),
            "result": entry.outcome().as_str(),
            "scored": true,
            "message": format!("{headline}{}", entry.message),
            "resources": [resource(entry)],
            "properties": properties,
            "timestamp": timestamp,
        })
    }
}

fn resource(entry: &Entry) -> Value {
    let subject = &entry.subject;
    let texts = [
        ("apiVersion", &subject.api_version),
        ("kind", &subject.kind),
        ("namespace", &subject.namespace),
        ("name", &subject.name),
        ("uid", &subject.uid),
    ];
    let members = texts.into_iter().filter(|(_, text)| !text.is_empty());
    members.map(|(key, text)| (key.to_owned(), Value::from(text.as_str()))).collect::<Map<_, _>>().into()
}

fn severity(entry: &Entry) -> &'static str {
    match (entry.outcome(), entry.level) {
        (Outcome::Fail | Outcome::Error, _) => "high",
        (Outcome::Warn, Level::Warn) => "medium",
        _ => "info",
    }
}

/// Returns the category of a rule in policy reports, such as `Landscaper`. `family` is the prefix of the rule's id,
/// such as `LS`.
fn category(family: &str) -> &'static str {
    match family {
        "DP" => "Deployer contract",
        "DR" => "Dry runs",
        "EN" => "Composition environments",
        "KZ" => "Kustomize trees",
        "LS" => "Landscaper",
        "OW" => "Overwrites",
        _ => "Portcullis",
    }
}

/// The results in one policy report. `cut` is the number of results of the namespace that are omitted. It is 0 except
/// in the last report of the namespace.
struct Part {
    results: Vec<Value>,
    cut: usize,
}

fn parts(results: Vec<Value>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let (mut bytes, mut cut) = (MAX_BYTES, 0);
    for result in results {
        let size = result.to_string().len();
        if bytes + size > MAX_BYTES {
            if parts.len() == MAX_PARTS {
                cut += 1;
                continue;
            }
            parts.push(Part { results: Vec::new(), cut: 0 });
            bytes = 0;
        }
        bytes += size;
        parts.iter_mut().next_back().into_iter().for_each(|part| part.results.push(result.clone()));
    }
    parts.iter_mut().next_back().into_iter().for_each(|part| part.cut = cut);
    parts
}
