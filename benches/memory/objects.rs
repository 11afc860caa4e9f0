//! The objects of the benchmark, with sizes as in real clusters.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Number of namespaces.
const NAMESPACES: usize = 40;

/// A kind of objects that is measured, and the number of its objects. The benchmark prints one table row for each kind.
#[derive(Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub kind: &'static str,
    pub is_namespaced: bool,
    pub count: usize,
    /// A function that creates the object with the given number. The object has no API version, kind, name and
    /// namespace yet.
    pub make: fn(usize) -> Value,
}

pub const KUSTOMIZATIONS: Row = Row {
    name: "Flux Kustomizations, 200 inventory entries each",
    group: "kustomize.toolkit.fluxcd.io",
    version: "v1",
    plural: "kustomizations",
    kind: "Kustomization",
    is_namespaced: true,
    count: 5_000,
    make: kustomization,
};
pub const INSTALLATIONS: Row = Row {
    name: "Installations of 3 KB",
    group: "landscaper.gardener.cloud",
    version: "v1alpha1",
    plural: "installations",
    kind: "Installation",
    is_namespaced: true,
    count: 20_000,
    make: installation,
};
pub const DEPLOY_ITEMS: Row =
    Row { name: "DeployItems of 8 KB", plural: "deployitems", kind: "DeployItem", make: deploy_item, ..INSTALLATIONS };
pub const EXECUTIONS: Row = Row {
    name: "Executions of 9 KB",
    plural: "executions",
    kind: "Execution",
    count: 10_000,
    make: execution,
    ..INSTALLATIONS
};
pub const ENVIRONMENT_CONFIGS: Row = Row {
    name: "EnvironmentConfigs of 3 KB",
    group: "apiextensions.crossplane.io",
    version: "v1beta1",
    plural: "environmentconfigs",
    kind: "EnvironmentConfig",
    is_namespaced: false,
    count: 10_000,
    make: environment_config,
};
pub const ROWS: [Row; 5] = [KUSTOMIZATIONS, INSTALLATIONS, DEPLOY_ITEMS, EXECUTIONS, ENVIRONMENT_CONFIGS];

impl Row {
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    pub fn object(&self, number: usize) -> Value {
        let mut object = (self.make)(number);
        object["apiVersion"] = self.api_version().into();
        object["kind"] = self.kind.into();
        object["metadata"]["name"] = self.object_name(number).into();
        if self.is_namespaced {
            object["metadata"]["namespace"] = namespace(number).into();
        }
        object
    }

    pub fn object_name(&self, number: usize) -> String {
        format!("{}-{}-{number}", WORDS[number % WORDS.len()], self.kind.to_lowercase())
    }
}

pub fn namespace(number: usize) -> String {
    format!("team-{}", number % NAMESPACES)
}

pub fn namespaces() -> impl Iterator<Item = String> {
    (0..NAMESPACES).map(namespace)
}

/// Returns the rows of all kinds, to measure all kinds together. The row for Installations has 100 000 objects, as in a
/// large cluster. This is more than in the measurement of Installations alone.
pub fn all_rows() -> Vec<Row> {
    let mut rows = ROWS.to_vec();
    rows[1].count = 100_000;
    rows
}

const WORDS: [&str; 32] = [
    "ingress",
    "database",
    "gateway",
    "logging",
    "identity",
    "storage",
    "backup",
    "mesh",
    "registry",
    "metrics",
    "frontend",
    "billing",
    "search",
    "queue",
    "cache",
    "worker",
    "scheduler",
    "network",
    "dns",
    "proxy",
    "audit",
    "vault",
    "catalog",
    "orders",
    "payments",
    "shipping",
    "tracing",
    "alerts",
    "tenant",
    "portal",
    "console",
    "runtime",
];

