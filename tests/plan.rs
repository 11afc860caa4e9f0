//! Tests of `portcullis plan` with an API server that answers as one with Flux does. The end-to-end tests and the tests with the real
//! controllers have more.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

#[path = "artifacts/mod.rs"]
mod artifacts;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use artifacts::{ArtifactServer, digest_of, packed};
use serde_json::{Value, json};

const KUSTOMIZATIONS: &str = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/shop";
const ALL_KUSTOMIZATIONS: &str = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations";
const SOURCE: &str = "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/fleet";
/// The URL that source-controller writes by default, which is known only within the cluster.
const URL: &str = "http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/fleet/3f2c.tar.gz";
const PROXIED: &str =
    "/api/v1/namespaces/flux-system/services/source-controller:80/proxy/gitrepository/flux-system/fleet/3f2c.tar.gz";
const REVISION: &str = "main@sha1:3f2c9a1b04de5d6e7f8091a2b3c4d5e6f7081920";

/// The answers of an API server: a status and a body for each path.
#[derive(Clone, Default)]
struct Api(Arc<Mutex<HashMap<String, (u16, Vec<u8>)>>>);

impl Api {
    /// Returns a server with a Kustomization that applied `inventory`, and that the artifact of `url` renders again.
    fn with(inventory: &[String], url: &str, archive: &[u8]) -> Self {
        let api = Self::default();
        let entries: Vec<_> = inventory.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
        let kustomization = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "shop", "namespace": "flux-system"},
            "spec": {"path": "./shop", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
            "status": {"inventory": {"entries": entries}},
        });
        api.answer(ALL_KUSTOMIZATIONS, 200, &json!({"metadata": {}, "items": [kustomization.clone()]}));
        api.answer(KUSTOMIZATIONS, 200, &kustomization);
        let artifact = json!({"url": url, "digest": digest_of(archive), "revision": REVISION});
        api.answer(SOURCE, 200, &source(&json!({"artifact": artifact})));
        api.answer("/api", 200, &json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}));
        let maps = json!({"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap",
                          "verbs": ["get"]});
        api.answer("/api/v1", 200, &json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [maps]}));
        api
    }

    fn answer(&self, path: &str, status: u16, body: &Value) {
        self.send(path, status, body.to_string().as_bytes());
    }

    fn send(&self, path: &str, status: u16, body: &[u8]) {
        self.0.lock().unwrap().insert(path.to_owned(), (status, body.to_vec()));
    }

    /// Creates a live ConfigMap that belongs to the Kustomization.
    fn owned(&self, name: &str, annotations: &Value) {
        let labels =
            json!({"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
        let metadata = json!({"name": name, "namespace": "shop", "labels": labels, "annotations": annotations});
        let object = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata});
        self.answer(&format!("/api/v1/namespaces/shop/configmaps/{name}"), 200, &object);
    }

    /// Runs `portcullis plan` with this server. Returns the exit code, and what it printed on standard output and standard error.
    fn plan(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let api = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let api = api.clone();
                thread::spawn(move || drop(api.serve(stream)));
            }
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        let named = |kind: &str, content: Value| json!([{"name": "test", kind: content}]);
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test", "users": named("user", json!({})),
            "clusters": named("cluster", json!({"server": server})),
            "contexts": named("context", json!({"cluster": "test", "user": "test"})),
        });
        std::fs::write(file.path(), kubeconfig.to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.args(["plan", "kustomization/shop", "--kubeconfig"]).arg(file.path()).args(arguments);
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let path = line.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
        while line.trim() != "" {
            line.clear();
            reader.read_line(&mut line)?;
        }
        let missing = || (404, refusal(404, "the server could not find it").to_string().into_bytes());
        let (status, body) = self.0.lock().unwrap().get(&path).cloned().unwrap_or_else(missing);
        let head = format!("HTTP/1.1 {status} Answer\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        reader.get_mut().write_all(&[head.as_bytes(), &body].concat())
    }
}

fn source(status: &Value) -> Value {
    json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
           "metadata": {"name": "fleet", "namespace": "flux-system"}, "status": status})
}

fn refusal(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "message": message,
           "reason": if code == 403 { "Forbidden" } else { "NotFound" }})
}

fn archive() -> Vec<u8> {
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop}}\n");
    packed([("shop/web.yaml", map("web")), ("shop/new.yaml", map("new"))])
}

fn ids(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("shop_{name}__ConfigMap")).collect()
}

/// Returns a server whose service proxy sends the archive.
fn proxying() -> Api {
    let api = Api::with(&ids(&["web", "old", "data"]), URL, &archive());
    api.send(PROXIED, 200, &archive());
    api.owned("old", &json!({}));
    api.owned("data", &json!({"kustomize.toolkit.fluxcd.io/prune": "disabled"}));
    api
}

