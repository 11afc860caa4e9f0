//! Fetches the artifact of a Flux source. The URL of an artifact is usually reachable only inside the cluster, so the
//! service proxy of the API server is tried first.

use http_body_util::{BodyExt as _, Limited};
use hyper::{Request, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use crate::artifacts::{self, Limits, Service};
use crate::kustomize::delivery::Artifact;
use crate::kustomize::tree::Tree;

/// Maximum size of the body of an error response, in bytes. Error messages of the API server are shorter.
const MAX_ERROR: usize = 16 << 10;
/// Name of the service proxy in error messages.
const PROXY: &str = "the service proxy of the API server";

/// Fetches an artifact through the API server. If this fails, fetches the artifact directly from its URL, and also
/// returns a message that says why the API server could not be used.
///
/// # Errors
///
/// Fails if both ways fail. The error message has both reasons.
pub(super) async fn fetch(client: &Client, artifact: &Artifact) -> Result<(Tree, Option<String>), String> {
    let limits = Limits::default();
    let refused = match Service::of(&artifact.url) {
        Some(service) => match through_proxy(client, &service, artifact, &limits).await {
            Ok(tree) => return Ok((tree, None)),
            Err(why) => why,
        },
        None => "its URL does not refer to a Service of the cluster".to_owned(),
    };
    let Artifact { url, .. } = artifact;
    match artifacts::fetch_once(artifact, &limits).await {
        Ok(tree) => Ok((tree, Some(format!("the artifact was fetched directly from {url}: {refused}")))),
        Err(direct) => Err(format!(
            "{refused}; fetching it directly from {url} failed too: {direct}; use --source DIR for local files"
        )),
    }
}

/// Fetches an artifact through the service proxy, with the credentials of the kubeconfig.
async fn through_proxy(
    client: &Client,
    service: &Service,
    artifact: &Artifact,
    limits: &Limits,
) -> Result<Tree, String> {
    let request = Request::get(service.proxy_path()).body(Body::empty()).map_err(|error| error.to_string())?;
    let failed = |error: kube::Error| format!("{PROXY} does not answer: {error}");
    let answer = tokio::time::timeout(limits.fetch, client.send(request)).await;
    let answer = answer.map_err(|_| format!("{PROXY} did not answer within {:?}", limits.fetch))?.map_err(failed)?;
    let (status, body) = (answer.status(), answer.into_body());
    if status != StatusCode::OK {
        return Err(refusal(status, message(body).await, service));
    }
    artifacts::receive(artifact, PROXY, body, limits).await.map_err(|error| error.to_string())
}

/// Returns the error message in `body` if `body` is a Kubernetes `Status` object. Any other body comes from the Service
/// to which the API server forwarded the request.
async fn message(body: Body) -> Option<String> {
    let body = Limited::new(body, MAX_ERROR).collect().await.ok()?.to_bytes();
    let status: Value = serde_json::from_slice(&body).ok()?;
    let message = status.get("message")?.as_str()?;
    status.get("kind").is_some_and(|kind| kind == "Status").then(|| message.to_owned())
}

/// Returns an error message that says why the service proxy did not send the artifact.
fn refusal(status: StatusCode, message: Option<String>, service: &Service) -> String {
    let Service { namespace, name, .. } = service;
    match message {
        Some(message) if status == StatusCode::FORBIDDEN => format!(
            "{PROXY} denies access: {message}; grant the verb get for services/proxy, with the resource name {name}, in the namespace \
             {namespace}"
        ),
        Some(message) => format!("{PROXY} answered {status}: {message}"),
        None => format!("{name} in the namespace {namespace} answered {status} through {PROXY}"),
    }
}
