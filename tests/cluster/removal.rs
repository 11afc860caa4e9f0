//! Scenarios of failed installations, emergencies and uninstallation, with the commands of the documentation.

use std::time::Duration;

use crate::documentation::Page;
use crate::scenarios::{APPLY_WRONG_TREE, INSTALL, WAIT_FOR_ROLLOUT, check_denial_on_page};
use crate::stage::TestEnvironment;

const ADMISSION_TIMEOUT: Duration = Duration::from_mins(2);
const CREATE_FRAGMENT: &str = "kubectl create --dry-run=server -f fragment.yaml";
/// A correct object of a kind that a webhook with `failurePolicy: Fail` checks.
const FRAGMENT: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DryRunConfiguration
metadata: {name: emergency, namespace: default}
spec: {exports: []}
";

/// Stops all replicas, and follows docs/emergency.md: first the commands that make the API server admit requests again,
/// and then the commands of the section on recovery.
pub fn emergency(environment: &mut TestEnvironment) -> Result<(), String> {
    let page = Page::read("emergency.md");
    environment.shell.write("fragment.yaml", FRAGMENT);
    environment.succeed("kubectl -n portcullis-system scale deployment/portcullis --replicas=0")?;
    let refused = environment.wait_until(ADMISSION_TIMEOUT, CREATE_FRAGMENT, |answer| !answer.is_success)?;
    if !refused.contains("failed calling webhook") {
        return Err(format!("the webhook must fail, as the page describes: {refused}"));
    }
    environment.succeed(&page.block("# In an emergency", "sh", 0))?;
    environment.wait_until(ADMISSION_TIMEOUT, CREATE_FRAGMENT, |answer| answer.is_success)?;
    // The recovery must also restore a Secret that is deleted while no replica runs.
    environment.succeed("kubectl -n portcullis-system delete secret portcullis-ca")?;
    environment.succeed(&page.block("## Recovery", "sh", 0))?;
    environment.succeed(WAIT_FOR_ROLLOUT)?;
    environment
        .wait_until(ADMISSION_TIMEOUT, &format!("{APPLY_WRONG_TREE} --dry-run=server"), |answer| !answer.is_success)?;
    environment.succeed(CREATE_FRAGMENT)?;
    Ok(())
}

/// Tests the removal of a failed installation. Installs a release whose servers do not answer webhook requests, and
/// removes it with the steps in docs/install.md.
pub fn fail_to_install(environment: &mut TestEnvironment) -> Result<(), String> {
    environment.shell.write("fragment.yaml", FRAGMENT);
    // The pods become ready, but the servers do not listen on the port to which the Service sends requests.
    let unreachable = format!("{INSTALL} --set arguments={{--listen=[::]:9999}} --set verify.seconds=10");
    let failed = environment.shell.run(&unreachable).failure()?;
    if !failed.contains("NOT ANSWERED") {
        return Err(format!("Helm must print the log of the hook: {failed}"));
    }
    environment.wait_until(ADMISSION_TIMEOUT, CREATE_FRAGMENT, |answer| !answer.is_success)?;
    environment.succeed(&Page::read("install.md").block("## If the installation fails", "sh", 0))?;
    environment.wait_until(ADMISSION_TIMEOUT, CREATE_FRAGMENT, |answer| answer.is_success)?;
    uninstall(environment)
}

/// Installs and removes Portcullis without Helm, as docs/install.md says. In between, checks that a rule denies an
/// object.
pub fn install_without_helm(environment: &mut TestEnvironment) -> Result<(), String> {
    let page = Page::read("install.md");
    environment.succeed(&page.block("## Without Helm", "sh", 0))?;
    environment
        .wait_until(ADMISSION_TIMEOUT, &format!("{APPLY_WRONG_TREE} --dry-run=server"), |answer| !answer.is_success)?;
    environment
        .succeed("kubectl -n portcullis-system rollout status deployment/portcullis-companion --timeout=300s")?;
    environment.succeed(&page.block("## Without Helm", "sh", 1))?;
    check_removal(environment)
}

