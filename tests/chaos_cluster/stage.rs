//! The environment of the chaos tests: a cluster, two replicas, the address of their Service, and the webhook
//! configurations.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::replica::Replica;
use super::written::Manifests;
use crate::cluster::Cluster;
use crate::control_plane::ADMISSION;
use crate::sentences::eventually;
use crate::support::pki::{Authority, SecretMount};
use crate::support::service::Service;

const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");
const PERMISSIONS: &str = include_str!("../../certs/self-managed.yaml");
/// Arguments of `portcullis serve` for self-managed certificates. The CA is valid for 30 days, so that it is replaced
/// only at the request of a test. The old and the new CA overlap only for a short time.
const SELF_MANAGED: [&str; 7] = [
    "--self-managed=portcullis-system/portcullis-ca",
    "--server-name=127.0.0.1",
    "--server-name=localhost",
    "--ca-life=30d",
    "--ca-overlap=2s",
    "--drain=10",
    "--log-format=text",
];
/// An object that a rule denies by default. The webhooks are active as soon as the API server denies this object.
const PROBE: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata: {name: probe}
overwrites: [{source: {}, substitution: {repositoryContext: none}}]
";

/// The source of the serving certificates of the replicas.
pub enum Certificates {
    /// The replicas manage a CA in a Secret, and issue their own leaf certificates. A leaf certificate is valid for
    /// `leaf_life` seconds.
    SelfManaged { leaf_life: u32 },
    /// The replicas read a certificate from a mounted Secret, as with cert-manager. The test issues this certificate
    /// with `authority`.
    Mounted { authority: Box<Authority>, mount: SecretMount },
}

/// The client certificates that the replicas require: the CA that issues them, and the name that they must contain.
pub struct Clients {
    /// The CA that issues client certificates.
    pub authority: Authority,
    /// The name in the client certificate of the API server.
    pub name: &'static str,
}

/// Admission configuration of the kube-apiserver. It contains the path of a kubeconfig with the client certificate for
/// calls of webhooks.
const ADMISSION_CONFIGURATION: &str = "apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration: &webhooks
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: FOLDER/webhooks.kubeconfig
- name: MutatingAdmissionWebhook
  configuration: *webhooks
";
const WEBHOOKS_KUBECONFIG: &str = "apiVersion: v1
kind: Config
users:
- name: '*'
  user: {client-certificate: FOLDER/webhooks.crt, client-key: FOLDER/webhooks.key}
";

impl Clients {
    fn write(&self, folder: &Path) {
        let leaf = self.authority.client(self.name, &[]);
        let fill_in = |text: &str| text.replace("FOLDER", &folder.display().to_string());
        for (name, text) in [
            ("clients.crt", self.authority.root_pem()),
            ("webhooks.crt", leaf.chain),
            ("webhooks.key", leaf.key),
            ("webhooks.kubeconfig", fill_in(WEBHOOKS_KUBECONFIG)),
            (ADMISSION, fill_in(ADMISSION_CONFIGURATION)),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
    }
}

/// The environment of the chaos tests.
pub struct TestEnvironment {
    // The fields are dropped in this order: the replicas before the cluster.
    pub replicas: Mutex<Vec<Replica>>,
    pub service: Service,
    pub certificates: Certificates,
    arguments: Vec<String>,
    pub cluster: Cluster,
}

impl Certificates {
    /// Creates a CA, and a Secret with a certificate that this CA signs. The replicas read the Secret as mounted files.
    pub fn mounted() -> Self {
        let authority = Box::new(Authority::new());
        let mount = SecretMount::new(&authority.leaf());
        Self::Mounted { authority, mount }
    }

    fn arguments(&self) -> Vec<String> {
        match self {
            Self::SelfManaged { leaf_life } => {
                let life = format!("--leaf-life={leaf_life}s");
                SELF_MANAGED.map(str::to_owned).into_iter().chain([life]).collect()
            }
            Self::Mounted { mount, .. } => vec![format!("--certs={}", mount.path().display())],
        }
    }
}

impl TestEnvironment {
    /// Starts a cluster and two replicas, applies the manifests, and waits until the webhooks are active. If `clients`
    /// is set, the replicas require client certificates.
    pub fn start(certificates: Certificates, clients: Option<&Clients>) -> Self {
        let prepare = |folder: &Path| clients.into_iter().for_each(|clients| clients.write(folder));
        let cluster = Cluster::start(prepare).expect("a cluster runs");
        let mut arguments = certificates.arguments();
        if let Some(clients) = clients {
            arguments.push(format!("--client-ca={}", cluster.folder().join("clients.crt").display()));
            arguments.push(format!("--client-name={}", clients.name));
        }
        let service = cluster.block_on(Service::start());
        let manifests = manifests(&cluster, service.address, &certificates);
        apply(&cluster, &manifests.prerequisites);
        cluster.apply_crds();
        apply(&cluster, &manifests.others);
        if matches!(certificates, Certificates::SelfManaged { .. }) {
            apply(&cluster, PERMISSIONS);
        }
        let environment = Self { replicas: Mutex::default(), service, certificates, arguments, cluster };
        environment.add_replica();
        environment.add_replica();
        apply(&environment.cluster, &manifests.webhooks);
        environment.wait_until_active();
        environment
    }

