//! A fake OCI registry. Tests use it for slow responses, wrong content, redirects, and bearer tokens. It records each
//! request with its credentials.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Response, StatusCode, header};
use portcullis::oci::digest;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::push::{Artifact, Packing};

/// A recorded request: the path with the query, and the `Authorization` header.
pub type RecordedRequest = (String, Option<String>);
type ResponseFuture = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// A fake registry that runs in the test process.
pub struct FakeRegistry {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl FakeRegistry {
    /// Starts a fake registry. It calls `answer` with the path and the `Authorization` header of each request, and
    /// sends the returned response.
    pub async fn start(
        answer: impl Fn(String, Option<String>) -> ResponseFuture + Clone + Send + Sync + 'static,
    ) -> Self {
        let requests: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let recorded = requests.clone();
        let router = Router::new().fallback(move |request: Request| {
            let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            let authorization = request.headers().get(header::AUTHORIZATION);
            let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
            recorded.lock().unwrap().push((path.clone(), authorization.clone()));
            answer(path, authorization)
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, requests }
    }

    /// Returns all requests that the registry has received so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// The content of a fake registry: response bodies by path.
#[derive(Clone, Default)]
pub struct Content(Arc<Mutex<HashMap<String, Vec<u8>>>>);

impl Content {
    /// Adds a component version to the repository `component-descriptors/<component name>`.
    pub fn add(&self, descriptor: &Value) {
        let component = &descriptor["component"];
        let (name, version) = (component["name"].as_str().unwrap(), component["version"].as_str().unwrap());
        let artifact = Artifact::of(descriptor, Packing::Archive);
        let base = format!("/v2/component-descriptors/{name}");
        let mut content = self.0.lock().unwrap();
        for blob in artifact.blobs {
            content.insert(format!("{base}/blobs/{}", digest::of(&blob)), blob);
        }
        content.insert(format!("{base}/manifests/{version}"), artifact.manifest);
    }

    /// Replaces the content of each path for which `which` returns true with `with`.
    pub fn replace(&self, which: impl Fn(&str) -> bool, with: &[u8]) {
        self.0
            .lock()
            .unwrap()
            .iter_mut()
            .filter(|(path, _)| which(path))
            .for_each(|(_, content)| *content = with.to_vec());
    }

    /// Returns the response to a request for this path.
    pub fn answer(&self, path: &str) -> Response<Body> {
        match self.0.lock().unwrap().get(path) {
            Some(content) => respond(StatusCode::OK, &[], content.clone()),
            None => respond(StatusCode::NOT_FOUND, &[], b"{}".to_vec()),
        }
    }
}

pub fn respond(status: StatusCode, headers: &[(&str, &str)], body: Vec<u8>) -> Response<Body> {
    let response = Response::builder().status(status);
    let response = headers.iter().fold(response, |response, (name, value)| response.header(*name, *value));
    response.body(Body::from(body)).unwrap()
}

/// Returns a future that resolves to the response immediately.
pub fn ready_response(response: Response<Body>) -> ResponseFuture {
    Box::pin(std::future::ready(response))
}