/// Uninstalls the release as docs/uninstalling.md says.
pub fn uninstall(environment: &mut TestEnvironment) -> Result<(), String> {
    environment.succeed(&Page::read("uninstalling.md").block("# Uninstalling", "sh", 0))?;
    check_removal(environment)
}

/// Uninstalls a release whose pods cannot start, as docs/uninstalling.md says.
pub fn uninstall_without_pods(environment: &mut TestEnvironment) -> Result<(), String> {
    environment.succeed(INSTALL)?;
    environment.succeed(
        "kubectl -n portcullis-system set image deployment/portcullis portcullis=registry.example/missing:1
         kubectl -n portcullis-system scale deployment/portcullis --replicas=0
         kubectl -n portcullis-system scale deployment/portcullis --replicas=2",
    )?;
    environment.succeed(&Page::read("uninstalling.md").block("# Uninstalling", "sh", 1))?;
    check_removal(environment)
}

/// Deletes the namespace without uninstalling the release first, and removes the remaining objects as
/// docs/uninstalling.md says.
pub fn delete_namespace(environment: &mut TestEnvironment) -> Result<(), String> {
    environment.succeed(INSTALL)?;
    environment.succeed("kubectl delete namespace portcullis-system --timeout=300s")?;
    environment.shell.write("fragment.yaml", FRAGMENT);
    environment.wait_until(ADMISSION_TIMEOUT, CREATE_FRAGMENT, |answer| !answer.is_success)?;
    let page = Page::read("uninstalling.md");
    environment.succeed(page.block("# Uninstalling", "sh", 1).lines().next().ok_or("the block is empty")?)?;
    environment.succeed(&page.block("# Uninstalling", "sh", 2))?;
    check_removal(environment)
}

/// Installs the release into a namespace that enforces the Pod Security Standard `restricted`, and uninstalls it.
pub fn install_restricted(environment: &mut TestEnvironment) -> Result<(), String> {
    environment.succeed(
        "kubectl create namespace portcullis-system
         kubectl label namespace portcullis-system pod-security.kubernetes.io/enforce=restricted",
    )?;
    environment.succeed(INSTALL)?;
    environment.succeed(WAIT_FOR_ROLLOUT)?;
    environment
        .succeed("kubectl -n portcullis-system rollout status deployment/portcullis-companion --timeout=300s")?;
    uninstall(environment)
}

/// Follows docs/getting-started.md from the installation to the removal. Checks that the denial is the same as on this
/// page, and that the log contains a record of the denial.
pub fn get_started(environment: &mut TestEnvironment) -> Result<(), String> {
    let page = Page::read("getting-started.md");
    environment.succeed(&page.block("## 2. Install Portcullis", "sh", 0))?;
    check_denial_on_page(environment, &page)?;
    let applied = page.block("## 4. Apply the fixed tree", "console", 0);
    let command = applied.lines().next().ok_or("the block is empty")?;
    environment.succeed(command.trim_start_matches("$ "))?;
    let found = environment.succeed(&page.block("## 5. Find the denial in the logs", "sh", 0))?;
    if !found.contains("KZ001") {
        return Err(format!("the log must contain the denial: {found}"));
    }
    environment.succeed(&page.block("## 6. Remove Portcullis", "sh", 0))?;
    environment.succeed("kubectl delete -f examples/getting-started/right.yaml")?;
    check_removal(environment)
}

fn check_removal(environment: &TestEnvironment) -> Result<(), String> {
    environment.succeed(&format!("{APPLY_WRONG_TREE}\nkubectl delete -f examples/getting-started/wrong.yaml"))?;
    let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
    let remaining = environment.succeed(&format!("kubectl get {kinds} -o name"))?;
    if remaining.contains("/portcullis") { Err(format!("webhook configurations remain: {remaining}")) } else { Ok(()) }
}
