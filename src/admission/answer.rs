//! The response to an AdmissionReview, and its JSON representation.

use std::collections::BTreeMap;

use base64_simd::STANDARD;
use serde::Serialize;

use super::review::Version;

/// The response to an AdmissionReview: the content of its field `response`.
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
    /// The JSON Patch (RFC 6902) as JSON text; `None` if the response does not change the object.
    #[serde(skip)]
    pub(super) patch: Option<Vec<u8>>,
}

/// `response.status`: why a request is denied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Status {
    pub status: &'static str,
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

/// `response.status.details`: the findings in a form that clients can parse.
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

/// An element of `response.status.details.causes`: one finding that denies the request.
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
    /// Returns whether the response admits the request.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Returns an AdmissionReview that contains this answer, as JSON. The review does not contain the request, because
    /// that would double the traffic.
    pub fn to_json(&self) -> Vec<u8> {
        let wire = WireAnswer { kind: "AdmissionReview", api_version: self.version, response: self };
        let mut json = serde_json::to_vec(&wire).unwrap_or_default();
        if let Some(patch) = &self.patch {
            add_patch(&mut json, patch);
        }
        json
    }
}

/// Appends `patch`, encoded in Base64, as the last member of `response` in `json`.
///
/// Does not use a serializer, because Base64 needs no escaping. A serializer would spend more time on the search for
/// characters to escape than on the encoding.
fn add_patch(json: &mut Vec<u8>, patch: &[u8]) {
    json.truncate(json.len().saturating_sub("}}".len()));
    json.extend_from_slice(br#","patchType":"JSONPatch","patch":""#);
    STANDARD.encode_append(patch, json);
    json.extend_from_slice(b"\"}}");
}
