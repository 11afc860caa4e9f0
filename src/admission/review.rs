//! Parses AdmissionReviews.
//!
//! This module does not use the types of the crate `kube`. Those types write a patch as an array of numbers, drop
//! unknown metadata, and lose the uid if any field is invalid. The types in this module borrow from the request body,
//! and keep objects as raw JSON text. The error for a review with missing or invalid fields still contains the uid,
//! because the response needs it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::checked;
use super::scan::{Jump, Scanner};
use super::{Object, Operation, Request, Resource, User, json};

/// The version of the AdmissionReview API. A response has the version of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Version {
    /// Version `admission.k8s.io/v1` of the AdmissionReview API.
    #[default]
    #[serde(rename = "admission.k8s.io/v1")]
    V1,
    /// Version `admission.k8s.io/v1beta1` of the AdmissionReview API.
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

/// A parsed AdmissionReview.
#[derive(Debug)]
pub struct Review<'a> {
    /// The API version of the review.
    pub version: Version,
    /// The request that the review contains.
    pub request: Request<'a>,
}

/// The error for a review that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A review without a uid. The server responds with HTTP 400.
    #[error("this is not an AdmissionReview: {problem}; it needs a JSON object with request.uid")]
    NoUid {
        /// Why the review cannot be parsed.
        problem: String,
    },
    /// A review that cannot be parsed but has a uid. The server denies the request in a response with this uid. It does
    /// not send an HTTP error, because the API server would then admit the request if `failurePolicy` is `Ignore`.
    #[error("this AdmissionReview cannot be read: {problem}")]
    WithUid {
        /// The request's uid.
        uid: String,
        /// The API version of the AdmissionReview. The response has the same version.
        version: Version,
        /// Why the review cannot be parsed.
        problem: String,
    },
}

/// Parses a review. The objects in the review stay raw text.
///
/// # Errors
/// If the body is not a valid AdmissionReview. The error contains the uid if the body is a JSON object with a uid.
pub fn read(body: &[u8]) -> Result<Review<'_>, Unreadable> {
    let text = str::from_utf8(body).map_err(|error| unreadable(body, error.to_string()))?;
    WireReview::scan(text).and_then(WireReview::into_review).map_err(|problem| unreadable(body, problem))
}

/// Returns the error for an invalid body, with the uid if the body contains one.
fn unreadable(body: &[u8], problem: String) -> Unreadable {
    let text = String::from_utf8_lossy(body);
    let version = member(&text, "apiVersion").and_then(string).and_then(|text| Version::parse(&text));
    let uid = member(&text, "request").and_then(|request| string(member(request, "uid")?));
    match uid.filter(|uid| !uid.is_empty()) {
        Some(uid) => Unreadable::WithUid { uid, version: version.unwrap_or_default(), problem },
        None => Unreadable::NoUid { problem },
    }
}

/// Returns the value of `key` in the text of a JSON object, as JSON text. If the key occurs more than once, returns the
/// last value, as Go does. `None` if the object does not contain the key, or if the text is not a JSON object.
fn member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let members = json::members(object).ok()?;
    members.into_iter().rev().find(|(name, _)| name == key).map(|(_, raw)| raw.get())
}

fn string(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

/// A JSON string in an AdmissionReview. It borrows from the request body unless it contains escapes.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The JSON text of a member of a JSON object; `None` if the member is missing.
type Raw<'a> = Option<&'a str>;

#[derive(Default)]
struct WireReview<'a> {
    api_version: Raw<'a>,
    kind: Raw<'a>,
    request: Option<WireRequest<'a>>,
}

#[derive(Default)]
struct WireRequest<'a> {
    uid: Raw<'a>,
    kind: Raw<'a>,
    resource: Raw<'a>,
    sub_resource: Raw<'a>,
    name: Raw<'a>,
    namespace: Raw<'a>,
    operation: Raw<'a>,
    user_info: Raw<'a>,
    object: Raw<'a>,
    old_object: Raw<'a>,
    /// Start and end positions of nested values in `object` (first list) and in `oldObject` (second list). They let a
    /// later scan jump over these values.
    jumps: [Vec<Jump>; 2],
    dry_run: Raw<'a>,
}

#[derive(Default, Deserialize)]
struct WireKind<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
}

#[derive(Default, Deserialize)]
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
    fn scan(text: &'a str) -> Result<Self, String> {
        let mut review = Self::default();
        let mut scanner = Scanner::new(text);
        scanner.open()?;
        while let Some(key) = scanner.key()? {
            match &*key {
                "apiVersion" => set(&mut review.api_version, &key, scanner.value()?)?,
                "kind" => set(&mut review.kind, &key, scanner.value()?)?,
                "request" => set(&mut review.request, &key, WireRequest::scan(&mut scanner)?)?,
                _ => drop(scanner.value()?),
            }
        }
        scanner.end()?;
        Ok(review)
    }

    fn into_review(self) -> Result<Review<'a>, String> {
        let kind = text(self.kind, "kind")?;
        if kind != "AdmissionReview" {
            return Err(format!("kind is {kind:?}, not \"AdmissionReview\""));
        }
        let api_version = text(self.api_version, "apiVersion")?;
        let version = Version::parse(&api_version).ok_or_else(|| {
            format!("apiVersion {api_version:?} is not supported; use admission.k8s.io/v1 or admission.k8s.io/v1beta1")
        })?;
        let request = self.request.ok_or("request is missing")?.into_request()?;
        Ok(Review { version, request })
    }
}

