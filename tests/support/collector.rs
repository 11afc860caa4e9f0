//! A trace collector for tests. It accepts OTLP over HTTP, which Portcullis uses, and OTLP over gRPC, which the API
//! server uses.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::http::{HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::net::TcpStream;
use tokio::runtime::Builder;

/// Length of the prefix of a gRPC message, in bytes: a flag, and the length of the message.
const PREFIX: usize = 5;

/// A span that the collector has received, with its attributes as text.
#[derive(Debug, Clone)]
pub struct ReceivedSpan {
    pub span: Span,
    pub attributes: HashMap<String, String>,
    /// The attributes of the resource that sent the span, such as `service.name`.
    pub resource: HashMap<String, String>,
}

impl ReceivedSpan {
    pub fn trace(&self) -> String {
        hex(&self.span.trace_id)
    }

    pub fn id(&self) -> String {
        hex(&self.span.span_id)
    }

    pub fn parent(&self) -> String {
        hex(&self.span.parent_span_id)
    }

    /// Returns the value of an attribute. Returns an empty text if the span does not have the attribute.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

#[derive(Default)]
struct State {
    spans: Mutex<Vec<ReceivedSpan>>,
    requests: AtomicUsize,
    authorization: Mutex<Option<HeaderValue>>,
    is_unresponsive: AtomicBool,
}

/// A collector of traces that runs until the test process ends.
pub struct Collector {
    /// The address for OTLP over HTTP.
    pub http: SocketAddr,
    /// The address for OTLP over gRPC.
    pub grpc: SocketAddr,
    state: Arc<State>,
}

impl Collector {
    /// Starts a collector on a new thread.
    pub fn start() -> Self {
        let (http_listener, grpc_listener) = (listener(), listener());
        let (http, grpc) = (http_listener.local_addr().unwrap(), grpc_listener.local_addr().unwrap());
        let state: Arc<State> = Arc::default();
        let shared_state = Arc::clone(&state);
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::join!(
                    accept(http_listener, &shared_state, serve_http),
                    accept(grpc_listener, &shared_state, serve_grpc)
                );
            });
        });
        Self { http, grpc, state }
    }

    /// Returns the URL for OTLP over HTTP.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.http)
    }

    /// Makes the collector leave all further requests over HTTP unanswered. The collector still accepts the requests.
    pub fn stop_answering(&self) {
        self.state.is_unresponsive.store(true, Ordering::SeqCst);
    }

    /// Returns the header `Authorization` of the last request over HTTP.
    pub fn authorization(&self) -> Option<HeaderValue> {
        self.state.authorization.lock().unwrap().clone()
    }

    /// Returns the number of requests over HTTP.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    pub fn spans(&self) -> Vec<ReceivedSpan> {
        self.state.spans.lock().unwrap().clone()
    }

    /// Returns the spans with this trace ID.
    pub fn trace(&self, id: &str) -> Vec<ReceivedSpan> {
        self.spans().into_iter().filter(|received| received.trace() == id).collect()
    }
}

fn listener() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

async fn accept<F>(listener: TcpListener, state: &Arc<State>, serve: impl Fn(TcpStream, Arc<State>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(state)));
    }
}

async fn serve_http(stream: TcpStream, state: Arc<State>) {
    let answer = service_fn(|request| answer_http(request, &state));
    // An error means that the client closed its connection.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}

async fn answer_http(request: Request<Incoming>, state: &State) -> Result<Response<Full<Bytes>>, Infallible> {
    state.requests.fetch_add(1, Ordering::SeqCst);
    if state.is_unresponsive.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    let (head, body) = request.into_parts();
    *state.authorization.lock().unwrap() = head.headers.get(AUTHORIZATION).cloned();
    let is_protobuf = head.headers.get(CONTENT_TYPE).is_some_and(|value| value == "application/x-protobuf");
    let status = match (head.uri.path() == "/v1/traces", is_protobuf) {
        (true, true) => StatusCode::OK,
        (true, false) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        (false, _) => StatusCode::NOT_FOUND,
    };
    if status == StatusCode::OK {
        state.record(&body.collect().await.unwrap().to_bytes());
    }
    Ok(Response::builder().status(status).body(Full::default()).unwrap())
}

async fn serve_grpc(stream: TcpStream, state: Arc<State>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let mut body = request.into_body();
            let mut message = BytesMut::new();
            while let Some(Ok(part)) = body.data().await {
                let _ = body.flow_control().release_capacity(part.len());
                message.put(part);
            }
            state.record(&message[PREFIX..]);
            let head = Response::builder().header(CONTENT_TYPE, "application/grpc").body(()).unwrap();
            let mut answer = respond.send_response(head, false).unwrap();
            let message = ExportTraceServiceResponse::default().encode_to_vec();
            let mut framed = BytesMut::from(&[0][..]);
            framed.put_u32(u32::try_from(message.len()).unwrap());
            framed.put(&*message);
            answer.send_data(framed.freeze(), false).unwrap();
            let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from_static("0"))]);
            answer.send_trailers(trailers).unwrap();
        });
    }
}

impl State {
    fn record(&self, message: &[u8]) {
        let request = ExportTraceServiceRequest::decode(message).expect("the message is an ExportTraceServiceRequest");
        for resource_spans in request.resource_spans {
            let resource = attributes_as_text(&resource_spans.resource.unwrap_or_default().attributes);
            let spans = resource_spans.scope_spans.into_iter().flat_map(|scope_spans| scope_spans.spans);
            let received = spans.map(|span| ReceivedSpan {
                attributes: attributes_as_text(&span.attributes),
                resource: resource.clone(),
                span,
            });
            self.spans.lock().unwrap().extend(received);
        }
    }
}

fn attributes_as_text(attributes: &[KeyValue]) -> HashMap<String, String> {
    attributes.iter().map(|attribute| (attribute.key.clone(), value_as_text(attribute.value.as_ref()))).collect()
}

fn value_as_text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::BoolValue(value)) => value.to_string(),
        Some(any_value::Value::IntValue(value)) => value.to_string(),
        Some(any_value::Value::ArrayValue(array)) => {
            array.values.iter().map(|value| value_as_text(Some(value))).collect::<Vec<_>>().join(",")
        }
        other => format!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