/// A pseudo-random number generator with a fixed seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.next() % WORDS.len()]
    }

    fn hex(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from_digit((self.next() % 16) as u32, 16).unwrap()).collect()
    }

    fn uid(&mut self) -> String {
        [8, 4, 4, 4, 12].map(|length| self.hex(length)).join("-")
    }

    /// Returns a text of words and numbers with `length` bytes.
    fn text(&mut self, length: usize) -> String {
        let mut text = String::new();
        while text.len() < length {
            let (word, number) = (self.word(), self.next() % 10_000);
            write!(text, "{word}-{number} ").unwrap();
        }
        text.truncate(length);
        text
    }
}

fn metadata(random: &mut Random, number: usize) -> Value {
    json!({
        "uid": random.uid(), "resourceVersion": (1_000_000 + number * 7).to_string(), "generation": 1 + number % 9,
        "creationTimestamp": format!("2026-0{}-1{}T0{}:15:0{}Z", 1 + number % 9, number % 10, number % 7, number % 8),
        "labels": {"app.kubernetes.io/name": random.word(), "app.kubernetes.io/part-of": random.word(),
                   "team": namespace(number)},
    })
}

fn set_owner(metadata: &mut Value, random: &mut Random, kind: &str, number: usize) {
    let name = format!("{}-{}-{number}", WORDS[number % WORDS.len()], kind.to_lowercase());
    metadata["ownerReferences"] = json!([{
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind, "name": name, "uid": random.uid(),
        "controller": true, "blockOwnerDeletion": true,
    }]);
}

/// Calls `add` until the JSON of the object has at least `size` bytes.
fn fill(object: &mut Value, size: usize, mut add: impl FnMut(&mut Value)) {
    while object.to_string().len() < size {
        add(object);
    }
}

fn kustomization(number: usize) -> Value {
    let mut random = Random(number as u64);
    let mut metadata = metadata(&mut random, number);
    metadata["finalizers"] = json!(["finalizers.fluxcd.io"]);
    let kinds = ["apps_Deployment", "_Service", "_ConfigMap", "networking.k8s.io_Ingress", "_ServiceAccount"];
    let entries: Vec<Value> = (0..200)
        .map(|at| {
            let id = format!("{}_{}-{at}_{}", namespace(number), random.word(), kinds[at % kinds.len()]);
            json!({"id": id, "v": "v1"})
        })
        .collect();
    let revision = format!("main@sha1:{}", random.hex(40));
    json!({
        "metadata": metadata,
        "spec": {
            "interval": "10m0s", "path": format!("./clusters/{}/{}", namespace(number), random.word()), "prune": true,
            "sourceRef": {"kind": "GitRepository", "name": random.word()}, "targetNamespace": namespace(number),
            "timeout": "3m0s", "wait": true,
        },
        "status": {
            "conditions": [{"lastTransitionTime": "2026-01-01T12:00:00Z", "message": format!("Applied revision: {revision}"),
                            "observedGeneration": 1, "reason": "ReconciliationSucceeded", "status": "True", "type": "Ready"}],
            "inventory": {"entries": entries}, "lastAppliedRevision": revision, "lastAttemptedRevision": revision,
            "observedGeneration": 1,
        },
    })
}

fn installation(number: usize) -> Value {
    let mut random = Random(number as u64);
    let mut metadata = metadata(&mut random, number);
    if !number.is_multiple_of(3) {
        set_owner(&mut metadata, &mut random, "Installation", number / 3 * 3);
    }
    let version = format!("v1.{}.{}", random.next() % 40, random.next() % 20);
    let mut installation = json!({
        "metadata": metadata,
        "spec": {
            "context": "default",
            "componentDescriptor": {"ref": {
                "componentName": format!("github.com/example/{}-{}", random.word(), random.word()), "version": version,
                "repositoryContext": {"type": "ociRegistry", "baseUrl": "registry.example.org/landscaper/components"},
            }},
            "blueprint": {"ref": {"resourceName": "blueprint"}},
            "imports": {"targets": [{"name": "cluster", "target": format!("{}-cluster", random.word())}], "data": []},
            "exports": {"data": [{"name": "endpoint", "dataRef": format!("{}-endpoint", random.word())}]},
            "importDataMappings": {},
        },
        "status": {
            "conditions": [{"type": "ValidateImport", "status": "True", "reason": "ImportsSatisfied",
                            "message": "All imports are satisfied", "lastTransitionTime": "2026-01-01T12:00:00Z",
                            "lastUpdateTime": "2026-01-01T12:00:00Z"}],
            "phase": "Succeeded", "jobID": random.uid(), "jobIDFinished": "", "observedGeneration": 1,
            "configGeneration": random.hex(40),
        },
    });
    installation["status"]["jobIDFinished"] = installation["status"]["jobID"].clone();
    fill(&mut installation, 2_950, |object| {
        let (key, text) = (format!("{}-{}", random.word(), random.next() % 1_000), random.text(80));
        object["spec"]["importDataMappings"][key] = json!({"value": text});
    });
    installation
}

