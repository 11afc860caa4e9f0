//! Scenarios of faults: killed processes, a lost Secret, restarts of the API server and of the node.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::network::IPV6;
use crate::scenarios::{INSTALL, RELOAD, ROLLED_OUT};
use crate::stage::Stage;

/// What docs/install.md and certs/README.md promise: within a minute; twice that on a busy machine.
const RESTORED: Duration = Duration::from_mins(2);
const CA: &str = "kubectl -n portcullis-system get secret portcullis-ca -o jsonpath='{.data.ca\\.crt}'";
/// The begin of a server's command line.
const SERVER: &[u8] = b"/portcullis\0serve\0--";
/// The pods of the server: each with its number of restarts, and whether it is ready.
const RESTARTS: &str = "kubectl -n portcullis-system get pods -l app.kubernetes.io/name=portcullis \
                        -o jsonpath='{range .items[*]}{.status.containerStatuses[0].restartCount}{.status.containerStatuses[0].ready} {end}'";
/// The addresses of the server: of its Service, and of its pods.
const ADDRESSES: &str = "kubectl -n portcullis-system get services,pods -l app.kubernetes.io/name=portcullis \
                         -o jsonpath='{.items[*].spec.clusterIPs[*]} {.items[*].status.podIPs[*].ip}'";

/// Kills the process of one container.
pub fn kill(stage: &mut Stage) -> Result<(), String> {
    let ids = servers();
    let [first, _] = ids[..] else { return Err(format!("{} servers run", ids.len())) };
    let killed = Command::new("kill").args(["-KILL", &first.to_string()]).status();
    killed.map_err(|error| error.to_string())?;
    stage.until(RESTORED, RESTARTS, |answer| {
        let states: Vec<_> = answer.text.split_whitespace().collect();
        states.len() == 2 && states.iter().all(|state| state.ends_with("true")) && answer.text.contains("1true")
    })?;
    Ok(())
}

/// Returns the ids of the servers' processes.
fn servers() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_server = |id: &u32| fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.starts_with(SERVER));
    ids.filter(is_server).collect()
}

/// Deletes the Secret of the CA. The servers restore it, and a new server uses the same CA.
pub fn delete_ca(stage: &mut Stage) -> Result<(), String> {
    let before = stage.succeed(CA)?;
    stage.succeed("kubectl -n portcullis-system delete secret portcullis-ca")?;
    stage.until(RESTORED, CA, |answer| answer.is_success && answer.text == before)?;
    stage.succeed(&format!("kubectl -n portcullis-system rollout restart deployment/portcullis\n{ROLLED_OUT}"))?;
    if stage.succeed(CA)? == before { Ok(()) } else { Err("a new server changed the CA".to_owned()) }
}

/// Restarts the API server.
pub fn restart_api_server(stage: &mut Stage) -> Result<(), String> {
    stage.node.restart_api_server().map_err(|error| error.to_string())?;
    stage.until(RESTORED, "portcullis verify", |answer| answer.is_success)?;
    Ok(())
}

/// Kills everything on the node, and starts it again.
pub fn reboot(stage: &mut Stage) -> Result<(), String> {
    stage.node.reboot().map_err(|error| error.to_string())?;
    stage.until(RELOAD, "portcullis verify", |answer| answer.is_success)?;
    stage.succeed(ROLLED_OUT)?;
    Ok(())
}

/// Starts the cluster again with an IPv6-only network, and installs there.
pub fn change_to_ipv6(stage: &mut Stage) -> Result<(), String> {
    stage.node.change_network(&IPV6).map_err(|error| error.to_string())?;
    stage.succeed(INSTALL)?;
    let addresses = stage.succeed(ADDRESSES)?;
    if addresses.split_whitespace().all(|address| address.contains(':')) {
        return Ok(());
    }
    Err(format!("an address is not IPv6: {addresses}"))
}
