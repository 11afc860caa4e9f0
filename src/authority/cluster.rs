//! Reads, writes and watches the Secret of the CA and the caBundles of the webhook configurations.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Resource, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::certificate::Certificate;
use super::state::{Data, State};
use super::steps::Bundle;

/// The names of Portcullis's webhook configurations. Each name can belong to a mutating and a validating configuration.
/// The second name is used only if Portcullis handles Crossplane composites.
pub const CONFIGURATIONS: [&str; 2] = ["portcullis", "portcullis-composites"];
/// The suffix of the names of Portcullis's webhooks. Portcullis does not change other webhooks in the same
/// configurations.
pub const DOMAIN: &str = ".portcullis.dev";
/// The annotation on the Secret of the CA that requests a new CA. Portcullis removes the annotation when the rotation
/// begins.
pub const RENEW: &str = "portcullis.dev/renew-ca";
/// The field manager of Portcullis's writes to the Secret of the CA and to the webhook configurations.
const MANAGER: &str = "portcullis";

/// An error while reading or writing the Secret of the CA or a webhook configuration.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The API server returned an error.
    #[error("{what} cannot be {done}: {source}{}", advice(source))]
    Api {
        /// The kind and name of the object, such as `MutatingWebhookConfiguration portcullis`.
        what: String,
        /// The action that failed, as it appears in the error message: `read` or `written`.
        done: &'static str,
        /// The error of the Kubernetes client.
        source: kube::Error,
    },
    /// Another client changed the named object after it was read.
    #[error("{0} was changed by another client since it was read")]
    Changed(String),
    /// The JSON Patch of the named object could not be created.
    #[error("cannot create the patch of {0}")]
    Patch(String),
}

fn advice(error: &kube::Error) -> &'static str {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            "; the ServiceAccount needs the permissions that certs/README.md lists under \"Self-managed\""
        }
        _ => "",
    }
}

/// A client for the Secret of the CA and the webhook configurations of Portcullis.
#[derive(Clone)]
pub(super) struct Cluster {
    secrets: Api<Secret>,
    secret: String,
    namespace: String,
    kinds: [(&'static str, Api<DynamicObject>); 2],
}

/// A webhook configuration of Portcullis, as read from the API server.
pub(super) struct Configuration {
    kind: usize,
    name: &'static str,
    version: String,
    /// The caBundle of each Portcullis webhook, with the index of the webhook in the field `webhooks` of the
    /// configuration.
    bundles: Vec<(usize, Bundle)>,
}

/// The Secret of the CA, as read from the API server.
#[derive(Default)]
pub(super) struct Stored {
    secret: Option<Secret>,
    pub(super) state: State,
    /// One error message for each invalid entry in the Secret's data.
    pub(super) problems: Vec<String>,
    /// Whether the annotation [`RENEW`] on the Secret requests a new CA.
    pub(super) rotation_requested: bool,
}

impl Cluster {
    pub(super) fn new(client: &Client, namespace: &str, secret: &str) -> Self {
        let all = |resource| Api::all_with(client.clone(), &resource);
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            secret: secret.to_owned(),
            namespace: namespace.to_owned(),
            kinds: [
                ("ValidatingWebhookConfiguration", all(ApiResource::erase::<ValidatingWebhookConfiguration>(&()))),
                ("MutatingWebhookConfiguration", all(ApiResource::erase::<MutatingWebhookConfiguration>(&()))),
            ],
        }
    }

    /// Reads Portcullis's webhook configurations. Omits configurations that do not exist.
    pub(super) async fn configurations(&self) -> Result<Vec<Configuration>, ClusterError> {
        let mut found = Vec::new();
        for (kind, (kind_name, api)) in self.kinds.iter().enumerate() {
            for name in CONFIGURATIONS {
                let read = api.get_opt(name).await;
                let object = read.map_err(failed("read", &format!("{kind_name} {name}")))?;
                found.extend(object.map(|object| Configuration::of(kind, name, &object)));
            }
        }
        Ok(found)
    }

    /// Reads the Secret of the CA. Returns an empty [`Stored`] if the Secret does not exist.
    pub(super) async fn stored(&self) -> Result<Stored, ClusterError> {
        let read = self.secrets.get_opt(&self.secret).await.map_err(failed("read", &self.secret_name()))?;
        let Some(secret) = read else { return Ok(Stored::default()) };
        let data: Data = secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone())).collect();
        let (state, problems) = State::read(&data);
        let rotation_requested = secret.annotations().contains_key(RENEW);
        Ok(Stored { secret: Some(secret), state, problems, rotation_requested })
    }

    /// Writes `state` into the Secret of the CA. Fails if another client changed the Secret after `stored` was read. If
    /// `answered` is true, also removes the annotation [`RENEW`] from the Secret, because the requested rotation has
    /// begun.
    pub(super) async fn write(&self, stored: &Stored, state: &State, answered: bool) -> Result<(), ClusterError> {
        let post = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let mut secret = stored.secret.clone().unwrap_or_default();
        let mut data: Data = secret.data.take().into_iter().flatten().map(|(key, value)| (key, value.0)).collect();
        state.write(&mut data);
        secret.data = Some(data.into_iter().map(|(key, value)| (key, ByteString(value))).collect());
        if answered {
            secret.annotations_mut().remove(RENEW);
        }
        let written = match stored.secret {
            Some(_) => self.secrets.replace(&self.secret, &post, &secret).await,
            None => {
                secret.metadata = ObjectMeta { name: Some(self.secret.clone()), ..ObjectMeta::default() };
                self.secrets.create(&post, &secret).await
            }
        };
        written.map(drop).map_err(failed("written", &self.secret_name()))
    }

    /// Corrects the caBundles of a webhook configuration. Replaces each caBundle that does not contain exactly the CAs
    /// `wanted`, and returns the number of replaced caBundles. Fails if another client changed the configuration after
    /// it was read.
    pub(super) async fn publish(
        &self,
        configuration: &Configuration,
        wanted: &[Certificate],
    ) -> Result<usize, ClusterError> {
        let (kind_name, api) = &self.kinds[configuration.kind];
        let what = format!("{kind_name} {}", configuration.name);
        let wrong = configuration.wrong(wanted);
        if wrong.is_empty() {
            return Ok(0);
        }
        let text: String = wanted.iter().map(Certificate::pem).collect();
        let test = json!({"op": "test", "path": "/metadata/resourceVersion", "value": configuration.version});
        let put = |at: &usize| {
            let path = format!("/webhooks/{at}/clientConfig/caBundle");
            json!({"op": "add", "path": path, "value": STANDARD.encode(&text)})
        };
        let operations: Value = std::iter::once(test).chain(wrong.iter().map(put)).collect();
        let patch: json_patch::Patch =
            serde_json::from_value(operations).map_err(|_| ClusterError::Patch(what.clone()))?;
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let patched = api.patch(configuration.name, &params, &Patch::Json::<Value>(patch)).await;
        patched.map(|_| wrong.len()).map_err(failed("written", &what))
    }

    /// Notifies `changed` whenever the Secret of the CA or a webhook configuration of Portcullis changes. Never
    /// returns.
    pub(super) async fn watch(&self, changed: Arc<Notify>) {
        let configurations = self.kinds.iter().flat_map(|(_, api)| CONFIGURATIONS.map(|name| (api, name)));
        let watches = configurations.map(|(api, name)| watch(api.clone(), name, &changed));
        let secret = watch(self.secrets.clone(), &self.secret, &changed);
        futures::join!(futures::future::join_all(watches), secret);
    }

    pub(super) fn secret_name(&self) -> String {
        format!("Secret {}/{}", self.namespace, self.secret)
    }
}

