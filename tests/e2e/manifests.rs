//! The manifests that the chart rendered for portcullis, in the order of application.
//!
//! Only parts that do not exist outside a cluster network are replaced: the Service and the webhooks refer to ports on
//! this machine.

use serde_json::{Value, json};

use crate::helm::{NAMESPACE, Rendered, list};

/// Objects in three parts, each to be applied at once.
pub struct Manifests {
    /// Namespaces and CRDs, which the others need.
    pub foundations: String,
    /// All but the other two.
    pub others: String,
    /// The webhook configurations, which are applied last: they deny requests until portcullis serves.
    pub webhooks: String,
}

impl Manifests {
    /// Returns those of a release whose server listens on `port`.
    pub fn of(rendered: &Rendered, port: u16) -> Self {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let (mut foundations, mut others, mut webhooks) = (vec![namespace], Vec::new(), Vec::new());
        for object in rendered.objects.iter().cloned() {
            match object["kind"].as_str().unwrap_or_default() {
                "Namespace" | "CustomResourceDefinition" => foundations.push(object),
                "Service" => others.push(leading_here(object)),
                kind if kind.ends_with("WebhookConfiguration") => webhooks.push(calling(object, port)),
                _ => others.push(object),
            }
        }
        // What hooks may do. Their Jobs are run by the tests.
        others.extend(rendered.hooks.iter().filter(|hook| hook["kind"] != "Job").cloned());
        Self { foundations: list(&foundations), others: list(&others), webhooks: list(&webhooks) }
    }
}

/// Returns a name that every machine has, in place of pods.
fn leading_here(mut service: Value) -> Value {
    service["spec"] = json!({"type": "ExternalName", "externalName": "localhost"});
    service
}

/// Replaces references to the Service, which has no port here.
fn calling(mut configuration: Value, port: u16) -> Value {
    for webhook in configuration["webhooks"].as_array_mut().expect("a configuration has webhooks") {
        webhook["clientConfig"]["service"]["port"] = json!(port);
    }
    configuration
}
