//! Copies of admission requests. Request handlers make the copies, and the writer of a recording serializes them.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::redact;
use crate::admission::{Operation, Request, json};

/// A copy of the parts of a request that rules read.
pub(super) struct RequestCopy {
    uid: String,
    group: String,
    version: String,
    plural: String,
    kind: String,
    subresource: String,
    name: String,
    namespace: String,
    operation: Operation,
    user: String,
    groups: Vec<String>,
    dry_run: bool,
    object: Option<String>,
    old_object: Option<String>,
}

impl RequestCopy {
    /// Copies the parts of a request that rules read.
    pub(super) fn of(request: &Request<'_>) -> Self {
        let (resource, user) = (&request.resource, &request.user);
        Self {
            uid: request.uid.to_string(),
            group: resource.group.to_string(),
            version: resource.version.to_string(),
            plural: resource.plural.to_string(),
            kind: resource.kind.to_string(),
            subresource: resource.subresource.to_string(),
            name: request.name.to_string(),
            namespace: request.namespace.to_string(),
            operation: request.operation,
            user: user.name.to_string(),
            groups: user.groups.iter().map(ToString::to_string).collect(),
            dry_run: request.dry_run,
            object: request.object.text().map(Into::into),
            old_object: request.old_object.text().map(Into::into),
        }
    }

    /// Returns the approximate size of this copy of a request, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let objects = [&self.object, &self.old_object].into_iter().flatten().map(String::len).sum::<usize>();
        size_of::<Self>() + objects + self.groups.iter().map(String::len).sum::<usize>()
    }

    /// Returns the AdmissionReview as JSON, and the paths of redacted fields. Omits credentials, and parts of the
    /// request that rules do not read.
    pub(super) fn review(&self) -> Result<(Box<RawValue>, Vec<String>), serde_json::Error> {
        let mut redacted = Vec::new();
        let object = self.object("object", self.object.as_deref(), &mut redacted);
        let old_object = self.object("oldObject", self.old_object.as_deref(), &mut redacted);
        let review = Review {
            api_version: "admission.k8s.io/v1",
            kind: "AdmissionReview",
            request: WireRequest {
                uid: &self.uid,
                kind: Kind { group: &self.group, version: &self.version, kind: &self.kind },
                resource: Resource { group: &self.group, version: &self.version, resource: &self.plural },
                sub_resource: &self.subresource,
                name: &self.name,
                namespace: &self.namespace,
                operation: self.operation.as_str(),
                user_info: User { username: &self.user, groups: &self.groups },
                object,
                old_object,
                dry_run: self.dry_run,
            },
        };
        Ok((serde_json::value::to_raw_value(&review)?, redacted))
    }

    fn object(&self, which: &str, text: Option<&str>, redacted: &mut Vec<String>) -> Option<Box<RawValue>> {
        let text = text?;
        let Ok(mut object) = json::parse(text) else { return self.unreadable(which, text, redacted) };
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        redacted.extend(redact::redact(&mut object).iter().map(|field| format!("/{which}{field}")));
        serde_json::value::to_raw_value(&object).ok()
    }

    /// Returns the text of an object that cannot be parsed. Line breaks in the text become spaces, so that the text
    /// fits into one line of the recording. If objects of this kind may contain credentials, returns `None`, and adds
    /// the path of the object to `redacted`. `which` is the name of the request field that contains the object:
    /// `object` or `oldObject`.
    fn unreadable(&self, which: &str, text: &str, redacted: &mut Vec<String>) -> Option<Box<RawValue>> {
        if redact::is_sensitive(&self.group, &self.kind) {
            redacted.push(format!("/{which}"));
            return None;
        }
        RawValue::from_string(text.replace(['\n', '\r'], " ")).ok()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    request: WireRequest<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireRequest<'a> {
    uid: &'a str,
    kind: Kind<'a>,
    resource: Resource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: &'static str,
    user_info: User<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_object: Option<Box<RawValue>>,
    dry_run: bool,
}

#[derive(Serialize)]
struct Kind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

#[derive(Serialize)]
struct Resource<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
}

#[derive(Serialize)]
struct User<'a> {
    username: &'a str,
    groups: &'a [String],
}
