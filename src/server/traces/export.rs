//! Exports spans to an OpenTelemetry collector over OTLP/HTTP, in batches and in the background.
//!
//! Spans wait in a queue. A thread of the OpenTelemetry SDK passes them in batches to the HTTP client [`Collector`].
//! This client sends its requests on the server's Tokio runtime.

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

/// Maximum number of spans that wait for their export. Each span describes one webhook call. The queue is large enough
/// for about one second at 1000 traced calls per second. If the collector is too slow and the queue is full, further
/// spans are dropped. A full queue needs 2 to 4 MiB of memory.
const QUEUE: usize = 1024;
/// Maximum number of spans in one export request. A request with this many spans has a size of a few hundred KiB.
const BATCH: usize = 256;
/// Interval between two exports of spans. It is short, so that a user finds a span in the collector soon after the
/// webhook call.
const DELAY: Duration = Duration::from_secs(1);
/// Timeout of one export. A collector that takes longer for a batch is too slow for the load.
const EXPORT: Duration = Duration::from_secs(5);
/// Connect timeout for the OTLP collector.
const CONNECT: Duration = Duration::from_secs(2);
/// Maximum size of a collector's response, which usually has a few bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Minimum time between two log records about failed exports of spans. Failures in between are not logged.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum time to wait at shutdown until the remaining spans are exported. The whole shutdown must take less than the
/// 30 s after which a pod is killed. It also includes the lame-duck period, draining of connections and the last log
/// records.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// An exporter that sends the spans of webhook calls to an OpenTelemetry collector. Clones share the exporter.
#[derive(Debug, Clone)]
pub struct Traces {
    provider: SdkTracerProvider,
    pub(super) tracer: SdkTracer,
}

impl Traces {
    /// Returns an exporter to the collector at `endpoint`, such as `http://collector:4318`. Its requests run on the
    /// current tokio runtime.
    ///
    /// The standard variables `OTEL_EXPORTER_OTLP_HEADERS` (headers of requests to the collector) and
    /// `OTEL_RESOURCE_ATTRIBUTES` (attributes of every span) are respected.
    ///
    /// # Errors
    /// If the address or the configuration of the exporter is invalid, or if TLS cannot be configured.
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

    /// Sends the remaining spans to the collector and stops the exporter. Waits no longer than the timeout
    /// `LAST_SPANS`. Spans that end after the exporter has stopped are not sent.
    pub async fn finish(&self) {
        let provider = self.provider.clone();
        let ended = spawn_blocking(move || provider.shutdown_with_timeout(LAST_SPANS)).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "the last spans may not have reached the collector");
        }
    }
}

/// Returns the URL to which spans are sent. As OTLP requires, this is `endpoint` followed by `/v1/traces`. Fails if
/// `endpoint` is not an `http` or `https` URL, or has a query.
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

/// The HTTP client with which the exporter sends spans to the collector.
#[derive(Debug)]
struct Collector {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    endpoint: String,
    /// The server's Tokio runtime, on which requests are sent. The exporter's own thread has no runtime.
    runtime: Handle,
    logged: Mutex<Option<Instant>>,
}

impl Collector {
    fn new(endpoint: &str) -> Result<Self, TracesError> {
        let client = Client::builder(TokioExecutor::new()).build(https::connector(&[], CONNECT)?);
        Ok(Self { client, endpoint: endpoint.to_owned(), runtime: Handle::current(), logged: Mutex::default() })
    }

    fn log_failure(&self, why: &str) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_some_and(|logged| logged.elapsed() < LOG_INTERVAL) {
            return;
        }
        *logged = Some(Instant::now());
        let endpoint = &*self.endpoint;
        tracing::warn!(
            endpoint,
            why,
            "cannot export spans to the collector; decisions are not affected; logged once a minute"
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
            Ok(Err(_)) => Err(format!("no answer within {EXPORT:?}").into()),
            Err(ended) => Err(ended.into()),
        };
        match &answer {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => self.log_failure(&format!("status {}", answer.status())),
            Err(error) => self.log_failure(&https::why(&**error as &(dyn Error + 'static))),
        }
        answer
    }
}

async fn exchange(
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, HttpError> {
    let (head, body) = client.request(request).await?.into_parts();
    let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_the_signal_path_to_the_endpoint() {
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
            assert!(error.contains(&format!("{wrong:?} is not a valid collector address")), "{error}");
        }
    }
}
