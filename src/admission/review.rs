//! The wire: AdmissionReviews in, answers out.
//!
//! Own types instead of kube's: those write a patch as an array of numbers, drop unknown metadata, and lose the uid with
//! the first field that they do not like. Here the envelope borrows from the body, the objects in it stay raw text, and
//! the uid is found wherever the text is JSON at all.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Object, Operation, Request, Resource, User, json};

/// The version of the AdmissionReview API; an answer has the version of its review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Version {
    /// `admission.k8s.io/v1`
    #[default]
    #[serde(rename = "admission.k8s.io/v1")]
    V1,
    /// `admission.k8s.io/v1beta1`
    #[serde(rename = "admission.k8s.io/v1beta1")]
    V1Beta1,
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "admission.k8s.io/v1" => Some(Self::V1),
            "admission.k8s.io/v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }
}

/// A review that could be read.
#[derive(Debug)]
pub struct Review<'a> {
    /// Its version.
    pub version: Version,
    /// The request in it.
    pub request: Request<'a>,
}

/// A review that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Not even a uid: the only answer is HTTP 400.
    #[error("this is no AdmissionReview: {problem}; it needs a JSON object with request.uid")]
    NoUid {
        /// What is wrong.
        problem: String,
    },
    /// The uid is known: the answer is a denial that carries it, so that no failure policy lets the object through.
    #[error("this AdmissionReview cannot be read: {problem}")]
    WithUid {
        /// The request's uid.
        uid: String,
        /// The version to answer in.
        version: Version,
        /// What is wrong.
        problem: String,
    },
}

/// Reads a review; the objects in it stay raw.
///
/// # Errors
/// [`Unreadable`], which keeps the uid wherever the text is a JSON object that has one.
pub fn read(body: &[u8]) -> Result<Review<'_>, Unreadable> {
    let problem = match serde_json::from_slice::<WireReview<'_>>(body) {
        Ok(wire) => match wire.into_review() {
            Ok(review) => return Ok(review),
            Err(problem) => problem,
        },
        Err(error) => error.to_string(),
    };
    Err(unreadable(body, problem))
}

/// Looks for the uid alone, in a body that is otherwise not understood.
fn unreadable(body: &[u8], problem: String) -> Unreadable {
    let text = String::from_utf8_lossy(body);
    let version = member(&text, "apiVersion").and_then(string).and_then(|text| Version::parse(&text));
    let uid = member(&text, "request").and_then(|request| string(member(request, "uid")?));
    match uid.filter(|uid| !uid.is_empty()) {
        Some(uid) => Unreadable::WithUid { uid, version: version.unwrap_or_default(), problem },
        None => Unreadable::NoUid { problem },
    }
}

/// The text of a member of a JSON object; the last one of a name wins, as in Go.
fn member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let members = json::members(object).ok()?;
    members.into_iter().rev().find(|(name, _)| name == key).map(|(_, raw)| raw.get())
}

fn string(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

/// A string that borrows from the body where it has no escapes.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn text(field: Option<Text<'_>>) -> Cow<'_, str> {
    field.unwrap_or_default().0
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireReview<'a> {
    #[serde(borrow)]
    api_version: Option<Text<'a>>,
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    request: Option<WireRequest<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRequest<'a> {
    #[serde(borrow)]
    uid: Option<Text<'a>>,
    #[serde(borrow)]
    kind: Option<WireKind<'a>>,
    #[serde(borrow)]
    resource: Option<WireResource<'a>>,
    #[serde(borrow)]
    sub_resource: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    operation: Option<Text<'a>>,
    #[serde(borrow)]
    user_info: Option<WireUser<'a>>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
    dry_run: Option<bool>,
}

#[derive(Deserialize)]
struct WireKind<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct WireResource<'a> {
    #[serde(borrow)]
    group: Option<Text<'a>>,
    #[serde(borrow)]
    version: Option<Text<'a>>,
    #[serde(borrow)]
    resource: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
struct WireUser<'a> {
    #[serde(borrow)]
    username: Option<Text<'a>>,
    #[serde(borrow)]
    groups: Option<Vec<Text<'a>>>,
}

