//! Tests of overwrites in component trees, with the controller manager and a real registry.

use serde_json::{Value, json};

use crate::Case;
use crate::context::Context;
use crate::controller_manager::{ControllerManager, Options as ManagerOptions};
use crate::push::{Packing, Pusher, v2, v3};
use crate::registry::{Options, Registry};
use crate::sentences::{accepts, eventually, warns};

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("overwrite_trees::resolves_the_example_installation_with_indirect_references", resolves_the_example_installation),
    ("overwrite_trees::an_inline_descriptor_is_patched_at_admission", an_inline_descriptor_is_patched),
];

const EXAMPLE_CONTEXT: &str = include_str!("../../examples/landscaper/context.yaml");
const EXAMPLE_OVERWRITES: &str = include_str!("../../examples/landscaper/overwrites.yaml");
const EXAMPLE_INSTALLATION: &str = include_str!("../../examples/landscaper/installation.yaml");

const ECHO: &str = "github.com/gardener/landscaper/echo-server";
const INGRESS: &str = "github.com/gardener/landscaper/ingress-nginx";

/// Publishes the components of the example Installation to `registry`. These are the components in the component tree
/// of the Installation after the overwrites are applied.
fn publish(registry: &Registry) {
    let pusher = Pusher::new(&registry.url(), None, Some(("reader", "secret")));
    let path = "my-own-registry/components";
    let root = v2("my-own-echo-server", "v0.2.0", &[("server", ECHO, "v0.1.0"), ("ingress", INGRESS, "v0.2.0")]);
    pusher.component(path, &root, Packing::Archive);
    pusher.component(path, &v3(INGRESS, "v0.2.0", &[("backend", ECHO, "v0.0.9")]), Packing::Archive);
    for version in ["v1.2.3", "v1.2.4"] {
        pusher.component(path, &v2("another-echo-server", version, &[]), Packing::OldArchive);
    }
}

/// A controller manager whose log is printed when a test fails.
struct LoggedManager(ControllerManager);

impl Drop for LoggedManager {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- portcullis reconcile\n{}", self.0.log());
        }
    }
}

fn start(ctx: &Context, namespace: &str, registry: &Registry) -> LoggedManager {
    let mirror = format!("example.org={}", registry.url());
    let arguments = ["--overwrite-trees", "--overwrite-condition", "--registry-mirror", &mirror];
    let options = ManagerOptions { arguments: &arguments, ..ManagerOptions::new(&ctx.cluster, namespace) };
    LoggedManager(options.start(&ctx.cluster))
}

/// Returns the Secret with the credentials of the registry as YAML. The Context refers to this Secret.
fn pull_secret(registry: &Registry) -> String {
    let auths = json!({"auths": {registry.host(): {"username": "reader", "password": "secret"}}});
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: registry}}\ntype: kubernetes.io/dockerconfigjson\nstringData:\n  \
         .dockerconfigjson: '{auths}'\n"
    )
}

fn get(ctx: &Context, namespace: &str, kind: &str, name: &str) -> Option<Value> {
    let output = ctx.cluster.kubectl().args(["get", kind, name, "--namespace", namespace, "-o", "json"]).run();
    output.status.success().then(|| serde_json::from_str(&output.stdout).expect("kubectl writes JSON"))
}

fn in_namespace(yaml: &str, namespace: &str) -> String {
    yaml.replace("namespace: my-namespace", &format!("namespace: {namespace}"))
}

/// Returns the patches in a ConfigMap, as a map from each component to its patch.
fn patches(config_map: &Value) -> Value {
    let data = &config_map["data"];
    let source: Value =
        serde_json::from_str(data["source"].as_str().expect("the ConfigMap has the key source")).unwrap();
    let of = |about: &Value| {
        let key = about["key"].as_str().expect("a descriptor has a key");
        let patch: Value = serde_json::from_str(data[key].as_str().expect("the ConfigMap has the patch")).unwrap();
        (format!("{}@{}", about["componentName"].as_str().unwrap(), about["version"].as_str().unwrap()), patch)
    };
    Value::Object(source["descriptors"].as_array().unwrap().iter().map(of).collect())
}

/// Returns a patch that changes the reference at `pointer` from the component `ECHO` in version `from` to
/// `another-echo-server` in version `version`.
fn overwrite_patch(pointer: &str, from: &str, version: &str) -> Value {
    json!([
        {"op": "test", "path": format!("{pointer}/componentName"), "value": ECHO},
        {"op": "replace", "path": format!("{pointer}/componentName"), "value": "another-echo-server"},
        {"op": "test", "path": format!("{pointer}/version"), "value": from},
        {"op": "replace", "path": format!("{pointer}/version"), "value": version},
    ])
}

fn all_patches(version: &str) -> Value {
    json!({
        "my-own-echo-server@v0.2.0": overwrite_patch("/component/componentReferences/0", "v0.1.0", version),
        (format!("{INGRESS}@v0.2.0")): overwrite_patch("/spec/references/0", "v0.0.9", version),
    })
}

