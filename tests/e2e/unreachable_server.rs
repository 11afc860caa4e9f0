//! Registers the webhooks a second time, for one namespace and at an address where no server listens. So tests can
//! check which requests the API server admits while portcullis does not answer.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::context::Context;
use crate::sentences::accepts;

/// A registration of webhooks whose server does not answer. When this value is dropped, the registration is deleted, so
/// that a failed test does not disturb other tests.
pub struct UnreachableServer<'c> {
    ctx: &'c Context,
    /// The resource type and the name of the webhook configuration, as arguments of kubectl.
    configuration: [String; 2],
}

impl<'c> UnreachableServer<'c> {
    /// Registers the webhooks of a kind, `mutating` or `validating`, for the objects in a namespace.
    pub fn register(ctx: &'c Context, kind: &str, namespace: &str) -> Self {
        let name = format!("unreachable-{namespace}");
        let folder = ctx.cluster.folder().join(&name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.args(["manifests", "--url", "https://127.0.0.1:1", "--out"]).arg(&folder);
        assert!(command.status().expect("portcullis runs").success());
        let text = fs::read_to_string(folder.join(format!("{kind}.yaml"))).expect("the file can be read");
        let mut object: Value = serde_saphyr::from_str(&text).expect("the text is YAML");
        object["metadata"]["name"] = json!(name);
        for webhook in object["webhooks"].as_array_mut().expect("the configuration has webhooks") {
            webhook["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
            // The namespace selector also matches cluster-scoped objects, which other tests write. So this scope
            // excludes them.
            for rule in webhook["rules"].as_array_mut().expect("the webhook has rules") {
                rule["scope"] = json!("Namespaced");
            }
        }
        let configuration = [format!("{kind}webhookconfiguration"), name];
        let registered = Self { ctx, configuration };
        accepts(ctx, namespace, &object.to_string());
        registered
    }
}

impl Drop for UnreachableServer<'_> {
    fn drop(&mut self) {
        let [kind, name] = &self.configuration;
        let output = self.ctx.cluster.kubectl().args(["delete", kind, name, "--ignore-not-found"]).run();
        eprint!("{}", output.stderr);
    }
}
