//! Tests of replicas that manage their CA themselves, and write it into the caBundles of all webhooks of portcullis.
//! The tests run on a separate cluster.
//!
//! The replicas have exactly the rights in `certs/self-managed.yaml`.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;

use crate::Case;
use crate::chaos_cluster::calls::Callers as _;
use crate::chaos_cluster::incidents::Incident;
use crate::chaos_cluster::stage::{Certificates, Clients, TestEnvironment};
use crate::chaos_cluster::writers::{Writers, failed_webhook_calls};
use crate::context::Context;
use crate::sentences::eventually;
use crate::support::client::{self, Connection};
use crate::support::harness::review;
use crate::support::pki::Authority;

/// The tests of this file.
pub const CASES: &[Case] =
    &[("self_managed::a_self_managed_ca_survives_incidents", a_self_managed_ca_survives_incidents)];

/// The lifetime of a leaf certificate in seconds. A replica renews its leaf certificate after two thirds of this time.
/// If the CA changes at this moment, the replica has eight seconds to wait for the new CA. A change of the CA takes at
/// least the two seconds of `--ca-overlap`, and more on a busy machine.
const LEAF_LIFE: u32 = 24;

/// Webhooks that do not belong to portcullis: one in a separate webhook configuration, and one in a configuration of
/// portcullis. Used to check that the replicas do not change them.
const FOREIGN_WEBHOOKS: &str = "apiVersion: admissionregistration.k8s.io/v1
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
    let environment = TestEnvironment::start(Certificates::SelfManaged { leaf_life: LEAF_LIFE }, Some(&clients));
    accepts_only_the_api_server(&environment, &clients);
    replicas_agree_on_one_ca(&environment);
    no_write_fails_while_ca_and_replicas_are_replaced(&environment);
    repairs_changed_bundles(&environment);
    rights_are_bound_to_names(&environment);
    restores_a_deleted_secret(&environment);
    leaves_foreign_webhooks_alone(&environment);
}

/// Checks that the server accepts only the client certificate of the API server, and rejects two other clients: one
/// without a certificate, and one whose certificate has another name.
fn accepts_only_the_api_server(environment: &TestEnvironment, clients: &Clients) {
    let bundle = environment.secret("ca.crt").unwrap();
    let root = CertificateDer::from_pem_slice(bundle.as_bytes()).unwrap();
    let with_name = |name| client::config_with_client_certificate(&root, &clients.authority.client(name, &[]));
    let (accepted, other) = (with_name(clients.name), with_name("somebody-else"));
    let without_certificate = client::config(&root, rustls::ALL_VERSIONS);
    let call = |config| {
        environment.cluster.block_on(async {
            let mut connection = Connection::open(environment.service.address, Arc::new(config)).await?;
            connection.post("/validate", &review("storm")).await
        })
    };
    assert_eq!(call(accepted).unwrap().status, 200);
    assert!(call(other).is_err() && call(without_certificate).is_err());
    let replicas = environment.replicas.lock().unwrap();
    let rejected_clients = |reason: &str| {
        let line = format!("portcullis_refused_clients_total{{reason=\"{reason}\"}} ");
        replicas.iter().map(|replica| replica.metric(&line).unwrap()).sum::<f64>()
    };
    assert_eq!(
        (rejected_clients("name"), rejected_clients("no_certificate"), rejected_clients("authority")),
        (1.0, 1.0, 0.0)
    );
}

fn replicas_agree_on_one_ca(environment: &TestEnvironment) {
    let ca = environment.secret("ca.crt").expect("the Secret contains a CA");
    assert!(environment.secret("ca.key").unwrap().starts_with("-----BEGIN PRIVATE KEY-----"));
    eventually(|| environment.all_bundles_equal(&ca).then_some(()));
    let sum_of_metric =
        |line| environment.replicas.lock().unwrap().iter().map(|replica| replica.metric(line).unwrap()).sum::<f64>();
    assert_eq!(
        sum_of_metric("portcullis_ca_steps_total{step=\"prepared\"} "),
        1.0,
        "exactly one replica creates the CA"
    );
    assert_eq!(sum_of_metric("portcullis_ca_errors_total "), 0.0);
}

