//! Handles calls of `POST /validate` and `POST /mutate`, from reading the request body to sending the response.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;

use super::body::Buffered;
use super::limits::{Limits, Load};
use super::metrics::{BadRequest, Metrics, Shed};
use super::rejection::{CLOSE, JSON, Rejection};
use super::traces::{Span, Traces};
use super::{Decide, body, deadline, log, probe};
use crate::admission::review::{self, Review};
use crate::admission::{Answer, Outcome, Phase, Refusal, Request, Unreadable, Verdict};

/// A webhook call by the API server.
struct Call {
    phase: Phase,
    began: Instant,
    /// The time by which the call must be answered.
    deadline: Instant,
    /// The span of the call, if the API server samples its trace.
    span: Option<Span>,
}

impl Call {
    fn traced(&self, note: impl FnOnce(&Span)) {
        if let Some(span) = &self.span {
            note(span);
        }
    }
}

/// The handler of webhook calls.
pub(super) struct Webhook {
    decide: Arc<dyn Decide>,
    limits: Limits,
    load: Load,
    /// Whether decisions are only recorded, and every request is admitted unchanged.
    shadow: bool,
    traces: Option<Traces>,
    metrics: Arc<Metrics>,
}

impl Webhook {
    pub(super) fn new(decide: Arc<dyn Decide>, limits: Limits, shadow: bool, metrics: Arc<Metrics>) -> Self {
        let load = Load::new(&limits);
        Self { decide, limits, load, shadow, traces: None, metrics }
    }

    /// Sets the exporter for the spans of webhook calls; `None` disables spans. Only calls whose trace the API server
    /// samples have a span.
    pub(super) fn traced(self, traces: Option<Traces>) -> Self {
        Self { traces, ..self }
    }

    /// Updates the gauges of the current load. Called only when metrics are scraped.
    pub(super) fn measure(&self) {
        let (waiting, bytes) = self.load.current();
        self.metrics.set_load(waiting, bytes);
    }

    /// Dispatches a request by its path. Does not use a router, because the router's allocations would cost as much as
    /// parsing the review.
    pub(super) async fn respond(self: &Arc<Self>, request: HttpRequest) -> Response {
        match (request.uri().path(), request.method()) {
            ("/validate", &Method::POST) => self.call(Phase::Validate, request).await,
            ("/mutate", &Method::POST) => self.call(Phase::Mutate, request).await,
            ("/validate" | "/mutate", other) => {
                let rejection = Rejection::Method(other.to_string());
                self.reject_request(rejection, request).await
            }
            (probe::PATH, &Method::GET) => "ok".into_response(),
            (other, _) => {
                let rejection = Rejection::Path(other.to_owned());
                self.reject_request(rejection, request).await
            }
        }
    }

    async fn reject_request(&self, rejection: Rejection, request: HttpRequest) -> Response {
        let (head, body) = request.into_parts();
        self.reject(rejection, &head.headers, body).await
    }

    async fn call(self: &Arc<Self>, phase: Phase, request: HttpRequest) -> Response {
        let began = Instant::now();
        let (head, mut body) = request.into_parts();
        let _counted = self.metrics.in_flight();
        let span = self.traces.as_ref().and_then(|traces| traces.span(phase, &head.headers));
        let call = Call { phase, began, deadline: deadline::of(began, head.uri.query()), span: span.clone() };
        let response = match self.answer(call, &head.headers, &mut body).await {
            Ok(answer) => respond(&answer),
            Err(rejection) => self.reject(rejection, &head.headers, body).await,
        };
        if let Some(span) = span {
            span.answered(response.status());
        }
        response
    }

    async fn answer(self: &Arc<Self>, call: Call, headers: &HeaderMap, body: &mut Body) -> Result<Answer, Rejection> {
        let _in_flight = self.load.request().ok_or(Rejection::Shed(Shed::InFlight))?;
        json_only(headers)?;
        let body = body::read(body, &self.limits, &self.load).await?;
        self.metrics.read(body.bytes.len());
        if body.bytes.len() >= self.limits.large {
            return self.answer_large(call, body).await;
        }
        let answered = self.load.decisions.run(self.review(&call, &body.bytes)).await;
        answered.ok_or(Rejection::Shed(Shed::Waiting))?
    }

    /// Answers a webhook call with a large body on one of tokio's threads for blocking work. A call with a large body
    /// can take as long as a hundred calls with small bodies. On a thread of the async runtime, it would delay other
    /// calls for this time.
    async fn answer_large(self: &Arc<Self>, call: Call, body: Buffered) -> Result<Answer, Rejection> {
        let permit = self.load.large().await.ok_or(Rejection::Shed(Shed::Large))?;
        let (webhook, runtime) = (Arc::clone(self), Handle::current());
        let work = move || {
            let _permit = permit;
            runtime.block_on(webhook.review(&call, &body.bytes))
        };
        // A panic of a decision is caught in `decide`; any other panic fails the call as well.
        spawn_blocking(work).await.unwrap_or(Err(Rejection::Panicked))
    }

