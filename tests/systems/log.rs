//! Reads the write requests in the audit log of the API server, and the admission decisions in the log of portcullis.

use std::fs;
use std::path::Path;

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A write request that the API server has answered.
#[derive(Debug, Clone)]
pub struct Write {
    /// The name of the user who sent the request.
    pub user: String,
    /// The action, such as `patch kustomizations/status apps`.
    pub action: String,
    /// The namespace of the object; empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
    /// The error message, if a webhook denied the request.
    pub denied: Option<String>,
    /// The duration of the request in microseconds.
    pub micros: i128,
}

/// A decision of portcullis.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The namespace of the object; empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
    pub allowed: bool,
}

/// Returns the writes of all users in an audit log.
pub fn writes(path: &Path) -> Vec<Write> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| write(&serde_json::from_str(line).ok()?)).collect()
}

fn write(event: &Value) -> Option<Write> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let timestamp = |pointer: &str| OffsetDateTime::parse(&text(pointer), &Rfc3339).ok();
    let subresource = Some(text("/objectRef/subresource")).filter(|name| !name.is_empty());
    let subresource = subresource.map(|name| format!("/{name}")).unwrap_or_default();
    let (verb, resource, name) = (text("/verb"), text("/objectRef/resource"), text("/objectRef/name"));
    let message = text("/responseStatus/message");
    let duration = timestamp("/stageTimestamp")? - timestamp("/requestReceivedTimestamp")?;
    Some(Write {
        user: text("/user/username"),
        action: format!("{verb} {resource}{subresource} {name}"),
        namespace: text("/objectRef/namespace"),
        name,
        denied: Some(message).filter(|message| message.contains("denied the request")),
        micros: duration.whole_microseconds(),
    })
}

/// Returns all decisions in a log of portcullis.
pub fn decisions(path: &Path) -> Vec<Decision> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter(|line| line.contains(" micros=")).filter_map(decision).collect()
}

fn decision(line: &str) -> Option<Decision> {
    let quoted = |key: &str| {
        let (_, rest) = line.split_once(&format!(" {key}=\""))?;
        rest.split('"').next().map(str::to_owned)
    };
    Some(Decision { namespace: quoted("namespace")?, name: quoted("name")?, allowed: line.contains(" allowed=true") })
}
