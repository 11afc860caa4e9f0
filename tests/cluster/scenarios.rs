//! The scenarios in the order in which they run. Each scenario starts with the state of the cluster that the previous
//! one left.

use std::time::Duration;

use crate::documentation::Page;
use crate::stage::Expected::{EveryWriteIsAnswered, EveryWriteIsChecked, FailuresOfKilledProcesses, NoWrites};
use crate::stage::{Expected, Scenario, TestEnvironment};
use crate::{certificates, changes, faults, removal};

/// Timeout for the servers to reload a changed configuration. The servers read the configuration from a mounted
/// ConfigMap, which the kubelet updates within about a minute.
pub const RELOAD_TIMEOUT: Duration = Duration::from_mins(3);
/// Shell command that applies a ConfigMap with a kustomize tree that violates rule KZ001.
pub const APPLY_WRONG_TREE: &str = "kubectl apply -f examples/getting-started/wrong.yaml";
/// Shell command that waits until all pods of the server have the current template and are ready.
pub const WAIT_FOR_ROLLOUT: &str = "kubectl -n portcullis-system rollout status deployment/portcullis --timeout=300s";
/// Shell command that installs the chart again after it was uninstalled. The scenario `install` writes `values.yaml`.
pub const INSTALL: &str = "helm install portcullis charts/portcullis --namespace portcullis-system --create-namespace \
                           --values values.yaml --set config.rules.KZ=deny";
/// Shell command that upgrades the release and keeps its values. Callers append further values.
pub const UPGRADE: &str =
    "helm upgrade portcullis charts/portcullis --namespace portcullis-system --reset-then-reuse-values";

/// All scenarios. The first one installs the release.
#[rustfmt::skip]
pub const ALL: &[Scenario] = &[
    scenario("install", "install, as docs/install.md says", NoWrites, install),
    scenario("restart", "`kubectl rollout restart`", EveryWriteIsChecked, changes::restart),
    scenario("upgrade", "upgrade to another image, and rollback", EveryWriteIsChecked, changes::upgrade),
    scenario("scale", "scale to one replica, and back", EveryWriteIsChecked, changes::scale),
    scenario("drain", "delete the pods one by one", EveryWriteIsChecked, changes::drain),
    scenario("configuration", "change a level in the configuration, and back", EveryWriteIsChecked, changes::configure),
    scenario("bad-configuration", "upgrade to a configuration that is invalid", EveryWriteIsChecked, changes::configure_badly),
    scenario("kill", "SIGKILL of one of two servers", FailuresOfKilledProcesses, faults::kill),
    scenario("ca-secret", "delete the Secret of the CA, and restart", EveryWriteIsChecked, faults::delete_ca),
    scenario("certificate-way", "change `certificate.way` to `secret`, and back", EveryWriteIsChecked, certificates::change_to_secret),
    scenario("cert-manager", "change `certificate.way` to `cert-manager`, to `secret`, and back", EveryWriteIsChecked, certificates::change_to_cert_manager),
    scenario("api-server", "restart the API server", EveryWriteIsChecked, faults::restart_api_server),
    scenario("reboot", "reboot: SIGKILL of every process of the node", FailuresOfKilledProcesses, faults::reboot),
    scenario("emergency", "scale to zero, docs/emergency.md, and recovery", NoWrites, removal::emergency),
    scenario("uninstall", "uninstall, as docs/uninstalling.md says", EveryWriteIsAnswered, removal::uninstall),
    scenario("uninstall-without-pods", "uninstall without pods that run", NoWrites, removal::uninstall_without_pods),
    scenario("namespace", "delete the namespace first, and repair it", NoWrites, removal::delete_namespace),
    // Creates the namespace again, which `removal::delete_namespace` deleted.
    scenario("restricted", "install with Pod Security `restricted`, and uninstall", NoWrites, removal::install_restricted),
    scenario("failed-install", "install servers that do not answer, and repair it", NoWrites, removal::fail_to_install),
    scenario("without-helm", "install without Helm, and uninstall", NoWrites, removal::install_without_helm),
    scenario("newcomer", "docs/getting-started.md", NoWrites, removal::get_started),
    scenario("ipv6", "start over with an IPv6-only network, and install", NoWrites, faults::change_to_ipv6),
    scenario("ipv6-restart", "`kubectl rollout restart`, IPv6 only", EveryWriteIsChecked, changes::restart),
];

const fn scenario(
    name: &'static str,
    description: &'static str,
    expected: Expected,
    run: fn(&mut TestEnvironment) -> Result<(), String>,
) -> Scenario {
    Scenario { name, description, expected, run }
}

/// Installs the chart as docs/install.md says, and checks that a tree with a mistake is denied as
/// docs/getting-started.md shows.
fn install(environment: &mut TestEnvironment) -> Result<(), String> {
    let page = Page::read("install.md");
    environment.succeed(&page.block("## 2. Install the chart in shadow mode", "sh", 0))?;
    let verified = environment.succeed("portcullis verify")?;
    if !verified.contains(concat!("configmaps (KZ): portcullis ", env!("CARGO_PKG_VERSION"), " answers")) {
        return Err(format!("verify printed\n{verified}"));
    }
    environment.succeed(APPLY_WRONG_TREE)?;
    environment.succeed("kubectl delete -f examples/getting-started/wrong.yaml")?;
    environment.shell.write("values.yaml", &page.block("## 3. Enforce the rules", "yaml", 0));
    environment.succeed(&page.block("## 3. Enforce the rules", "sh", 0))?;
    let dry_run = format!("{APPLY_WRONG_TREE} --dry-run=server");
    environment
        .wait_until(RELOAD_TIMEOUT, &dry_run, |answer| answer.is_success && answer.text.contains("Warning: KZ001"))?;
    check_denial_of_getting_started(environment)
}

/// Sets the level of family KZ to `deny`, and checks that a tree with a mistake is denied as docs/getting-started.md
/// shows. docs/install.md sets this level only to `warn`.
fn check_denial_of_getting_started(environment: &TestEnvironment) -> Result<(), String> {
    environment.succeed(&format!("{UPGRADE} --set config.rules.KZ=deny"))?;
    environment
        .wait_until(RELOAD_TIMEOUT, &format!("{APPLY_WRONG_TREE} --dry-run=server"), |answer| !answer.is_success)?;
    // The servers reload the configuration file at different times. After a restart, all of them use the new file.
    environment
        .succeed(&format!("kubectl -n portcullis-system rollout restart deployment/portcullis\n{WAIT_FOR_ROLLOUT}"))?;
    check_denial_on_page(environment, &Page::read("getting-started.md"))
}

/// Runs the command of docs/getting-started.md that applies a tree with a mistake. Checks that the output is the denial
/// that this page shows.
pub fn check_denial_on_page(environment: &TestEnvironment, page: &Page) -> Result<(), String> {
    let shown = page.block("## 3. Apply a tree with a mistake", "console", 0);
    let (command, expected) = shown.split_once('\n').ok_or("the page shows no output")?;
    let denied = environment.shell.run(command.trim_start_matches("$ ")).failure()?;
    // kubectl writes a space at the end of its first line.
    let lines = |text: &str| text.trim().lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    if lines(&denied) == lines(expected) {
        return Ok(());
    }
    Err(format!("the page shows\n{expected}\nand kubectl\n{denied}"))
}