fn resolves_the_example_installation(ctx: &Context) {
    let ns = ctx.cluster.namespace("trees");
    let registry = Registry::start(&Options { requires_login: true, ..Options::default() });
    publish(&registry);
    accepts(ctx, &ns, &pull_secret(&registry));
    accepts(ctx, &ns, &in_namespace(EXAMPLE_OVERWRITES, &ns));
    let context = in_namespace(EXAMPLE_CONTEXT, &ns) + "registryPullSecrets: [{name: registry}]\n";
    accepts(ctx, &ns, &context);
    warns(ctx, &ns, &in_namespace(EXAMPLE_INSTALLATION, &ns), &["component overwritten: componentName"]);
    let _manager = start(ctx, &ns, &registry);

    // The condition has the expected message.
    let condition = eventually(|| {
        let conditions = get(ctx, &ns, "installation", "server")?["status"]["conditions"].take();
        conditions.as_array()?.first().cloned()
    });
    assert_eq!(
        condition["message"],
        "Component reference has been overwritten:\n\
         eu.gcr.io/gardener-project/landscaper/tutorials/components () -> example.org/my-own-registry/components ()\n\
         github.com/gardener/landscaper/echo-server -> my-own-echo-server\n\
         Version has not been overwritten"
    );
    let actual = (&condition["type"], &condition["status"], &condition["reason"]);
    assert_eq!(actual, (&json!("ComponentReferenceOverwrite"), &json!("True"), &json!("FoundOverwrite")));
    assert_eq!(condition["lastTransitionTime"], condition["lastUpdateTime"]);

    // The ConfigMap contains the patches of the tree, and records from which overwrites and descriptors they were
    // computed.
    let config_map = eventually(|| get(ctx, &ns, "configmap", "server-overwrites"));
    assert_eq!(patches(&config_map), all_patches("v1.2.3"));
    let installation = get(ctx, &ns, "installation", "server").expect("the object exists");
    assert_eq!(config_map["metadata"]["ownerReferences"][0]["uid"], installation["metadata"]["uid"]);
    let source: Value = serde_json::from_str(config_map["data"]["source"].as_str().unwrap()).unwrap();
    assert_eq!((&source["overwrites"], &source["generation"]), (&json!("my-overwrites"), &json!(1)));
    assert!(source["descriptors"][0]["digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:")));
    let summary = config_map["data"]["summary"].as_str().unwrap();
    assert!(
        summary.contains("ingress → backend: version v0.0.9 -> v1.2.3 (overwrites[1] of my-overwrites)"),
        "{summary}"
    );

    // A change of the overwrites changes the patches.
    let changed = in_namespace(&EXAMPLE_OVERWRITES.replace("v1.2.3", "v1.2.4"), &ns);
    accepts(ctx, &ns, &changed);
    eventually(|| (patches(&get(ctx, &ns, "configmap", "server-overwrites")?) == all_patches("v1.2.4")).then_some(()));
    eventually(|| events(ctx, &ns).contains("now server: version v0.1.0 -> v1.2.4").then_some(()));

    // If a version does not exist, an annotation records it with similar versions.
    let missing = in_namespace(&EXAMPLE_OVERWRITES.replace("v1.2.3", "v1.2.9"), &ns);
    accepts(ctx, &ns, &missing);
    let annotation = eventually(|| {
        tree_annotation(ctx, &ns).filter(|annotation| annotation["missing"][0]["nearest"] == json!(["v1.2.4"]))
    });
    assert_eq!(annotation["missing"][0]["target"]["version"], "v1.2.9");

    // If the Context no longer refers to the overwrites, the ConfigMap and the annotations are deleted. The condition
    // is not deleted, because Landscaper does not delete it either.
    accepts(ctx, &ns, &changed);
    let context_without_overwrites =
        "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Context\nmetadata: {name: default}\n";
    let output =
        ctx.cluster.kubectl().args(["replace", "--namespace", &ns, "-f", "-"]).stdin(context_without_overwrites).run();
    assert!(output.status.success(), "{output}");
    eventually(|| get(ctx, &ns, "configmap", "server-overwrites").is_none().then_some(()));
    eventually(|| {
        let installation = get(ctx, &ns, "installation", "server")?;
        let annotations = installation["metadata"]["annotations"].to_string();
        (!annotations.contains("portcullis.dev/overwrite-")).then_some(())
    });
}

fn tree_annotation(ctx: &Context, namespace: &str) -> Option<Value> {
    let installation = get(ctx, namespace, "installation", "server")?;
    let text = installation["metadata"]["annotations"]["portcullis.dev/overwrite-tree"].as_str()?.to_owned();
    serde_json::from_str(&text).ok()
}

fn events(ctx: &Context, namespace: &str) -> String {
    let get = ["get", "events", "--namespace", namespace, "-o", "jsonpath={.items[*].message}"];
    ctx.cluster.kubectl().args(get).run().stdout
}

fn an_inline_descriptor_is_patched(ctx: &Context) {
    let ns = ctx.cluster.namespace("inline-tree");
    accepts(ctx, &ns, &in_namespace(EXAMPLE_OVERWRITES, &ns));
    accepts(ctx, &ns, &in_namespace(EXAMPLE_CONTEXT, &ns));
    let installation = format!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata: {{name: server}}
spec:
  componentDescriptor:
    inline:
      meta: {{schemaVersion: v2}}
      component:
        name: example.org/app
        version: v1.0.0
        provider: internal
        repositoryContexts: [{{type: ociRegistry, baseUrl: example.org/components}}]
        resources: []
        sources: []
        componentReferences: [{{name: server, componentName: {ECHO}, version: v0.1.0}}]
  blueprint: {{inline: {{filesystem: {{}}}}}}
"
    );
    let expected = "component overwritten: reference \"server\": componentName github.com/gardener/landscaper/echo-server \
                    -> another-echo-server (overwrites[1] of my-overwrites)";
    warns(ctx, &ns, &installation, &[expected]);
    let stored = get(ctx, &ns, "installation", "server").expect("the object exists");
    let text = stored["metadata"]["annotations"]["portcullis.dev/overwrite-patch"]
        .as_str()
        .expect("the object has the annotation");
    let patch: Value = serde_json::from_str(text).unwrap();
    let pointer = "/spec/componentDescriptor/inline/component/componentReferences/0";
    assert_eq!(patch, overwrite_patch(pointer, "v0.1.0", "v1.2.3"));
}
