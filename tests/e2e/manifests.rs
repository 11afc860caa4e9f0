//! The rendered manifests of the chart, grouped in the order in which the tests apply them.
//!
//! There is no cluster network, so the Service is an alias of `localhost`, and the webhooks use a local port. All other
//! parts of the manifests are unchanged.

use serde_json::{Value, json};

use crate::helm::{NAMESPACE, Rendered, list};

/// Three lists of objects in JSON. Each list is the input of one `kubectl apply`.
pub struct Manifests {
    /// The namespaces and CRDs, which must exist before the other objects.
    pub prerequisites: String,
    /// All objects that are in neither `prerequisites` nor `webhooks`, such as RBAC objects.
    pub others: String,
    /// The webhook configurations. They are applied last, because they make the API server deny requests until
    /// portcullis serves.
    pub webhooks: String,
}

impl Manifests {
    /// Returns the manifests of a release whose server listens on the local port `port`.
    pub fn of(rendered: &Rendered, port: u16) -> Self {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let (mut prerequisites, mut others, mut webhooks) = (vec![namespace], Vec::new(), Vec::new());
        for object in rendered.objects.iter().cloned() {
            match object["kind"].as_str().unwrap_or_default() {
                "Namespace" | "CustomResourceDefinition" => prerequisites.push(object),
                "Service" => others.push(as_local_alias(object)),
                kind if kind.ends_with("WebhookConfiguration") => webhooks.push(with_port(object, port)),
                _ => others.push(object),
            }
        }
        // The permissions of the hooks are included. The Jobs are not, because the tests run the commands of the Jobs.
        others.extend(rendered.hooks.iter().filter(|hook| hook["kind"] != "Job").cloned());
        Self { prerequisites: list(&prerequisites), others: list(&others), webhooks: list(&webhooks) }
    }
}

/// Changes a Service to an alias of `localhost`, because there are no Pods.
fn as_local_alias(mut service: Value) -> Value {
    service["spec"] = json!({"type": "ExternalName", "externalName": "localhost"});
    service
}

/// Sets the port in the `clientConfig` of every webhook to `port`, the port on which the server listens. In the tests,
/// the Service is only an alias of `localhost`, so it does not map its port to the port of the server.
fn with_port(mut configuration: Value, port: u16) -> Value {
    for webhook in configuration["webhooks"].as_array_mut().expect("a configuration has webhooks") {
        webhook["clientConfig"]["service"]["port"] = json!(port);
    }
    configuration
}