impl<'a> WireRequest<'a> {
    fn scan(scanner: &mut Scanner<'a>) -> Result<Self, String> {
        let mut request = Self::default();
        scanner.open()?;
        while let Some(key) = scanner.key()? {
            let value = match &*key {
                "object" => scanner.value_and_jumps(&mut request.jumps[0])?,
                "oldObject" => scanner.value_and_jumps(&mut request.jumps[1])?,
                _ => scanner.value()?,
            };
            if let Some(member) = request.member(&key) {
                set(member, &key, value)?;
            }
        }
        Ok(request)
    }

    fn member(&mut self, key: &str) -> Option<&mut Raw<'a>> {
        Some(match key {
            "uid" => &mut self.uid,
            "kind" => &mut self.kind,
            "resource" => &mut self.resource,
            "subResource" => &mut self.sub_resource,
            "name" => &mut self.name,
            "namespace" => &mut self.namespace,
            "operation" => &mut self.operation,
            "userInfo" => &mut self.user_info,
            "object" => &mut self.object,
            "oldObject" => &mut self.old_object,
            "dryRun" => &mut self.dry_run,
            _ => return None,
        })
    }

    fn into_request(self) -> Result<Request<'a>, String> {
        let uid = text(self.uid, "request.uid")?;
        if uid.is_empty() {
            return Err("request.uid is empty".to_owned());
        }
        let word = text(self.operation, "request.operation")?;
        let operation = Operation::parse(&word).ok_or_else(|| {
            format!("request.operation {word:?} is not supported; it must be CREATE, UPDATE, DELETE or CONNECT")
        })?;
        let user: WireUser<'_> = read_member(self.user_info, "request.userInfo")?;
        let resource = self.resource()?;
        let [of_object, of_old_object] = self.jumps;
        Ok(Request {
            uid,
            resource,
            name: text(self.name, "request.name")?,
            namespace: text(self.namespace, "request.namespace")?,
            operation,
            user: User {
                name: user.username.unwrap_or_default().0,
                groups: user.groups.unwrap_or_default().into_iter().map(|group| group.0).collect(),
            },
            dry_run: read_member(self.dry_run, "request.dryRun")?,
            object: Object::scanned(self.object.filter(|text| *text != NULL), of_object),
            old_object: Object::scanned(self.old_object.filter(|text| *text != NULL), of_old_object),
            deadline: None,
        })
    }

    fn resource(&self) -> Result<Resource<'a>, String> {
        let resource = self.resource.filter(|text| *text != NULL).ok_or("request.resource is missing")?;
        let resource: WireResource<'_> = read_member(Some(resource), "request.resource")?;
        let kind: WireKind<'_> = read_member(self.kind, "request.kind")?;
        Ok(Resource {
            group: resource.group.unwrap_or_default().0,
            version: resource.version.unwrap_or_default().0,
            plural: resource.resource.unwrap_or_default().0,
            kind: kind.kind.unwrap_or_default().0,
            subresource: text(self.sub_resource, "request.subResource")?,
        })
    }
}

const NULL: &str = "null";

/// Sets `member`, a field of the review that is being parsed, to `value`. Returns an error if the field is already set.
/// `key` is the name of the field for the error message.
fn set<T>(member: &mut Option<T>, key: &str, value: T) -> Result<(), String> {
    match member.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{key} is a duplicate key")),
    }
}

/// Deserializes a member of a JSON object. Returns the default value if the member is missing or `null`, as in Go.
fn read_member<'a, T: Default + Deserialize<'a>>(member: Raw<'a>, name: &str) -> Result<T, String> {
    let read = member.map(serde_json::from_str::<Option<T>>).transpose();
    read.map(|value| value.flatten().unwrap_or_default()).map_err(|error| format!("{name}: {error}"))
}

fn text<'a>(member: Raw<'a>, name: &str) -> Result<Cow<'a, str>, String> {
    if let Some(plain) = member.and_then(|member| checked::plain_string(member.strip_prefix('"')?)) {
        return Ok(Cow::Borrowed(plain));
    }
    read_member::<Text<'_>>(member, name).map(|text| text.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_uid_in_any_valid_json() {
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
    fn reports_reviews_without_uid() {
        for body in ["", "{", "[]", "null", r#"{"request":{"uid":7}}"#, r#"{"request":{"uid":""}}"#] {
            assert!(matches!(read(body.as_bytes()), Err(Unreadable::NoUid { .. })), "{body}");
        }
    }

    #[test]
    fn keeps_the_uid_of_bodies_that_are_not_utf8() {
        let body = b"{\"request\":{\"uid\":\"u1\",\"name\":\"\xff\"}}";
        assert!(matches!(read(body), Err(Unreadable::WithUid { .. })));
    }
}
