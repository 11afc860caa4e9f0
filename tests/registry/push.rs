//! Pushes component versions into an OCI registry, as the tools of the Open Component Model do.

use std::io::Write;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, StatusCode};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use portcullis::oci::digest;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use serde_json::{Value, json};

/// The format of the layer that contains a component descriptor.
#[derive(Debug, Clone, Copy)]
pub enum Packing {
    /// A tar archive, with the media types of the Open Component Model.
    Archive,
    /// A tar archive, with the older media types of Gardener.
    OldArchive,
    /// A JSON file, without an archive.
    Json,
    /// A JSON file, without an archive, but with the media type of YAML.
    Yaml,
}

impl Packing {
    fn media_types(self) -> (&'static str, &'static str) {
        let ocm = "application/vnd.ocm.software.component.config.v1+json";
        let old = "application/vnd.gardener.cloud.cnudie.component.config.v1+json";
        match self {
            Self::Archive => (ocm, "application/vnd.ocm.software.component-descriptor.v2+yaml+tar"),
            Self::OldArchive => (old, "application/vnd.gardener.cloud.cnudie.component-descriptor.v2+yaml+tar"),
            Self::Json => (ocm, "application/vnd.ocm.software.component-descriptor.v2+json"),
            Self::Yaml => (old, "application/vnd.gardener.cloud.cnudie.component-descriptor.v2+yaml"),
        }
    }
}

/// A component version as an OCI artifact: its manifest and its blobs.
pub struct Artifact {
    pub manifest: Vec<u8>,
    pub blobs: Vec<Vec<u8>>,
}

impl Artifact {
    pub fn of(descriptor: &Value, packing: Packing) -> Self {
        let (config_type, layer_type) = packing.media_types();
        let text = serde_json::to_vec(descriptor).unwrap();
        let layer = match packing {
            Packing::Archive | Packing::OldArchive => archived(&text),
            Packing::Json | Packing::Yaml => text,
        };
        let blob = |media_type: &str, content: &[u8]| json!({"mediaType": media_type, "digest": digest::of(content), "size": content.len()});
        let layer_blob = blob(layer_type, &layer);
        let config = serde_json::to_vec(&json!({ "componentDescriptorLayer": layer_blob })).unwrap();
        let manifest = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                              "config": blob(config_type, &config), "layers": [layer_blob]});
        Self { manifest: serde_json::to_vec(&manifest).unwrap(), blobs: vec![config, layer] }
    }
}

fn archived(text: &[u8]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    archive.append_data(&mut header, "component-descriptor.yaml", text).unwrap();
    let mut bytes = archive.into_inner().unwrap();
    bytes.flush().unwrap();
    bytes
}

/// A client that pushes component versions into a registry.
pub struct Pusher {
    runtime: tokio::runtime::Runtime,
    client: Client<hyper_rustls::HttpsConnector<hyper_util::client::legacy::connect::HttpConnector>, Full<Bytes>>,
    url: String,
    authorization: Option<String>,
}

impl Pusher {
    pub fn new(url: &str, authority: Option<&CertificateDer<'static>>, user: Option<(&str, &str)>) -> Self {
        let mut roots = RootCertStore::empty();
        authority.into_iter().for_each(|authority| roots.add(authority.clone()).unwrap());
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let https = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build();
        use base64::Engine as _;
        let encode = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
        Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            client: Client::builder(TokioExecutor::new()).build(https),
            url: url.to_owned(),
            authorization: user.map(|(name, password)| format!("Basic {}", encode(format!("{name}:{password}")))),
        }
    }

    /// Pushes a component version into the repository `<path>/component-descriptors/<component name>`.
    pub fn component(&self, path: &str, descriptor: &Value, packing: Packing) {
        let section = if descriptor.get("component").is_some() { "component" } else { "metadata" };
        let text = |key: &str| descriptor[section][key].as_str().unwrap().to_owned();
        let repository = format!("{path}/component-descriptors/{}", text("name"));
        self.artifact(
            repository.trim_start_matches('/'),
            &text("version").replace('+', ".build-"),
            descriptor,
            packing,
        );
    }

    /// Pushes a component version into the repository `repository`, as an OCI artifact with the tag `tag`.
    pub fn artifact(&self, repository: &str, tag: &str, descriptor: &Value, packing: Packing) {
        let artifact = Artifact::of(descriptor, packing);
        for blob in artifact.blobs {
            self.blob(repository, blob);
        }
        let url = format!("{}/v2/{repository}/manifests/{tag}", self.url);
        let manifest = "application/vnd.oci.image.manifest.v1+json";
        let (status, _) = self.send(Method::PUT, &url, artifact.manifest, manifest);
        assert_eq!(status, StatusCode::CREATED, "{url}");
    }

    fn blob(&self, repository: &str, content: Vec<u8>) {
        let start = format!("{}/v2/{repository}/blobs/uploads/", self.url);
        let (status, location) = self.send(Method::POST, &start, Vec::new(), "application/octet-stream");
        assert_eq!(status, StatusCode::ACCEPTED, "{start}");
        let location = location.expect("an upload has a location");
        let location = if location.starts_with('/') { format!("{}{location}", self.url) } else { location };
        let separator = if location.contains('?') { '&' } else { '?' };
        let url = format!("{location}{separator}digest={}", digest::of(&content));
        let (status, _) = self.send(Method::PUT, &url, content, "application/octet-stream");
        assert_eq!(status, StatusCode::CREATED, "{url}");
    }

    fn send(&self, method: Method, url: &str, body: Vec<u8>, content_type: &str) -> (StatusCode, Option<String>) {
        let mut request = Request::builder().method(method).uri(url).header("content-type", content_type);
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        self.runtime.block_on(async {
            let answer = self.client.request(request).await.unwrap_or_else(|error| panic!("{url}: {error:?}"));
            let (status, location) = (answer.status(), answer.headers().get("location").cloned());
            let _ = answer.into_body().collect().await;
            (status, location.map(|location| location.to_str().unwrap().to_owned()))
        })
    }
}

/// Returns a component descriptor of schema v2. Each reference has a name, a component name and a version.
pub fn v2(name: &str, version: &str, references: &[(&str, &str, &str)]) -> Value {
    let component = json!({"name": name, "version": version, "provider": "internal", "sources": [], "resources": [],
        "repositoryContexts": [], "componentReferences": listed(references)});
    json!({"meta": {"schemaVersion": "v2"}, "component": component})
}

/// Returns a component descriptor of schema v3. Each reference has a name, a component name and a version.
pub fn v3(name: &str, version: &str, references: &[(&str, &str, &str)]) -> Value {
    json!({"apiVersion": "ocm.software/v3alpha1", "kind": "ComponentVersion", "repositoryContexts": [],
        "metadata": {"name": name, "version": version, "provider": {"name": "internal"}},
        "spec": {"references": listed(references)}})
}

fn listed(references: &[(&str, &str, &str)]) -> Value {
    let listed = |(name, component, version): &(&str, &str, &str)| json!({"name": name, "componentName": component, "version": version});
    references.iter().map(listed).collect()
}
