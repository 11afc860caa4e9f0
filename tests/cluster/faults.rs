//! Scenarios with faults: a killed server, a deleted Secret, restarts of the API server and of the node. Another
//! scenario starts a cluster that has only IPv6.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::network::IPV6;
use crate::scenarios::{INSTALL, RELOAD_TIMEOUT, WAIT_FOR_ROLLOUT};
use crate::stage::TestEnvironment;

/// Timeout for Portcullis to recover from a fault. It is long because the machine may be busy.
const RECOVERY_TIMEOUT: Duration = Duration::from_mins(2);
const CA: &str = "kubectl -n portcullis-system get secret portcullis-ca -o jsonpath='{.data.ca\\.crt}'";
/// Beginning of the command line of a server process, as in `/proc/<pid>/cmdline`.
const SERVER: &[u8] = b"/portcullis\0serve\0--";
/// Shell command that prints, for each pod of the server, the number of restarts and whether it is ready, such as
/// `1true`.
const RESTARTS: &str = "kubectl -n portcullis-system get pods -l app.kubernetes.io/name=portcullis \
                        -o jsonpath='{range .items[*]}{.status.containerStatuses[0].restartCount}{.status.containerStatuses[0].ready} {end}'";
/// Shell command that prints the IP addresses of the server's Service and pods.
const ADDRESSES: &str = "kubectl -n portcullis-system get services,pods -l app.kubernetes.io/name=portcullis \
                         -o jsonpath='{.items[*].spec.clusterIPs[*]} {.items[*].status.podIPs[*].ip}'";

/// Kills one of two server processes, and waits until its container has restarted.
pub fn kill(environment: &mut TestEnvironment) -> Result<(), String> {
    let ids = servers();
    let [first, _] = ids[..] else { return Err(format!("{} servers run", ids.len())) };
    let killed = Command::new("kill").args(["-KILL", &first.to_string()]).status();
    killed.map_err(|error| error.to_string())?;
    environment.wait_until(RECOVERY_TIMEOUT, RESTARTS, |answer| {
        let states: Vec<_> = answer.text.split_whitespace().collect();
        states.len() == 2 && states.iter().all(|state| state.ends_with("true")) && answer.text.contains("1true")
    })?;
    Ok(())
}

/// Returns the process ids of all servers.
fn servers() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_server = |id: &u32| fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.starts_with(SERVER));
    ids.filter(is_server).collect()
}

/// Deletes the Secret of the CA. Checks that the servers restore it, and that a new server uses the same CA.
pub fn delete_ca(environment: &mut TestEnvironment) -> Result<(), String> {
    let before = environment.succeed(CA)?;
    environment.succeed("kubectl -n portcullis-system delete secret portcullis-ca")?;
    environment.wait_until(RECOVERY_TIMEOUT, CA, |answer| answer.is_success && answer.text == before)?;
    environment
        .succeed(&format!("kubectl -n portcullis-system rollout restart deployment/portcullis\n{WAIT_FOR_ROLLOUT}"))?;
    if environment.succeed(CA)? == before { Ok(()) } else { Err("a new server changed the CA".to_owned()) }
}

/// Restarts the API server, and waits until `portcullis verify` succeeds.
pub fn restart_api_server(environment: &mut TestEnvironment) -> Result<(), String> {
    environment.node.restart_api_server().map_err(|error| error.to_string())?;
    environment.wait_until(RECOVERY_TIMEOUT, "portcullis verify", |answer| answer.is_success)?;
    Ok(())
}

/// Kills all processes of the node, starts the node again, and waits until the server is ready.
pub fn reboot(environment: &mut TestEnvironment) -> Result<(), String> {
    environment.node.reboot().map_err(|error| error.to_string())?;
    environment.wait_until(RELOAD_TIMEOUT, "portcullis verify", |answer| answer.is_success)?;
    environment.succeed(WAIT_FOR_ROLLOUT)?;
    Ok(())
}

/// Starts a new cluster with an IPv6-only network, and installs the chart. Checks that the server has only IPv6
/// addresses.
pub fn change_to_ipv6(environment: &mut TestEnvironment) -> Result<(), String> {
    environment.node.change_network(&IPV6).map_err(|error| error.to_string())?;
    environment.succeed(INSTALL)?;
    let addresses = environment.succeed(ADDRESSES)?;
    if addresses.split_whitespace().all(|address| address.contains(':')) {
        return Ok(());
    }
    Err(format!("an address is not IPv6: {addresses}"))
}
