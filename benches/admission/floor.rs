//! A minimal server, as the baseline for the benchmark. It uses the same TLS and HTTP libraries as `portcullis serve`,
//! reads the body of a request, and always returns the same answer.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use portcullis::server::{Certificates, Floor, tls};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// The command-line argument with which this executable runs the baseline server.
pub const ARGUMENT: &str = "serve-the-floor";

/// The body of the answer to every request.
pub const ANSWER: &str = concat!(
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","#,
    r#""response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}"#
);

/// Runs the baseline server with the certificate in a folder, until the process is killed.
pub fn run(certs: &Path) {
    tokio::runtime::Runtime::new().unwrap().block_on(serve(certs));
}

async fn serve(certs: &Path) {
    let certificates = Arc::new(Certificates::from_folder(certs).unwrap());
    let acceptor = TlsAcceptor::from(Arc::new(tls::server_config(certificates, Floor::Tls13).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    eprintln!("webhooks=https://{} ", listener.local_addr().unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(serve_connection(acceptor.clone(), stream));
    }
}

async fn serve_connection(acceptor: TlsAcceptor, stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let stream = acceptor.accept(stream).await.unwrap();
    // An error means that the client closed the connection.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    assert!(!body.is_empty());
    let mut response = Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response)
}
