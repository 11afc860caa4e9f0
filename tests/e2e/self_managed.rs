//! Tests of replicas that manage their CA themselves, and write it into the caBundles of all webhooks of portcullis.
//! The tests run on a separate cluster.
//!
//! For this, the replicas have exactly the rights in `certs/self-managed.yaml`.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;

use crate::Case;
use crate::chaos_cluster::calls::Callers as _;
use crate::chaos_cluster::incidents::Incident;
use crate::chaos_cluster::stage::{Certificates, Clients, Stage};
use crate::chaos_cluster::writers::{Writers, counted_by_the_api_server};
use crate::context::Context;
use crate::sentences::eventually;
use crate::support::client::{self, Connection};
use crate::support::harness::review;
use crate::support::pki::Authority;

/// The tests of this file.
pub const CASES: &[Case] =
    &[("self_managed::a_self_managed_ca_survives_incidents", a_self_managed_ca_survives_incidents)];

/// The lifetime of a leaf certificate in seconds. A replica renews its leaf certificate after two thirds of this time,
/// so it can wait for a CA for the last third, eight seconds. A new CA takes an overlap of two seconds, and longer on a
/// busy machine.
const LEAF_LIFE: u32 = 24;

/// A webhook configuration of another owner, and a webhook of another owner in a configuration of portcullis.
const THEIRS: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: theirs}
webhooks:
- name: theirs.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: \"https://127.0.0.1:1/\"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: portcullis-composites}
webhooks:
- name: theirs.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: \"https://127.0.0.1:1/\"}
";

fn a_self_managed_ca_survives_incidents(_: &Context) {
    let clients = Clients { authority: Authority::new(), name: "kube-apiserver" };
    let stage = Stage::start(Certificates::SelfManaged { leaf_life: LEAF_LIFE }, Some(&clients));
    accepts_only_the_api_server(&stage, &clients);
    replicas_agree_on_one_ca(&stage);
    no_write_fails_while_ca_and_replicas_are_replaced(&stage);
    repairs_changed_bundles(&stage);
    rights_are_bound_to_names(&stage);
    restores_a_deleted_secret(&stage);
    leaves_foreign_webhooks_alone(&stage);
}

/// Checks that the server accepts only the client certificate of the API server. The webhooks are active, so the API
/// server has used its certificate. The other clients have no certificate, or a certificate with another name.
fn accepts_only_the_api_server(stage: &Stage, clients: &Clients) {
    let bundle = stage.secret("ca.crt").unwrap();
    let root = CertificateDer::from_pem_slice(bundle.as_bytes()).unwrap();
    let named = |name| client::config_with(&root, &clients.authority.client(name, &[]));
    let (taken, other) = (named(clients.name), named("somebody-else"));
    let nameless = client::config(&root, rustls::ALL_VERSIONS);
    let call = |config| {
        stage.cluster.block_on(async {
            let mut connection = Connection::open(stage.service.address, Arc::new(config)).await?;
            connection.post("/validate", &review("storm")).await
        })
    };
    assert_eq!(call(taken).unwrap().status, 200);
    assert!(call(other).is_err() && call(nameless).is_err());
    let replicas = stage.replicas.lock().unwrap();
    let refused = |reason: &str| {
        let line = format!("portcullis_refused_clients_total{{reason=\"{reason}\"}} ");
        replicas.iter().map(|replica| replica.metric(&line).unwrap()).sum::<f64>()
    };
    assert_eq!((refused("name"), refused("no_certificate"), refused("authority")), (1.0, 1.0, 0.0));
}

fn replicas_agree_on_one_ca(stage: &Stage) {
    let ca = stage.secret("ca.crt").expect("there is a CA");
    assert!(stage.secret("ca.key").unwrap().starts_with("-----BEGIN PRIVATE KEY-----"));
    eventually(|| stage.bundles_are(&ca).then_some(()));
    let prepared =
        |line| stage.replicas.lock().unwrap().iter().map(|replica| replica.metric(line).unwrap()).sum::<f64>();
    assert_eq!(prepared("portcullis_ca_steps_total{step=\"prepared\"} "), 1.0, "one of them made it");
    assert_eq!(prepared("portcullis_ca_errors_total "), 0.0);
}