const PLAN: &str = "Kustomization flux-system/shop, revision main@sha1:3f2c9a1b04de5d6e7f8091a2b3c4d5e6f7081920
  - delete   ConfigMap shop/old
  = keep     ConfigMap shop/data  (kustomize.toolkit.fluxcd.io/prune: disabled)
  + create   ConfigMap shop/new

Plan: 1 to create, 0 to take over, 0 to replace, 1 to delete, 0 possibly, 0 moved, 1 kept, 0 gone already, 0 skipped, 1 applied as before
";

#[test]
fn the_current_artifact_comes_through_the_service_proxy() {
    let (code, text, notes) = proxying().plan(&[]);
    assert_eq!((code, &*notes, &*text), (Some(0), "", PLAN));
}

#[test]
fn a_missing_right_is_named() {
    let api = proxying();
    let message =
        "services \"source-controller:80\" is forbidden: User \"jane\" cannot get resource \"services/proxy\"";
    api.answer(PROXIED, 403, &refusal(403, message));
    let (code, text, error) = api.plan(&[]);
    assert_eq!((code, &*text), (Some(2), ""), "{error}");
    let right = "it needs the verb get for services/proxy, with the resource name source-controller:80, in the namespace flux-system";
    for part in [message, right, "and not directly from http://source-controller", "--source DIR"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[test]
fn an_error_of_the_service_is_not_one_of_the_api_server() {
    let api = proxying();
    api.send(PROXIED, 404, b"404 page not found\n");
    let (code, _, error) = api.plan(&[]);
    let words = "source-controller:80 in the namespace flux-system answered 404 Not Found through the service proxy";
    assert!(code == Some(2) && error.contains(words), "{error}");
    api.answer(PROXIED, 503, &refusal(503, "no endpoints available for service \"source-controller:80\""));
    let (code, _, error) = api.plan(&[]);
    let words = "the service proxy of the API server answered 503 Service Unavailable: no endpoints available";
    assert!(code == Some(2) && error.contains(words), "{error}");
}

#[test]
fn a_url_that_names_no_service_is_fetched_directly() {
    let server = ArtifactServer::start();
    let artifact = server.artifact(&archive(), REVISION);
    let api = Api::with(&ids(&["web", "new"]), &artifact.url, &archive());
    let (code, text, notes) = api.plan(&[]);
    assert!(code == Some(0) && text.contains("2 applied as before"), "{text}{notes}");
    let note = format!("note: the artifact was fetched directly from {}: its URL names no Service", artifact.url);
    assert!(notes.starts_with(&note), "{notes}");
    assert_eq!(server.requests(&artifact), 1);
}

#[test]
fn another_archive_than_that_of_the_status_is_refused() {
    let api = proxying();
    api.send(PROXIED, 200, &packed([("shop/evil.yaml", "a: b")]));
    let (code, text, error) = api.plan(&[]);
    assert!(code == Some(2) && text.is_empty(), "{text}");
    assert!(error.contains(&format!("not {}", digest_of(&archive()))), "{error}");
}

#[test]
fn an_archive_beyond_the_limit_is_not_read_further() {
    let api = proxying();
    api.send(PROXIED, 200, &vec![0; (50 << 20) + 1]);
    let (code, _, error) = api.plan(&[]);
    assert!(code == Some(2) && error.contains("it is larger than 52428800 bytes"), "{error}");
}

#[test]
fn only_the_current_revision_can_be_fetched() {
    for revision in [REVISION, "3f2c9a1b04de"] {
        assert_eq!(proxying().plan(&["--revision", revision]).0, Some(0), "{revision}");
    }
    let (code, _, error) = proxying().plan(&["--revision", "v1.2.3"]);
    let words = format!(
        "GitRepository flux-system/fleet: only the current artifact can be fetched, with the revision {REVISION}, not v1.2.3"
    );
    assert!(code == Some(2) && error.contains(&words), "{error}");
}

#[test]
fn a_source_without_an_artifact_has_no_plan() {
    let api = proxying();
    api.answer(SOURCE, 200, &source(&json!({})));
    let (code, _, error) = api.plan(&[]);
    assert!(code == Some(2) && error.contains("GitRepository flux-system/fleet: it has no artifact yet"), "{error}");
    api.answer(SOURCE, 403, &refusal(403, "gitrepositories \"fleet\" is forbidden: User \"jane\" cannot get it"));
    let (code, _, error) = api.plan(&[]);
    assert!(code == Some(2) && error.contains("User \"jane\" cannot get it"), "{error}");
}
