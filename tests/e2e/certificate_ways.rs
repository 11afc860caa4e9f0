//! Tests that change the way in which certificates are issued, while clients write objects to the API server.
//!
//! For each change, every replica is replaced with a new one. The new replicas have the arguments that the chart
//! renders for the new way. The webhook configurations of the chart are applied again, as Helm 4 and Helm 3 apply them.
//! The cluster has no kubelet and no Deployment controller, and the hooks of the chart do not run.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::Case;
use crate::chaos_cluster::calls::Callers as _;
use crate::chaos_cluster::incidents;
use crate::chaos_cluster::stage::{Certificates, TestEnvironment};
use crate::chaos_cluster::writers::{Writers, failed_webhook_calls, logged_failures_and_steps};
use crate::context::Context;
use crate::helm::{Helm, RELEASE, Rendered, list};
use crate::sentences::eventually;
use crate::support::pki::{Authority, SecretMount};

/// The tests of this file.
pub const CASES: &[Case] = &[(
    "certificate_ways::no_request_fails_while_certificate_way_changes",
    no_request_fails_while_certificate_way_changes,
)];

const REPLICAS: usize = 2;
/// The lifetime of a leaf certificate in seconds. The constant of the same name in `self_managed` explains the value.
const LEAF_LIFE: u32 = 24;

/// A way to issue certificates: the chart values, and the files that would be mounted into a Pod.
struct Way {
    values: Value,
    mounted: Option<Mounted>,
}

struct Mounted {
    authority: Authority,
    mount: SecretMount,
    /// A local folder with the content of the chart's ConfigMap. In a Pod, the server reads the mounted ConfigMap. In
    /// this test, it reads this folder instead.
    config: PathBuf,
}

fn no_request_fails_while_certificate_way_changes(_: &Context) {
    let environment = TestEnvironment::start(Certificates::SelfManaged { leaf_life: LEAF_LIFE }, None);
    let folder = |name: &str| environment.cluster.folder().join(name);
    let secret = Way::secret(folder("secret"));
    let other_secret = Way::secret(folder("other-secret"));
    let cert_manager = Way::cert_manager(folder("cert-manager"));
    let self_managed = Way { values: json!({"certificate": {"way": "self-managed"}}), mounted: None };
    let installed = render_chart(&self_managed);
    let install = ["apply", "--server-side", "--force-conflicts", "--field-manager=helm", "-f", "-"];
    environment.cluster.kubectl().args(install).stdin(registration(&environment, &installed)).run().expect_success();
    for (way, name) in [
        (&secret, "self-managed to secret"),
        (&other_secret, "secret with another CA"),
        (&cert_manager, "secret to cert-manager"),
        (&self_managed, "cert-manager to self-managed"),
        (&cert_manager, "self-managed to cert-manager"),
        (&secret, "cert-manager to secret"),
        (&self_managed, "secret to self-managed"),
    ] {
        let writers = Writers::start(&environment);
        let failed_before = failed_webhook_calls(&environment);
        eventually(|| (writers.tally().calls() > 20).then_some(()));
        change_way(&environment, way);
        let calls = writers.tally().calls();
        eventually(|| (writers.tally().calls() > calls + 20).then_some(()));
        let failures = writers.tally().failures_after(0);
        assert!(failures.is_empty(), "{name}: {failures:#?}");
        assert_eq!(writers.other_errors(), 0, "{name}");
        let failed = failed_webhook_calls(&environment) - failed_before;
        assert_eq!(failed, 0, "{name}: {:#?}", logged_failures_and_steps(&environment));
        way.assert_in_every_ca_bundle(&environment);
    }
}

/// Simulates an upgrade with Helm to another way to issue certificates. Replaces the replicas one by one: a new replica
/// is ready before an old one ends. Applies the webhook configurations after the first replacement, and again at the
/// end.
fn change_way(environment: &TestEnvironment, way: &Way) {
    let rendered = render_chart(way);
    let arguments = way.arguments(&rendered);
    for at in 0..REPLICAS {
        if at == 1 {
            register(environment, &rendered);
        }
        environment.add_replica_with(&arguments);
        incidents::end_oldest(environment);
    }
    register(environment, &rendered);
}

fn render_chart(way: &Way) -> Rendered {
    Helm::find().and_then(|helm| helm.render(&way.values)).expect("Helm renders the chart")
}

