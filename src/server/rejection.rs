//! HTTP error responses to webhook calls that are rejected without a decision, for example because of an invalid body
//! or too much load. The API server treats each of them as a failed call (C8 in `docs/admission-contract.md`).

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::metrics::{BadRequest, Metrics, Shed};

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// The reason why a webhook call is answered with an HTTP error instead of an AdmissionReview. Examples are an unknown
/// path, an oversized body and overload. The JSON body of the error response contains the message in the field `error`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Rejection {
    #[error("path {0} does not exist; use POST /validate or POST /mutate")]
    Path(String),
    #[error("method {0} is not allowed; use POST")]
    Method(String),
    #[error("Content-Type is {0}; use application/json")]
    ContentType(String),
    #[error("the body is larger than the limit of {0} bytes")]
    TooLarge(usize),
    #[error("the body did not arrive within {0:?}")]
    SlowBody(Duration),
    #[error("the body is incomplete: {0}")]
    BrokenBody(String),
    #[error("{0}")]
    NoUid(String),
    #[error("too many {} at once; try again after a second", .0.as_str())]
    Shed(Shed),
    #[error("the decision failed inside portcullis; its log has the reason")]
    Panicked,
}

impl Rejection {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Path(_) => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::SlowBody(_) => StatusCode::REQUEST_TIMEOUT,
            Self::BrokenBody(_) | Self::NoUid(_) => StatusCode::BAD_REQUEST,
            Self::Shed(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns whether the connection must be closed, because the client may still send the rest of the body on it.
    fn closes(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::SlowBody(_) | Self::BrokenBody(_))
    }

    /// Returns whether the server must read the rest of the request body before it answers. Returns false if reading
    /// the body has already timed out or failed.
    pub(super) fn leaves_body(&self) -> bool {
        !matches!(self, Self::SlowBody(_) | Self::BrokenBody(_))
    }

    pub(super) fn count(&self, metrics: &Metrics) {
        match self {
            Self::Path(_) => metrics.bad_request(BadRequest::Path),
            Self::Method(_) => metrics.bad_request(BadRequest::Method),
            Self::ContentType(_) => metrics.bad_request(BadRequest::ContentType),
            Self::TooLarge(_) => metrics.bad_request(BadRequest::TooLarge),
            Self::SlowBody(_) => metrics.bad_request(BadRequest::SlowBody),
            Self::BrokenBody(_) => metrics.bad_request(BadRequest::BrokenBody),
            Self::NoUid(_) => metrics.bad_request(BadRequest::NoUid),
            Self::Shed(reason) => metrics.shed(*reason),
            Self::Panicked => metrics.panicked(),
        }
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.to_string() }).to_string();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, JSON);
        if self.closes() {
            headers.insert(header::CONNECTION, CLOSE);
        }
        if matches!(self, Self::Shed(_)) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if matches!(self, Self::Method(_)) {
            headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}
