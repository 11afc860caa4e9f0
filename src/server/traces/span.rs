//! Records the attributes of a span. The attributes contain neither the contents of objects nor the name of the user.

use axum::http::{HeaderMap, StatusCode};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};

use super::{Traces, parent};
use crate::admission::{Finding, Phase, Refusal, Request, Verdict};
use crate::server::log::RULES;

/// Maximum length of an attribute value, in bytes. Longer values are truncated. The API server limits the names of most
/// objects to this length, but other callers of the webhook may send longer names.
const MAX_TEXT_LENGTH: usize = 253;

/// The span of a webhook call that is in progress. Clones share the span. The span ends with
/// [`answered`](Self::answered), or when the last clone is dropped because the call was cancelled.
#[derive(Debug, Clone)]
pub(in crate::server) struct Span(Context);

impl Traces {
    /// Starts the span of a webhook call. Returns `None` if the request headers contain no sampled span of the API
    /// server.
    pub(in crate::server) fn span(&self, phase: Phase, headers: &HeaderMap) -> Option<Span> {
        let parent = Context::new().with_remote_span_context(parent::sampled(headers)?);
        let (name, path) = match phase {
            Phase::Validate => ("POST /validate", "/validate"),
            Phase::Mutate => ("POST /mutate", "/mutate"),
        };
        let span = self.tracer.span_builder(name).with_kind(SpanKind::Server).with_attributes([
            KeyValue::new("http.request.method", "POST"),
            KeyValue::new("http.route", path),
            KeyValue::new("url.path", path),
            KeyValue::new("url.scheme", "https"),
            KeyValue::new("portcullis.phase", phase.as_str()),
        ]);
        let span = span.start_with_context(&self.tracer, &parent);
        Some(Span(parent.with_span(span)))
    }
}

impl Span {
    /// Records the decision `deny` in the span, because the AdmissionReview could not be parsed. `shadow` is also
    /// recorded. It is true in shadow mode, in which every request is admitted regardless of the decision.
    pub(in crate::server) fn unread(&self, shadow: bool) {
        self.note("portcullis.decision", "deny");
        self.note("portcullis.shadow", shadow);
        self.failed("unreadable");
    }

    /// Sets the attributes of the span for a request that no rule matches.
    pub(in crate::server) fn unhandled(&self, request: &Request<'_>) {
        self.about(request);
        self.note("portcullis.decision", "unhandled");
    }

    /// Records a decision in the span. `shadow` is true in shadow mode, in which every request is admitted regardless
    /// of the decision.
    pub(in crate::server) fn decided(&self, request: &Request<'_>, verdict: &Verdict, shadow: bool) {
        self.about(request);
        self.note("portcullis.decision", verdict.outcome().as_str());
        self.note("portcullis.shadow", shadow);
        self.note("portcullis.findings", i64::try_from(verdict.findings.len()).unwrap_or(i64::MAX));
        if let Some(highest) = verdict.findings.iter().map(|finding| finding.level).max() {
            self.note("portcullis.level", highest.as_str());
            self.note("portcullis.rules", rules(&verdict.findings));
        }
        match &verdict.refusal {
            Some(Refusal::Unreadable(_)) => self.failed("unreadable"),
            Some(Refusal::Undecided(_)) => self.failed("undecided"),
            None => {}
        }
    }

    /// Records the HTTP status of the response and ends the span. Marks the span as failed if the status is not 200,
    /// because the API server then treats the call as failed.
    pub(in crate::server) fn answered(&self, status: StatusCode) {
        self.note("http.response.status_code", i64::from(status.as_u16()));
        if status == StatusCode::TOO_MANY_REQUESTS {
            self.note("portcullis.decision", "shed");
        }
        if status != StatusCode::OK {
            self.failed(status.as_str().to_owned());
        }
        self.0.span().end();
    }

    fn about(&self, request: &Request<'_>) {
        self.note("portcullis.uid", text(&request.uid));
        self.note("portcullis.operation", request.operation.as_str());
        self.note("portcullis.resource", resource(request));
        self.note("portcullis.name", text(&request.display_name()));
        self.note("portcullis.dry_run", request.dry_run);
        let others =
            [("portcullis.subresource", &request.resource.subresource), ("portcullis.namespace", &request.namespace)];
        for (key, value) in others.into_iter().filter(|(_, value)| !value.is_empty()) {
            self.note(key, text(value));
        }
    }

    /// Marks the span as failed. `kind` is the type of the failure, such as `unreadable` or an HTTP status. The full
    /// error message is not recorded, because it may contain data of an object.
    fn failed(&self, kind: impl Into<Value>) {
        self.note("error.type", kind);
        self.0.span().set_status(Status::error(""));
    }

    fn note(&self, key: &'static str, value: impl Into<Value>) {
        self.0.span().set_attribute(KeyValue::new(key, value));
    }
}

/// Returns the resource as kubectl writes it, such as `installations.landscaper.gardener.cloud`.
fn resource(request: &Request<'_>) -> String {
    let (plural, group) = (&request.resource.plural, &request.resource.group);
    if group.is_empty() { text(plural) } else { text(&format!("{plural}.{group}")) }
}

/// Returns the ids of the rules with findings, without duplicates. Returns no more than [`RULES`] ids.
fn rules(findings: &[Finding]) -> Value {
    let mut ids: Vec<&'static str> = Vec::new();
    for finding in findings {
        if ids.len() < RULES && !ids.contains(&finding.rule) {
            ids.push(finding.rule);
        }
    }
    Value::Array(Array::String(ids.into_iter().map(StringValue::from).collect()))
}

fn text(value: &str) -> String {
    value[..value.floor_char_boundary(MAX_TEXT_LENGTH)].to_owned()
}