impl<'a> WireReview<'a> {
    fn into_review(self) -> Result<Review<'a>, String> {
        let kind = text(self.kind);
        if kind != "AdmissionReview" {
            return Err(format!("kind is {kind:?}, not \"AdmissionReview\""));
        }
        let api_version = text(self.api_version);
        let version = Version::parse(&api_version).ok_or_else(|| {
            format!("apiVersion {api_version:?} is not known; admission.k8s.io/v1 and admission.k8s.io/v1beta1 are")
        })?;
        let request = self.request.ok_or("request is missing")?.into_request()?;
        Ok(Review { version, request })
    }
}

impl<'a> WireRequest<'a> {
    fn into_request(self) -> Result<Request<'a>, String> {
        let uid = text(self.uid);
        if uid.is_empty() {
            return Err("request.uid is empty".to_owned());
        }
        let word = text(self.operation);
        let operation = Operation::parse(&word).ok_or_else(|| {
            format!("request.operation {word:?} is not known; CREATE, UPDATE, DELETE and CONNECT are")
        })?;
        let resource = self.resource.ok_or("request.resource is missing")?;
        let user = self.user_info.unwrap_or_default();
        Ok(Request {
            uid,
            resource: Resource {
                group: text(resource.group),
                version: text(resource.version),
                plural: text(resource.resource),
                kind: text(self.kind.and_then(|kind| kind.kind)),
                subresource: text(self.sub_resource),
            },
            name: text(self.name),
            namespace: text(self.namespace),
            operation,
            user: User {
                name: text(user.username),
                groups: user.groups.unwrap_or_default().into_iter().map(|group| group.0).collect(),
            },
            dry_run: self.dry_run.unwrap_or_default(),
            object: Object::raw(self.object),
            old_object: Object::raw(self.old_object),
            deadline: None,
        })
    }
}

/// What is sent back: `AdmissionReview.response`, ready to be written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    #[serde(skip)]
    pub(super) version: Version,
    pub(super) uid: String,
    pub(super) allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) audit_annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) patch: Option<Encoded>,
}

/// `response.patch`: base64 in quotes, as it goes onto the wire. It has nothing to escape, and looking for it in some
/// thousand bytes would cost more than encoding them.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(super) struct Encoded(Box<RawValue>);

impl Encoded {
    pub(super) fn of(patch: &Patch) -> serde_json::Result<Self> {
        let json = serde_json::to_vec(patch)?;
        let mut text = String::with_capacity(json.len() / 3 * 4 + 6);
        text.push('"');
        STANDARD.encode_string(&json, &mut text);
        text.push('"');
        RawValue::from_string(text).map(Self)
    }
}

impl PartialEq for Encoded {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// `response.status`: why a request is refused.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Status {
    pub status: &'static str,
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

/// `response.status.details`: the findings for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    pub causes: Vec<Cause>,
}

/// One of `response.status.details.causes`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Cause {
    pub reason: &'static str,
    pub message: String,
    pub field: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireAnswer<'a> {
    kind: &'static str,
    api_version: Version,
    response: &'a Answer,
}

impl Answer {
    /// Whether the request goes on.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// The AdmissionReview's JSON. The request is not repeated in it: that would double the traffic.
    pub fn to_json(&self) -> Vec<u8> {
        let wire = WireAnswer { kind: "AdmissionReview", api_version: self.version, response: self };
        serde_json::to_vec(&wire).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uid_survives_anything_that_is_json() {
        let bodies = [
            r#"{"request":{"uid":"u1","object":5,"operation":"FROB"}}"#.to_owned(),
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","uid":"u1"}}"#.into(),
            format!(r#"{{"request":{{"uid":"u1","object":{}1{}}}}}"#, "[".repeat(5000), "]".repeat(5000)),
        ];
        for body in bodies {
            match read(body.as_bytes()) {
                Err(Unreadable::WithUid { uid, .. }) => assert_eq!(uid, "u1"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn without_a_uid_there_is_none() {
        for body in ["", "{", "[]", "null", r#"{"request":{"uid":7}}"#, r#"{"request":{"uid":""}}"#] {
            assert!(matches!(read(body.as_bytes()), Err(Unreadable::NoUid { .. })), "{body}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_keep_the_uid() {
        let body = b"{\"request\":{\"uid\":\"u1\",\"name\":\"\xff\"}}";
        assert!(matches!(read(body), Err(Unreadable::WithUid { .. })));
    }
}
