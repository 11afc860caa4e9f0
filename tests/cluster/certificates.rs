//! Scenarios that change the value `certificate.way` of the chart, which selects who issues the serving certificate.
//! The real controllers of cert-manager run in the cluster.

use std::time::Duration;

use crate::documentation::Page;
use crate::pki;
use crate::scenarios::{UPGRADE, WAIT_FOR_ROLLOUT};
use crate::stage::TestEnvironment;

const ISSUE_TIMEOUT: Duration = Duration::from_mins(1);
/// Shell command that prints the serving certificate from the Secret that cert-manager writes.
const LEAF: &str = "kubectl -n portcullis-system get secret portcullis-cert-manager -o jsonpath='{.data.tls\\.crt}'";

/// Changes `certificate.way` to `secret`, as docs/install.md says, and back to `self-managed`.
pub fn change_to_secret(environment: &mut TestEnvironment) -> Result<(), String> {
    write_certificate(environment)?;
    change_way_to_secret(environment)?;
    change_way(environment, "self-managed")?;
    environment.succeed("kubectl -n portcullis-system delete secret portcullis-certs")?;
    Ok(())
}

/// Changes `certificate.way` from `self-managed` to `cert-manager`, and lets cert-manager issue a second leaf
/// certificate. Then changes the value to `secret`, to `cert-manager` again, and back to `self-managed`.
pub fn change_to_cert_manager(environment: &mut TestEnvironment) -> Result<(), String> {
    let crds = environment.node.cert_manager_crds();
    environment.succeed(&format!(
        "kubectl apply --server-side -f {}\nkubectl wait --for=condition=Established crd --all --timeout=60s",
        crds.display()
    ))?;
    environment.node.start_cert_manager().map_err(|error| error.to_string())?;
    change_way(environment, "cert-manager")?;
    issue_another_leaf(environment)?;
    write_certificate(environment)?;
    change_way_to_secret(environment)?;
    change_way(environment, "cert-manager")?;
    change_way(environment, "self-managed")?;
    environment.node.stop_cert_manager();
    environment.succeed("kubectl -n portcullis-system delete secret portcullis-certs")?;
    Ok(())
}

fn change_way(environment: &TestEnvironment, way: &str) -> Result<(), String> {
    environment.succeed(&format!(
        "{UPGRADE} --wait --set certificate.way={way} --set certificate.caBundle=\n{WAIT_FOR_ROLLOUT}"
    ))?;
    Ok(())
}

fn change_way_to_secret(environment: &TestEnvironment) -> Result<(), String> {
    environment.succeed(&Page::read("install.md").block("### Change how the certificate is issued", "sh", 0))?;
    environment.succeed(WAIT_FOR_ROLLOUT)?;
    Ok(())
}

/// Deletes the Secret of the leaf certificate, and waits until cert-manager has issued a new one.
fn issue_another_leaf(environment: &TestEnvironment) -> Result<(), String> {
    let before = environment.succeed(LEAF)?;
    environment.succeed("kubectl -n portcullis-system delete secret portcullis-cert-manager")?;
    environment.wait_until(ISSUE_TIMEOUT, LEAF, |answer| {
        answer.is_success && !answer.text.is_empty() && answer.text != before
    })?;
    Ok(())
}

/// Creates a CA, writes its certificate to `ca.crt`, and creates a Secret with a certificate that this CA issued.
fn write_certificate(environment: &TestEnvironment) -> Result<(), String> {
    let folder = environment.shell.folder();
    let subject = pki::Subject {
        file: "portcullis",
        user: "portcullis",
        group: "",
        names: vec!["portcullis.portcullis-system.svc".to_owned()],
    };
    let issued = pki::Authority::create(folder).and_then(|authority| authority.issue(folder, &subject));
    issued.map_err(|error| error.to_string())?;
    environment.succeed(
        "kubectl -n portcullis-system create secret tls portcullis-certs --cert=portcullis.crt --key=portcullis.key",
    )?;
    Ok(())
}