    /// Starts a replica, and waits until the Service sends connections to it.
    pub fn add_replica(&self) {
        self.add_replica_with(&self.arguments);
    }

    /// Starts a replica with these arguments, and waits until the Service sends connections to it.
    pub fn add_replica_with(&self, arguments: &[String]) {
        let replica = Replica::start(&self.cluster, arguments);
        self.service.add(replica.address, replica.admin);
        let address = replica.address;
        self.replicas.lock().unwrap().push(replica);
        eventually(|| self.service.is_ready(address).then_some(()));
    }

    /// Removes the oldest replica from `replicas`, and returns it. The Service continues to send connections to it.
    pub fn take_replica(&self) -> Replica {
        self.replicas.lock().unwrap().remove(0)
    }

    /// Waits until the webhooks deny an object that violates a rule.
    pub fn wait_until_active(&self) {
        eventually(|| {
            let create = ["create", "--dry-run=server", "-f", "-"];
            let answer = self.cluster.kubectl().args(create).stdin(PROBE).run().stderr;
            answer.contains("portcullis.dev\" denied the request").then_some(())
        });
    }

    /// Returns a value of the CA's Secret by its key, such as `ca.crt`. Returns `None` if the Secret or the key does
    /// not exist.
    pub fn secret(&self, key: &str) -> Option<String> {
        let get = ["get", "secret", "portcullis-ca", "-n", "portcullis-system", "--ignore-not-found", "-o", "json"];
        let output = self.cluster.kubectl().args(get).run().expect_success();
        if output.stdout.is_empty() {
            return None;
        }
        let secret: Value = serde_json::from_str(&output.stdout).unwrap();
        let text = STANDARD.decode(secret["data"][key].as_str()?).unwrap();
        Some(String::from_utf8(text).unwrap())
    }

    /// Returns the caBundle of each webhook in a webhook configuration. `kind` and `name` identify the configuration.
    pub fn bundles(&self, kind: &str, name: &str) -> Vec<String> {
        let output = self.cluster.kubectl().args(["get", kind, name, "-o", "json"]).run().expect_success();
        let configuration: Value = serde_json::from_str(&output.stdout).unwrap();
        let bundle = |webhook: &Value| webhook["clientConfig"]["caBundle"].as_str().map(|text| STANDARD.decode(text));
        let webhooks = configuration["webhooks"].as_array().unwrap().iter();
        webhooks.map(|webhook| String::from_utf8(bundle(webhook).unwrap_or(Ok(Vec::new())).unwrap()).unwrap()).collect()
    }

    /// Returns whether the caBundle of every webhook of Portcullis is equal to this PEM text.
    pub fn all_bundles_equal(&self, text: &str) -> bool {
        let kinds = ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"];
        let all = kinds.iter().flat_map(|kind| {
            ["portcullis", "portcullis-composites"].into_iter().flat_map(|name| self.bundles(kind, name))
        });
        all.collect::<Vec<_>>().iter().all(|bundle| bundle == text)
    }

    /// Annotates the Secret of the CA, which makes the replicas replace the CA.
    pub fn request_new_ca(&self) {
        let annotate = ["annotate", "secret", "portcullis-ca", "-n", "portcullis-system"];
        let asked = self.cluster.kubectl().args(annotate).args(["--overwrite", "portcullis.dev/renew-ca=now"]).run();
        asked.expect_success();
    }
}

/// Returns the output of `portcullis manifests` for a server at `address`.
fn manifests(cluster: &Cluster, address: SocketAddr, certificates: &Certificates) -> Manifests {
    let folder: PathBuf = cluster.folder().join("manifests");
    fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(BINARY);
    command.arg("manifests").arg("--out").arg(&folder).arg("--url").arg(format!("https://{address}"));
    if let Certificates::Mounted { authority, .. } = certificates {
        let ca = cluster.folder().join("ca.crt");
        let root = authority.root_pem();
        fs::write(&ca, root).unwrap();
        command.arg("--ca-bundle").arg(ca);
    }
    assert!(command.status().unwrap().success());
    Manifests::read(&folder).unwrap()
}

/// Applies manifests to a cluster as its administrator.
pub fn apply(cluster: &Cluster, manifests: &str) {
    cluster.kubectl().args(["apply", "--server-side", "-f", "-"]).stdin(manifests).run().expect_success();
}
