//! From ended spans to a collector: OTLP over HTTP, in batches, beside everything else.
//!
//! Spans wait in a queue; a thread of the SDK's takes them out and hands a batch at a time to [`Collector`], whose
//! requests run on the server's runtime.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::http::{Request, Response, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::TracesError;
use crate::https;

/// A second's worth of calls where the API server samples all of them, and 2 to 4 MiB of memory. Beyond that the
/// collector does not keep up, and spans are dropped.
const QUEUE: usize = 1024;
/// Spans in one request: some hundred KiB.
const BATCH: usize = 256;
/// How late a span may be: a person who looks for one finds it.
const DELAY: Duration = Duration::from_secs(1);
/// A collector beside the cluster that takes longer for a batch does not keep up.
const EXPORT: Duration = Duration::from_secs(5);
/// Connecting is fast or does not happen.
const CONNECT: Duration = Duration::from_secs(2);
/// What a collector says of a batch is a few words.
const LARGEST_ANSWER: usize = 64 << 10;
/// How often it is told that spans do not arrive.
const SAY_AGAIN: Duration = Duration::from_secs(60);
/// How long the end of the process waits for the last spans. With the lame duck, the draining and the last lines of the
/// log it is below the 30 s after which a pod is killed.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// Sends the spans of calls to a collector. Cloned, it is the same.
#[derive(Debug, Clone)]
pub struct Traces {
    provider: SdkTracerProvider,
    pub(super) tracer: SdkTracer,
}

impl Traces {
    /// Sends spans to the collector at `endpoint`, such as `http://collector:4318`, from now on. Its requests are made on
    /// the present tokio runtime.
    ///
    /// As OpenTelemetry has it, `OTEL_EXPORTER_OTLP_HEADERS` may name headers for the collector, and
    /// `OTEL_RESOURCE_ATTRIBUTES` what every span says of where it comes from.
    ///
    /// # Errors
    /// When the address is none, or there is no TLS to it.
    pub fn to(endpoint: &str) -> Result<Self, TracesError> {
        let endpoint = signal(endpoint)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector::new(&endpoint)?)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .with_timeout(EXPORT)
            .build()
            .map_err(|error| TracesError::Exporter(Box::new(error)))?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(DELAY)
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOff)))
            .with_resource(resource())
            .build();
        let tracer = provider.tracer("portcullis");
        Ok(Self { provider, tracer })
    }

    /// Sends what is left, and waits for that as long as `LAST_SPANS` at most. There are no spans after it.
    pub async fn finish(&self) {
        let provider = self.provider.clone();
        let ended = spawn_blocking(move || provider.shutdown_with_timeout(LAST_SPANS)).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "the last spans may not have reached the collector");
        }
    }
}

/// Where a collector takes spans, which the protocol puts below the address that people write.
fn signal(endpoint: &str) -> Result<String, TracesError> {
    let uri: Option<Uri> = endpoint.parse().ok();
    let is_address = |uri: &Uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.query().is_none()
    };
    uri.filter(is_address).ok_or_else(|| TracesError::Endpoint(endpoint.to_owned()))?;
    Ok(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
}

fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    Resource::builder().with_service_name("portcullis").with_attribute(version).build()
}

/// The collector, as the exporter calls it.
#[derive(Debug)]
struct Collector {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    endpoint: String,
    /// The exporter's own thread has none.
    runtime: Handle,
    said: Mutex<Option<Instant>>,
}

impl Collector {
    fn new(endpoint: &str) -> Result<Self, TracesError> {
        let client = Client::builder(TokioExecutor::new()).build(https::connector(&[], CONNECT)?);
        Ok(Self { client, endpoint: endpoint.to_owned(), runtime: Handle::current(), said: Mutex::default() })
    }

    fn say(&self, why: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_some_and(|said| said.elapsed() < SAY_AGAIN) {
            return;
        }
        *said = Some(Instant::now());
        let endpoint = &*self.endpoint;
        tracing::warn!(
            endpoint,
            why,
            "spans do not reach the collector; decisions go on, and this is said once a minute"
        );
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let exchange = exchange(self.client.clone(), request.map(Full::new));
        let answer = self.runtime.spawn(async move { timeout(EXPORT, exchange).await }).await;
        let answer: Result<_, HttpError> = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(format!("it did not answer within {EXPORT:?}").into()),
            Err(ended) => Err(ended.into()),
        };
        match &answer {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => self.say(&format!("it answered {}", answer.status())),
            Err(error) => self.say(&https::why(&**error as &(dyn Error + 'static))),
        }
        answer
    }
}

async fn exchange(
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, HttpError> {
    let (head, body) = client.request(request).await?.into_parts();
    let body = Limited::new(body, LARGEST_ANSWER).collect().await?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_go_below_the_collectors_address() {
        for (endpoint, signal_of) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("https://collector/", "https://collector/v1/traces"),
            ("http://gateway/otlp", "http://gateway/otlp/v1/traces"),
        ] {
            assert_eq!(signal(endpoint).unwrap(), signal_of);
        }
        for wrong in
            ["", "collector:4318", "/v1/traces", "grpc://collector:4317", "http://", "http://collector/?a=b", "a b"]
        {
            let error = signal(wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("{wrong:?} is no address of a collector")), "{error}");
        }
    }
}