/// Applies the webhook configurations twice: first server-side, as Helm 4 does, and then client-side, as Helm 3 does.
/// The server-side apply fails if there is a conflict.
fn register(environment: &TestEnvironment, rendered: &Rendered) {
    for apply in [&["apply", "--server-side", "--field-manager=helm", "-f", "-"][..], &["apply", "-f", "-"]] {
        environment.cluster.kubectl().args(apply).stdin(registration(environment, rendered)).run().expect_success();
    }
}

fn registration(environment: &TestEnvironment, rendered: &Rendered) -> String {
    let registration: Vec<_> = rendered
        .objects
        .iter()
        .filter(|object| object["kind"].as_str().is_some_and(|kind| kind.ends_with("WebhookConfiguration")))
        .map(|object| with_local_url(object.clone(), environment))
        .collect();
    list(&registration)
}

/// Changes every webhook of a webhook configuration: replaces the reference to the Service with the local URL of the
/// simulated Service.
fn with_local_url(mut configuration: Value, environment: &TestEnvironment) -> Value {
    for webhook in configuration["webhooks"].as_array_mut().expect("the configuration has webhooks") {
        let client = webhook["clientConfig"].as_object_mut().expect("the webhook has a clientConfig");
        let service = client.remove("service").expect("the clientConfig has a service");
        let path = service["path"].as_str().expect("the service has a path");
        client.insert("url".to_owned(), json!(format!("https://{}{path}", environment.service.address)));
    }
    configuration
}

impl Way {
    fn secret(config: PathBuf) -> Self {
        let mounted = Mounted::new(config);
        let bundle = STANDARD.encode(mounted.authority.root_pem());
        Self { values: json!({"certificate": {"way": "secret", "caBundle": bundle}}), mounted: Some(mounted) }
    }

    fn cert_manager(config: PathBuf) -> Self {
        let mounted = Mounted::new(config);
        // cert-manager writes the CA into the Secret of the leaf certificate.
        std::fs::write(mounted.mount.path().join("ca.crt"), mounted.authority.root_pem())
            .expect("the file can be written");
        Self { values: json!({"certificate": {"way": "cert-manager"}}), mounted: Some(mounted) }
    }

    /// Returns the command-line arguments for a replica. These are the arguments about certificates that the chart
    /// renders, with paths of local folders instead of mount paths, and arguments for the tests, such as a short
    /// lifetime of leaf certificates.
    fn arguments(&self, rendered: &Rendered) -> Vec<String> {
        let certificate_flags = ["--certs", "--publish-ca", "--ca-state", "--self-managed"];
        let arguments = rendered.arguments(RELEASE).into_iter();
        let kept = arguments.filter(|argument| certificate_flags.iter().any(|flag| argument.starts_with(flag)));
        let replace_paths = |argument: String| match &self.mounted {
            None => argument,
            Some(mounted) => mounted.replace_mount_paths(&argument, rendered),
        };
        let names = ["127.0.0.1", "localhost"].map(|name| format!("--server-name={name}"));
        let names = names.into_iter().filter(|_| self.mounted.is_none());
        let timing = [format!("--leaf-life={LEAF_LIFE}s"), "--ca-life=30d".to_owned(), "--ca-overlap=2s".to_owned()];
        kept.map(replace_paths)
            .chain(names)
            .chain(timing)
            .chain(["--drain=10".to_owned(), "--log-format=text".to_owned()])
            .collect()
    }

    fn assert_in_every_ca_bundle(&self, environment: &TestEnvironment) {
        let Some(mounted) = &self.mounted else { return };
        let authority = mounted.authority.root_pem().replace('\r', "");
        for kind in ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"] {
            let bundles = environment.bundles(kind, RELEASE);
            assert!(bundles.iter().all(|bundle| bundle.contains(authority.trim())), "{bundles:?}");
        }
    }
}

impl Mounted {
    fn new(config: PathBuf) -> Self {
        std::fs::create_dir_all(&config).expect("the folder can be created");
        let authority = Authority::new();
        let mount = SecretMount::new(&authority.leaf());
        Self { authority, mount, config }
    }

    fn replace_mount_paths(&self, argument: &str, rendered: &Rendered) -> String {
        if let Some(authority) = rendered.find("ConfigMap", RELEASE)["data"]["ca.crt"].as_str() {
            std::fs::write(self.config.join("ca.crt"), authority).expect("the file can be written");
        }
        let (certs, config) = (self.mount.path().display().to_string(), self.config.display().to_string());
        argument.replace("/etc/portcullis/certs", &certs).replace("/etc/portcullis/config", &config)
    }
}
