//! Scenarios of failed installations, emergencies and uninstallation, with the commands of the documentation.

use std::time::Duration;

use crate::documentation::Page;
use crate::scenarios::{INSTALL, ROLLED_OUT, WRONG, is_denied_as_shown};
use crate::stage::Stage;

const GONE: Duration = Duration::from_mins(2);
const RIGHT: &str = "kubectl create --dry-run=server -f fragment.yaml";
/// A correct object of a kind that a webhook with `failurePolicy: Fail` checks.
const FRAGMENT: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DryRunConfiguration
metadata: {name: emergency, namespace: default}
spec: {exports: []}
";

/// Stops all replicas, admits requests again as docs/emergency.md says, and follows its section on recovery.
pub fn emergency(stage: &mut Stage) -> Result<(), String> {
    let page = Page::read("emergency.md");
    stage.shell.write("fragment.yaml", FRAGMENT);
    stage.succeed("kubectl -n portcullis-system scale deployment/portcullis --replicas=0")?;
    let refused = stage.until(GONE, RIGHT, |answer| !answer.is_success)?;
    if !refused.contains("failed calling webhook") {
        return Err(format!("the page describes a webhook that is not answered: {refused}"));
    }
    stage.succeed(&page.block("# In an emergency", "sh", 0))?;
    stage.until(GONE, RIGHT, |answer| answer.is_success)?;
    // The recovery must also restore a Secret that is deleted while no replica runs.
    stage.succeed("kubectl -n portcullis-system delete secret portcullis-ca")?;
    stage.succeed(&page.block("## Recovery", "sh", 0))?;
    stage.succeed(ROLLED_OUT)?;
    stage.until(GONE, &format!("{WRONG} --dry-run=server"), |answer| !answer.is_success)?;
    stage.succeed(RIGHT)?;
    Ok(())
}

/// Installs a release whose servers do not answer the webhooks, and removes it as docs/install.md says.
pub fn fail_to_install(stage: &mut Stage) -> Result<(), String> {
    stage.shell.write("fragment.yaml", FRAGMENT);
    // The pods become ready, but the servers do not listen on the port to which the Service sends requests.
    let unreachable = format!("{INSTALL} --set arguments={{--listen=[::]:9999}} --set verify.seconds=10");
    let failed = stage.shell.run(&unreachable).failure()?;
    if !failed.contains("NOT ANSWERED") {
        return Err(format!("Helm was to print the log of the hook: {failed}"));
    }
    stage.until(GONE, RIGHT, |answer| !answer.is_success)?;
    stage.succeed(&Page::read("install.md").block("## If the installation fails", "sh", 0))?;
    stage.until(GONE, RIGHT, |answer| answer.is_success)?;
    uninstall(stage)
}

/// Installs and removes Portcullis without Helm, as docs/install.md says. In between, checks that a rule denies an
/// object.
pub fn install_without_helm(stage: &mut Stage) -> Result<(), String> {
    let page = Page::read("install.md");
    stage.succeed(&page.block("## Without Helm", "sh", 0))?;
    stage.until(GONE, &format!("{WRONG} --dry-run=server"), |answer| !answer.is_success)?;
    stage.succeed("kubectl -n portcullis-system rollout status deployment/portcullis-companion --timeout=300s")?;
    stage.succeed(&page.block("## Without Helm", "sh", 1))?;
    is_writable_and_unregistered(stage)
}

/// Uninstalls the release as docs/uninstalling.md says.
pub fn uninstall(stage: &mut Stage) -> Result<(), String> {
    stage.succeed(&Page::read("uninstalling.md").block("# Uninstalling", "sh", 0))?;
    is_writable_and_unregistered(stage)
}

/// Uninstalls a release whose pods cannot start, as docs/uninstalling.md says.
pub fn uninstall_without_pods(stage: &mut Stage) -> Result<(), String> {
    stage.succeed(INSTALL)?;
    stage.succeed(
        "kubectl -n portcullis-system set image deployment/portcullis portcullis=registry.example/missing:1
         kubectl -n portcullis-system scale deployment/portcullis --replicas=0
         kubectl -n portcullis-system scale deployment/portcullis --replicas=2",
    )?;
    stage.succeed(&Page::read("uninstalling.md").block("# Uninstalling", "sh", 1))?;
    is_writable_and_unregistered(stage)
}

/// Deletes the namespace without uninstalling the release first, and removes the remaining objects as
/// docs/uninstalling.md says.
pub fn delete_namespace(stage: &mut Stage) -> Result<(), String> {
    stage.succeed(INSTALL)?;
    stage.succeed("kubectl delete namespace portcullis-system --timeout=300s")?;
    stage.shell.write("fragment.yaml", FRAGMENT);
    stage.until(GONE, RIGHT, |answer| !answer.is_success)?;
    let page = Page::read("uninstalling.md");
    stage.succeed(page.block("# Uninstalling", "sh", 1).lines().next().ok_or("the block is empty")?)?;
    stage.succeed(&page.block("# Uninstalling", "sh", 2))?;
    is_writable_and_unregistered(stage)
}

/// Installs the release into a namespace that enforces the Pod Security Standard `restricted`, and uninstalls it.
pub fn install_restricted(stage: &mut Stage) -> Result<(), String> {
    stage.succeed(
        "kubectl create namespace portcullis-system
         kubectl label namespace portcullis-system pod-security.kubernetes.io/enforce=restricted",
    )?;
    stage.succeed(INSTALL)?;
    stage.succeed(ROLLED_OUT)?;
    stage.succeed("kubectl -n portcullis-system rollout status deployment/portcullis-companion --timeout=300s")?;
    uninstall(stage)
}

/// Follows docs/getting-started.md from the installation to the removal. Checks the denial on the page, and its log
/// record.
pub fn get_started(stage: &mut Stage) -> Result<(), String> {
    let page = Page::read("getting-started.md");
    stage.succeed(&page.block("## 2. Install Portcullis", "sh", 0))?;
    is_denied_as_shown(stage, &page)?;
    let applied = page.block("## 4. Apply the fixed tree", "console", 0);
    let command = applied.lines().next().ok_or("the block is empty")?;
    stage.succeed(command.trim_start_matches("$ "))?;
    let found = stage.succeed(&page.block("## 5. Find the denial in the logs", "sh", 0))?;
    if !found.contains("KZ001") {
        return Err(format!("the log was to show the denial: {found}"));
    }
    stage.succeed(&page.block("## 6. Remove Portcullis", "sh", 0))?;
    stage.succeed("kubectl delete -f examples/getting-started/right.yaml")?;
    is_writable_and_unregistered(stage)
}

fn is_writable_and_unregistered(stage: &Stage) -> Result<(), String> {
    stage.succeed(&format!("{WRONG}\nkubectl delete -f examples/getting-started/wrong.yaml"))?;
    let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
    let left = stage.succeed(&format!("kubectl get {kinds} -o name"))?;
    if left.contains("/portcullis") { Err(format!("left behind: {left}")) } else { Ok(()) }
}
