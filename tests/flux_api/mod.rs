//! A simulated API server with a Flux Kustomization, for tests of `portcullis plan`.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::artifacts::{digest_of, packed};

pub const KUSTOMIZATIONS: &str = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/shop";
pub const ALL_KUSTOMIZATIONS: &str = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations";
pub const SOURCE: &str = "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/fleet";
/// The URL of an artifact, as source-controller writes it by default. Its host name can be resolved only in the
/// cluster.
pub const URL: &str =
    "http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/fleet/3f2c.tar.gz";
pub const PROXIED: &str =
    "/api/v1/namespaces/flux-system/services/source-controller:80/proxy/gitrepository/flux-system/fleet/3f2c.tar.gz";
pub const REVISION: &str = "main@sha1:3f2c9a1b04de5d6e7f8091a2b3c4d5e6f7081920";

/// The HTTP status and the body of the response for each path.
type Answers = HashMap<String, (u16, Vec<u8>)>;

/// A simulated API server. It answers requests for a path with the HTTP status and the body that are set for this path.
#[derive(Clone, Default)]
pub struct Api(Arc<Mutex<Answers>>);

impl Api {
    /// Creates a server that contains a Kustomization and its source. `inventory` contains the entries of the
    /// Kustomization's inventory. The source has an artifact at `url`, with the digest of `archive`.
    pub fn with_inventory(inventory: &[String], url: &str, archive: &[u8]) -> Self {
        let api = Self::default();
        let entries: Vec<_> = inventory.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
        let kustomization = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "shop", "namespace": "flux-system"},
            "spec": {"path": "./shop", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
            "status": {"inventory": {"entries": entries}},
        });
        api.set_json(ALL_KUSTOMIZATIONS, 200, &json!({"metadata": {}, "items": [kustomization.clone()]}));
        api.set_json(KUSTOMIZATIONS, 200, &kustomization);
        let artifact = json!({"url": url, "digest": digest_of(archive), "revision": REVISION});
        api.set_json(SOURCE, 200, &source(&json!({"artifact": artifact})));
        api.set_json(
            "/api",
            200,
            &json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        );
        let maps = json!({"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap",
                          "verbs": ["get"]});
        api.set_json("/api/v1", 200, &json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [maps]}));
        api
    }

    pub fn set_json(&self, path: &str, status: u16, body: &Value) {
        self.set_bytes(path, status, body.to_string().as_bytes());
    }

    pub fn set_bytes(&self, path: &str, status: u16, body: &[u8]) {
        self.0.lock().unwrap().insert(path.to_owned(), (status, body.to_vec()));
    }

    /// Adds a ConfigMap with these annotations, and with the labels that Flux adds to the objects of the Kustomization.
    pub fn add_owned_config_map(&self, name: &str, annotations: &Value) {
        let labels =
            json!({"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
        let metadata = json!({"name": name, "namespace": "shop", "labels": labels, "annotations": annotations});
        let object = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata});
        self.set_json(&format!("/api/v1/namespaces/shop/configmaps/{name}"), 200, &object);
    }

    /// Runs `portcullis plan` with this server. Returns the exit code, the standard output and the standard error.
    pub fn plan(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
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

    pub fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let path = line.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
        while line.trim() != "" {
            line.clear();
            reader.read_line(&mut line)?;
        }
        let missing = || (404, status_error(404, "the server could not find it").to_string().into_bytes());
        let (status, body) = self.0.lock().unwrap().get(&path).cloned().unwrap_or_else(missing);
        let head = format!("HTTP/1.1 {status} Answer\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        reader.get_mut().write_all(&[head.as_bytes(), &body].concat())
    }
}

pub fn source(status: &Value) -> Value {
    json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
           "metadata": {"name": "fleet", "namespace": "flux-system"}, "status": status})
}

pub fn status_error(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "message": message,
           "reason": if code == 403 { "Forbidden" } else { "NotFound" }})
}

pub fn archive() -> Vec<u8> {
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop}}\n");
    packed([("shop/web.yaml", map("web")), ("shop/new.yaml", map("new"))])
}

pub fn inventory_ids(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("shop_{name}__ConfigMap")).collect()
}

/// Returns a server with a Kustomization whose artifact can be downloaded through the API server's service proxy.
pub fn api_with_proxy() -> Api {
    let api = Api::with_inventory(&inventory_ids(&["web", "old", "data"]), URL, &archive());
    api.set_bytes(PROXIED, 200, &archive());
    api.add_owned_config_map("web", &json!({}));
    api.add_owned_config_map("old", &json!({}));
    api.add_owned_config_map("data", &json!({"kustomize.toolkit.fluxcd.io/prune": "disabled"}));
    api
}
