//! Scenarios that change `certificate.way`, which selects who issues the serving certificate. cert-manager's own
//! controllers run.

use std::time::Duration;

use crate::documentation::Page;
use crate::pki;
use crate::scenarios::{ROLLED_OUT, UPGRADE};
use crate::stage::Stage;

const ISSUED: Duration = Duration::from_mins(1);
/// Shell command that prints the serving certificate from the Secret that cert-manager writes.
const LEAF: &str = "kubectl -n portcullis-system get secret portcullis-cert-manager -o jsonpath='{.data.tls\\.crt}'";

/// Changes `certificate.way` to `secret`, as docs/install.md says, and back to `self-managed`.
pub fn change_to_secret(stage: &mut Stage) -> Result<(), String> {
    write_certificate(stage)?;
    to_secret(stage)?;
    to(stage, "self-managed")?;
    stage.succeed("kubectl -n portcullis-system delete secret portcullis-certs")?;
    Ok(())
}

/// Changes `certificate.way` to `cert-manager`, once from `self-managed` and once from `secret`, and then back to
/// `self-managed`. In between, cert-manager issues a new leaf certificate.
pub fn change_to_cert_manager(stage: &mut Stage) -> Result<(), String> {
    let crds = stage.node.cert_manager_crds();
    stage.succeed(&format!(
        "kubectl apply --server-side -f {}\nkubectl wait --for=condition=Established crd --all --timeout=60s",
        crds.display()
    ))?;
    stage.node.start_cert_manager().map_err(|error| error.to_string())?;
    to(stage, "cert-manager")?;
    issue_another_leaf(stage)?;
    write_certificate(stage)?;
    to_secret(stage)?;
    to(stage, "cert-manager")?;
    to(stage, "self-managed")?;
    stage.node.stop_cert_manager();
    stage.succeed("kubectl -n portcullis-system delete secret portcullis-certs")?;
    Ok(())
}

fn to(stage: &Stage, way: &str) -> Result<(), String> {
    stage
        .succeed(&format!("{UPGRADE} --wait --set certificate.way={way} --set certificate.caBundle=\n{ROLLED_OUT}"))?;
    Ok(())
}

fn to_secret(stage: &Stage) -> Result<(), String> {
    stage.succeed(&Page::read("install.md").block("### Change how the certificate is issued", "sh", 0))?;
    stage.succeed(ROLLED_OUT)?;
    Ok(())
}

/// Deletes the Secret of the leaf certificate, and waits until cert-manager has issued a new one.
fn issue_another_leaf(stage: &Stage) -> Result<(), String> {
    let before = stage.succeed(LEAF)?;
    stage.succeed("kubectl -n portcullis-system delete secret portcullis-cert-manager")?;
    stage.until(ISSUED, LEAF, |answer| answer.is_success && !answer.text.is_empty() && answer.text != before)?;
    Ok(())
}

/// Creates a CA, writes its certificate to `ca.crt`, and creates a Secret with a certificate that this CA issued.
fn write_certificate(stage: &Stage) -> Result<(), String> {
    let folder = stage.shell.folder();
    let subject = pki::Subject {
        file: "portcullis",
        user: "portcullis",
        group: "",
        names: vec!["portcullis.portcullis-system.svc".to_owned()],
    };
    let issued = pki::Authority::create(folder).and_then(|authority| authority.issue(folder, &subject));
    issued.map_err(|error| error.to_string())?;
    stage.succeed(
        "kubectl -n portcullis-system create secret tls portcullis-certs --cert=portcullis.crt --key=portcullis.key",
    )?;
    Ok(())
}