    async fn review(&self, call: &Call, body: &[u8]) -> Result<Answer, Rejection> {
        match review::read(body) {
            Ok(mut review) => {
                review.request.deadline = Some(call.deadline);
                self.decide(call, &review).await
            }
            Err(unreadable) => {
                let answer = self.unreadable(&unreadable)?;
                call.traced(|span| span.unread(self.shadow));
                Ok(answer)
            }
        }
    }

    fn unreadable(&self, unreadable: &Unreadable) -> Result<Answer, Rejection> {
        let answer = if self.shadow { unreadable.shadow_answer() } else { unreadable.answer() };
        let answer = answer.ok_or_else(|| Rejection::NoUid(unreadable.to_string()))?;
        self.metrics.bad_request(BadRequest::Unreadable);
        if self.shadow {
            self.metrics.decisions.shadowed(Outcome::Deny);
            tracing::warn!(error = %unreadable, shadow = "deny", "admitted an unreadable review (shadow mode)");
        } else {
            tracing::warn!(error = %unreadable, "denied an unreadable review");
        }
        Ok(answer)
    }

    async fn decide(&self, call: &Call, review: &Review<'_>) -> Result<Answer, Rejection> {
        let (&Call { phase, began, .. }, request) = (call, &review.request);
        let verdict = AssertUnwindSafe(self.verdict(phase, request, began)).catch_unwind().await;
        let verdict = verdict.or_else(|panic| {
            tracing::error!(uid = &*request.uid, panic = panic_text(&*panic), "a decision panicked");
            self.panicked()
        })?;
        let Some(verdict) = verdict else {
            self.metrics.decisions.unhandled(phase);
            log::unhandled(phase, request);
            call.traced(|span| span.unhandled(request));
            return Ok(Verdict::default().answer(review.version, phase, request));
        };
        let (took, would) = (began.elapsed(), self.shadow.then(|| verdict.outcome()));
        would.into_iter().for_each(|would| self.metrics.decisions.shadowed(would));
        let allowed = self.shadow || verdict.is_allowed();
        self.metrics.decisions.made(phase, request.operation, &verdict, allowed, took);
        log::decision(phase, request, &verdict, would, took);
        call.traced(|span| span.decided(request, &verdict, self.shadow));
        Ok(match would {
            Some(_) => verdict.shadow_answer(review.version, &request.uid),
            None => verdict.answer(review.version, phase, request),
        })
    }

    /// Returns the result for a request if a panic occurred during the decision. Normally, this is an HTTP error. In
    /// shadow mode, it is a denial that is only recorded: the response admits the request.
    fn panicked(&self) -> Result<Option<Verdict>, Rejection> {
        if !self.shadow {
            return Err(Rejection::Panicked);
        }
        self.metrics.panicked();
        Ok(Some(Verdict::refused(Refusal::Undecided(Rejection::Panicked.to_string()))))
    }

    /// Returns the decision about a request, or a denial if there is no decision before the deadline. `None` if no rule
    /// matches the request.
    async fn verdict(&self, phase: Phase, request: &Request<'_>, began: Instant) -> Option<Verdict> {
        let decided = self.decide.decision(phase, request)?;
        let Some(deadline) = request.deadline else { return Some(decided.await) };
        let verdict = timeout_at(deadline.into(), decided).await;
        Some(verdict.unwrap_or_else(|_| {
            self.metrics.decisions.undecided(phase);
            let limit = deadline.saturating_duration_since(began);
            let text = format!("portcullis reached no decision within {limit:?}; try again");
            Verdict::refused(Refusal::Undecided(text))
        }))
    }

    /// Answers a webhook call with an HTTP error. Reads the rest of the request body first, except in two cases:
    /// reading has already timed out or failed, or the client waits for `100 Continue`. Some 429 responses also close
    /// the connection, up to a limited number per second. The client then reconnects, possibly to another replica.
    async fn reject(&self, rejection: Rejection, headers: &HeaderMap, body: Body) -> Response {
        rejection.count(&self.metrics);
        tracing::debug!(%rejection, "rejected a call");
        if rejection.leaves_body() && !headers.contains_key(header::EXPECT) {
            body::drain(body, &self.limits).await;
        }
        let closes = matches!(rejection, Rejection::Shed(_)) && self.load.may_close();
        let mut response = rejection.into_response();
        if closes {
            response.headers_mut().insert(header::CONNECTION, CLOSE);
        }
        response
    }
}

/// Rejects content types other than `application/json`, which the API server sends. Ignores parameters of the content
/// type, such as `charset`.
fn json_only(headers: &HeaderMap) -> Result<(), Rejection> {
    let value = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        return Ok(());
    }
    let text = String::from_utf8_lossy(value);
    Err(Rejection::ContentType(if text.is_empty() { "missing".to_owned() } else { text.into() }))
}

fn respond(answer: &Answer) -> Response {
    let mut response = Body::from(answer.to_json()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}