fn manifest(random: &mut Random, number: usize) -> Value {
    json!({"policy": "manage", "manifest": {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("{}-{}", random.word(), random.next() % 1_000), "namespace": namespace(number)},
        "data": {"config.yaml": random.text(400)},
    }})
}

fn configuration() -> Value {
    json!({"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
           "updateStrategy": "update", "manifests": []})
}

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().unwrap().push(item);
}

fn deploy_item(number: usize) -> Value {
    let mut random = Random(number as u64);
    let mut metadata = metadata(&mut random, number);
    set_owner(&mut metadata, &mut random, "Execution", number / 2);
    let job = random.uid();
    let mut item = json!({
        "metadata": metadata,
        "spec": {"type": "landscaper.gardener.cloud/kubernetes-manifest", "config": configuration(),
                 "target": {"name": format!("{}-cluster", random.word()), "namespace": namespace(number)}},
        "status": {"phase": "Succeeded", "jobID": job, "jobIDFinished": job, "observedGeneration": 1,
                   "lastReconcileTime": "2026-01-01T12:00:00Z",
                   "deployer": {"identity": "manifest-deployer", "name": "manifest-deployer", "version": "v0.153.0"}},
    });
    fill(&mut item, 8_150, |item| push(&mut item["spec"]["config"]["manifests"], manifest(&mut random, number)));
    item
}

fn execution(number: usize) -> Value {
    let mut random = Random(number as u64);
    let mut metadata = metadata(&mut random, number);
    set_owner(&mut metadata, &mut random, "Installation", number);
    let job = random.uid();
    let mut execution = json!({
        "metadata": metadata, "spec": {"context": "default", "deployItems": []},
        "status": {"phase": "Succeeded", "jobID": job, "jobIDFinished": job, "observedGeneration": 1},
    });
    fill(&mut execution, 9_000, |execution| {
        let mut config = configuration();
        (0..3).for_each(|_| push(&mut config["manifests"], manifest(&mut random, number)));
        let name = format!("{}-{}", random.word(), random.next() % 100);
        let template = json!({"name": name, "type": "landscaper.gardener.cloud/kubernetes-manifest", "config": config});
        push(&mut execution["spec"]["deployItems"], template);
    });
    execution
}

fn environment_config(number: usize) -> Value {
    let mut random = Random(number as u64);
    let mut metadata = metadata(&mut random, number);
    let stage = ["dev", "test", "prod"].get(number % 3);
    metadata["labels"] = json!({"stage": stage, "region": format!("eu-{}", number % 9),
                                "landscape": format!("{}-{}", random.word(), number / 50)});
    let mut config = json!({"metadata": metadata, "data": {"priority": number % 100, "network": {}}});
    fill(&mut config, 3_000, |config| {
        let key = format!("{}{}", random.word(), random.next() % 100);
        config["data"]["network"][key] = json!({
            "cidr": format!("10.{}.{}.0/24", random.next() % 256, random.next() % 256), "id": format!("vpc-{}", random.hex(16)),
            "zones": [random.word(), random.word()], "account": random.next() % 1_000_000,
        });
    });
    config
}
