//! `POST /validate` and `POST /mutate`: from a body to an answer.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::FutureExt as _;
use tokio::time::timeout_at;

use super::limits::{Limits, Load};
use super::metrics::{BadRequest, Metrics, Shed};
use super::rejection::{JSON, Rejection};
use super::{Decide, body, deadline, probe, telemetry};
use crate::admission::review::{self, Review};
use crate::admission::{Answer, Phase, Refusal, Request, Verdict};

/// What a call needs.
pub(super) struct Webhook {
    decide: Arc<dyn Decide>,
    limits: Limits,
    load: Load,
    metrics: Arc<Metrics>,
}

impl Webhook {
    pub(super) fn new(decide: Arc<dyn Decide>, limits: Limits, metrics: Arc<Metrics>) -> Self {
        let load = Load::new(&limits);
        Self { decide, limits, load, metrics }
    }

    /// The paths of the port.
    pub(super) fn router(self) -> Router {
        Router::new()
            .route("/validate", post(validate).fallback(other_method))
            .route("/mutate", post(mutate).fallback(other_method))
            .route(probe::PATH, get(async || "ok"))
            .fallback(other_path)
            .with_state(Arc::new(self))
    }

    async fn call(&self, phase: Phase, request: HttpRequest) -> Response {
        let began = Instant::now();
        let (head, mut body) = request.into_parts();
        let _counted = self.metrics.in_flight();
        let deadline = deadline::of(began, head.uri.query());
        match self.answer(phase, &head.headers, &mut body, began, deadline).await {
            Ok(answer) => respond(&answer),
            Err(rejection) => self.reject(rejection, &head.headers, body).await,
        }
    }

    async fn answer(
        &self,
        phase: Phase,
        headers: &HeaderMap,
        body: &mut Body,
        began: Instant,
        deadline: Instant,
    ) -> Result<Answer, Rejection> {
        let _place = self.load.request().ok_or(Rejection::Shed(Shed::InFlight))?;
        json_only(headers)?;
        let body = body::read(body, &self.limits, &self.load).await?;
        self.metrics.read(body.bytes.len());
        match review::read(&body.bytes) {
            Ok(mut review) => {
                review.request.deadline = Some(deadline);
                self.decide(phase, &review, began).await
            }
            Err(unreadable) => {
                let answer = unreadable.answer().ok_or_else(|| Rejection::NoUid(unreadable.to_string()))?;
                self.metrics.bad_request(BadRequest::Unreadable);
                tracing::warn!(error = %unreadable, "a review is refused unread");
                Ok(answer)
            }
        }
    }

    async fn decide(&self, phase: Phase, review: &Review<'_>, began: Instant) -> Result<Answer, Rejection> {
        let request = &review.request;
        let verdict = AssertUnwindSafe(self.verdict(phase, request, began)).catch_unwind().await;
        let verdict = verdict.map_err(|panic| {
            tracing::error!(uid = &*request.uid, panic = panic_text(&*panic), "a decision panicked");
            Rejection::Panicked
        })?;
        match &verdict {
            None => {
                self.metrics.unhandled(phase);
                telemetry::unhandled(phase, request);
            }
            Some(verdict) => {
                let took = began.elapsed();
                self.metrics.decided(phase, request.operation, verdict, took);
                telemetry::decision(phase, request, verdict, took);
            }
        }
        Ok(verdict.unwrap_or_default().answer(review.version, phase, request))
    }

    /// The verdict, in time; `None` where nothing looks at such a request.
    async fn verdict(&self, phase: Phase, request: &Request<'_>, began: Instant) -> Option<Verdict> {
        if !self.decide.handles(phase, request) {
            return None;
        }
        let decided = self.decide.decide(phase, request);
        let Some(deadline) = request.deadline else { return Some(decided.await) };
        let verdict = timeout_at(deadline.into(), decided).await;
        Some(verdict.unwrap_or_else(|_| {
            self.metrics.undecided(phase);
            let limit = deadline.saturating_duration_since(began);
            let text = format!("portcullis reached no decision within {limit:?}; try again");
            Verdict::refused(Refusal::Undecided(text))
        }))
    }

    /// Refuses a call over HTTP. The body is read first, unless the client waits with it for a sign to go on.
    async fn reject(&self, rejection: Rejection, headers: &HeaderMap, body: Body) -> Response {
        rejection.count(&self.metrics);
        tracing::debug!(%rejection, "a call gets no decision");
        if rejection.leaves_body() && !headers.contains_key(header::EXPECT) {
            body::drain(body, &self.limits).await;
        }
        rejection.into_response()
    }
}

async fn validate(State(webhook): State<Arc<Webhook>>, request: HttpRequest) -> Response {
    webhook.call(Phase::Validate, request).await
}

async fn mutate(State(webhook): State<Arc<Webhook>>, request: HttpRequest) -> Response {
    webhook.call(Phase::Mutate, request).await
}

async fn other_method(State(webhook): State<Arc<Webhook>>, request: HttpRequest) -> Response {
    let rejection = Rejection::Method(request.method().to_string());
    let (head, body) = request.into_parts();
    webhook.reject(rejection, &head.headers, body).await
}

async fn other_path(State(webhook): State<Arc<Webhook>>, request: HttpRequest) -> Response {
    let rejection = Rejection::Path(request.uri().path().to_owned());
    let (head, body) = request.into_parts();
    webhook.reject(rejection, &head.headers, body).await
}

/// The API server sends `application/json`; parameters are no matter.
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