fn no_write_fails_while_ca_and_replicas_are_replaced(stage: &Stage) {
    let before = counted_by_the_api_server(stage);
    let writers = Writers::start(stage);
    for (incident, times) in [(Incident::Rotation, 1), (Incident::CaChange, 1), (Incident::Restart, 2)] {
        let outcome = incident.pass(times, stage, &[&writers]).remove(0);
        assert!(outcome.failures.is_empty(), "{incident:?}: {:#?}", outcome.failures);
        assert!(outcome.calls > 20, "{incident:?}: only {} calls", outcome.calls);
    }
    assert_eq!(writers.unanswered(), 0);
    assert_eq!(counted_by_the_api_server(stage), before, "calls that failed and were let through");
}

fn repairs_changed_bundles(stage: &Stage) {
    let ca = stage.secret("ca.crt").unwrap();
    for patch in [
        r#"[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]"#,
        r#"[{"op": "replace", "path": "/webhooks/1/clientConfig/caBundle", "value": "bm8="}]"#,
    ] {
        let args = ["patch", "validatingwebhookconfiguration", "portcullis", "--type=json", "-p", patch];
        let patched = stage.cluster.kubectl().args(args).run();
        // The API server may reject the patch with the invalid certificate. Then there is nothing to repair.
        if patched.status.success() {
            eventually(|| stage.bundles_are(&ca).then_some(()));
        }
    }
    stage.until_active();
}

fn rights_are_bound_to_names(stage: &Stage) {
    let can_i = |what: &[&str]| {
        let args = [&["auth", "can-i", "--as=system:serviceaccount:portcullis-system:portcullis"][..], what].concat();
        stage.cluster.kubectl().args(args).run().stdout.trim() == "yes"
    };
    assert!(can_i(&["patch", "validatingwebhookconfigurations/portcullis"]));
    assert!(!can_i(&["patch", "validatingwebhookconfigurations/theirs"]));
    assert!(!can_i(&["get", "secrets/theirs", "-n", "portcullis-system"]));
    assert!(can_i(&["create", "secrets", "-n", "portcullis-system"]), "to restore a deleted one");
    assert!(!can_i(&["create", "secrets", "-n", "default"]));
}

fn leaves_foreign_webhooks_alone(stage: &Stage) {
    let kubectl = |args: &[&str]| stage.cluster.kubectl().args(args).run().expect_success().stdout;
    let args = ["apply", "--server-side", "--field-manager=theirs", "-f", "-"];
    stage.cluster.kubectl().args(args).stdin(THEIRS).run().expect_success();
    let theirs = ["get", "validatingwebhookconfiguration", "theirs", "-o", "json"];
    let version = |text: &str| serde_json::from_str::<Value>(text).unwrap()["metadata"]["resourceVersion"].clone();
    let before = version(&kubectl(&theirs));
    // Removes a caBundle of portcullis. When it is repaired, the replicas have also read the configuration of the other
    // owner, and have not changed it.
    let ours = ["patch", "validatingwebhookconfiguration", "portcullis", "--type=json", "-p"];
    kubectl(&[&ours[..], &[r#"[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]"#]].concat());
    let bundles = |kind, name| stage.bundles(kind, name);
    eventually(|| bundles("validatingwebhookconfiguration", "portcullis")[0].contains("CERTIFICATE").then_some(()));
    assert_eq!(version(&kubectl(&theirs)), before);
    let composites = bundles("mutatingwebhookconfiguration", "portcullis-composites");
    assert_eq!(composites.iter().filter(|bundle| bundle.is_empty()).count(), 1, "{composites:?}");
}

/// Checks that a running replica restores a deleted Secret with the same CA, which it has in memory. Leaf certificates
/// and caBundles do not change.
fn restores_a_deleted_secret(stage: &Stage) {
    let ca = stage.secret("ca.crt").unwrap();
    let writers = Writers::start(stage);
    let before = counted_by_the_api_server(stage);
    let args = ["-n", "portcullis-system", "delete", "secret", "portcullis-ca"];
    stage.cluster.kubectl().args(args).run().expect_success();
    let restored = eventually(|| stage.secret("ca.crt"));
    assert_eq!(restored, ca);
    eventually(|| stage.bundles_are(&ca).then_some(()));
    let (outcome, restarted) = (Incident::Restart.pass(1, stage, &[&writers]).remove(0), stage.secret("ca.crt"));
    assert!(outcome.failures.is_empty(), "{:#?}", outcome.failures);
    assert_eq!(restarted.unwrap(), ca, "a replica that starts afterwards uses the same CA");
    let failures = writers.tally().failures_after(0);
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(counted_by_the_api_server(stage), before, "failed calls that were admitted");
}