fn no_write_fails_while_ca_and_replicas_are_replaced(environment: &TestEnvironment) {
    let before = failed_webhook_calls(environment);
    let writers = Writers::start(environment);
    for (incident, times) in [(Incident::Rotation, 1), (Incident::CaChange, 1), (Incident::Restart, 2)] {
        let outcome = incident.run(times, environment, &[&writers]).remove(0);
        assert!(outcome.failures.is_empty(), "{incident:?}: {:#?}", outcome.failures);
        assert!(outcome.calls > 20, "{incident:?}: only {} calls", outcome.calls);
    }
    assert_eq!(writers.other_errors(), 0);
    assert_eq!(failed_webhook_calls(environment), before, "no webhook call may fail");
}

fn repairs_changed_bundles(environment: &TestEnvironment) {
    let ca = environment.secret("ca.crt").unwrap();
    for patch in [
        r#"[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]"#,
        r#"[{"op": "replace", "path": "/webhooks/1/clientConfig/caBundle", "value": "bm8="}]"#,
    ] {
        let args = ["patch", "validatingwebhookconfiguration", "portcullis", "--type=json", "-p", patch];
        let patched = environment.cluster.kubectl().args(args).run();
        // The API server may reject the patch with the invalid certificate. Then there is nothing to repair.
        if patched.status.success() {
            eventually(|| environment.all_bundles_equal(&ca).then_some(()));
        }
    }
    environment.wait_until_active();
}

fn rights_are_bound_to_names(environment: &TestEnvironment) {
    let can_i = |what: &[&str]| {
        let args = [&["auth", "can-i", "--as=system:serviceaccount:portcullis-system:portcullis"][..], what].concat();
        environment.cluster.kubectl().args(args).run().stdout.trim() == "yes"
    };
    assert!(can_i(&["patch", "validatingwebhookconfigurations/portcullis"]));
    assert!(!can_i(&["patch", "validatingwebhookconfigurations/theirs"]));
    assert!(!can_i(&["get", "secrets/theirs", "-n", "portcullis-system"]));
    assert!(
        can_i(&["create", "secrets", "-n", "portcullis-system"]),
        "the server needs this right to restore a deleted Secret"
    );
    assert!(!can_i(&["create", "secrets", "-n", "default"]));
}

fn leaves_foreign_webhooks_alone(environment: &TestEnvironment) {
    let kubectl = |args: &[&str]| environment.cluster.kubectl().args(args).run().expect_success().stdout;
    let args = ["apply", "--server-side", "--field-manager=theirs", "-f", "-"];
    environment.cluster.kubectl().args(args).stdin(FOREIGN_WEBHOOKS).run().expect_success();
    let theirs = ["get", "validatingwebhookconfiguration", "theirs", "-o", "json"];
    let version = |text: &str| serde_json::from_str::<Value>(text).unwrap()["metadata"]["resourceVersion"].clone();
    let before = version(&kubectl(&theirs));
    // Removes a caBundle of portcullis. When it is repaired, the replicas have also read the configuration of the other
    // owner, and have not changed it.
    let ours = ["patch", "validatingwebhookconfiguration", "portcullis", "--type=json", "-p"];
    kubectl(&[&ours[..], &[r#"[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]"#]].concat());
    let bundles = |kind, name| environment.bundles(kind, name);
    eventually(|| bundles("validatingwebhookconfiguration", "portcullis")[0].contains("CERTIFICATE").then_some(()));
    assert_eq!(version(&kubectl(&theirs)), before);
    let composites = bundles("mutatingwebhookconfiguration", "portcullis-composites");
    assert_eq!(composites.iter().filter(|bundle| bundle.is_empty()).count(), 1, "{composites:?}");
}

/// Checks that a running replica restores a deleted Secret with the same CA, which it has in memory. Leaf certificates
/// and caBundles do not change.
fn restores_a_deleted_secret(environment: &TestEnvironment) {
    let ca = environment.secret("ca.crt").unwrap();
    let writers = Writers::start(environment);
    let before = failed_webhook_calls(environment);
    let args = ["-n", "portcullis-system", "delete", "secret", "portcullis-ca"];
    environment.cluster.kubectl().args(args).run().expect_success();
    let restored = eventually(|| environment.secret("ca.crt"));
    assert_eq!(restored, ca);
    eventually(|| environment.all_bundles_equal(&ca).then_some(()));
    let (outcome, restarted) =
        (Incident::Restart.run(1, environment, &[&writers]).remove(0), environment.secret("ca.crt"));
    assert!(outcome.failures.is_empty(), "{:#?}", outcome.failures);
    assert_eq!(restarted.unwrap(), ca, "a replica that starts afterwards must use the same CA");
    let failures = writers.tally().failures_after(0);
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(failed_webhook_calls(environment), before, "no webhook call may fail");
}