/// Watches one object by its name, and notifies `changed` of every event. Needs RBAC permissions only for the object
/// with this name.
async fn watch<K>(api: Api<K>, name: &str, changed: &Notify)
where
    K: Resource + Clone + fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = watcher(api, config).default_backoff().boxed();
    // The watcher recovers from errors by itself; meanwhile the keeper polls.
    while let Some(event) = events.next().await {
        if event.is_ok() {
            changed.notify_one();
        }
    }
}

impl Configuration {
    fn of(kind: usize, name: &'static str, object: &DynamicObject) -> Self {
        let webhooks = object.data.get("webhooks").and_then(Value::as_array);
        let ours = |webhook: &&Value| webhook["name"].as_str().is_some_and(|name| name.ends_with(DOMAIN));
        let bundles = webhooks.into_iter().flatten().enumerate().filter(|(_, webhook)| ours(webhook));
        Self {
            kind,
            name,
            version: object.resource_version().unwrap_or_default(),
            bundles: bundles.map(|(at, webhook)| (at, bundle(webhook))).collect(),
        }
    }

    /// Returns the caBundle of each Portcullis webhook in this webhook configuration.
    pub(super) fn bundles(&self) -> impl Iterator<Item = Bundle> {
        self.bundles.iter().map(|(_, bundle)| bundle.clone())
    }

    fn wrong(&self, wanted: &[Certificate]) -> Vec<usize> {
        let wrong = self.bundles.iter().filter(|(_, bundle)| !bundle.is(wanted));
        wrong.map(|(at, _)| *at).collect()
    }
}

fn bundle(webhook: &Value) -> Bundle {
    let text = webhook["clientConfig"]["caBundle"].as_str().and_then(|text| STANDARD.decode(text).ok());
    Bundle(text.and_then(|text| Certificate::read_all(&text).ok()).unwrap_or_default())
}

/// Returns a function that converts an error of the Kubernetes client to a [`ClusterError`]. `done` is the action that
/// failed: `read` or `written`. `what` is the kind and name of the object.
///
/// If a write failed, the status codes 404, 409 and 422 mean that another client changed the object. A failed test of a
/// JSON Patch has the code 422.
fn failed(done: &'static str, what: &str) -> impl FnOnce(kube::Error) -> ClusterError {
    let what = what.to_owned();
    move |source| match &source {
        kube::Error::Api(status) if done == "written" && [404, 409, 422].contains(&status.code) => {
            ClusterError::Changed(what)
        }
        _ => ClusterError::Api { what, done, source },
    }
}
