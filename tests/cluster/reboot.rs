//! Simulates the reboot of a node. In a reboot, the node loses its processes, mounts, network interfaces, firewall
//! rules and the contents of `/run`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{self, Command};

/// Folders of the host into which the processes of the simulated node write. An empty tmpfs is mounted on each folder.
const FOLDERS: [&str; 4] = ["/run", "/var/log", "/var/lib/cni", "/var/lib/kubelet"];
/// The folder `/run`. A reboot deletes its contents.
const RUN: &str = FOLDERS[0];
/// The id of the first process in the PID namespace.
const INIT: u32 = 1;
const RULES: [&str; 4] = ["-t nat -F", "-t nat -X", "-F", "-X"];

/// Mounts an empty tmpfs on each of the [`FOLDERS`], so that the node does not change files of the host.
pub fn mount_empty_folders() -> io::Result<()> {
    for folder in FOLDERS {
        fs::create_dir_all(folder)?;
        command("mount", &["-t", "tmpfs", "tmpfs", folder])?;
    }
    Ok(())
}

/// Kills all processes of the node, and removes the mounts, firewall rules, network interfaces and files that a reboot
/// removes. `folder` is the folder of the node.
pub fn clear_node_state(folder: &Path) -> io::Result<()> {
    // Processes may start new ones while they are killed, so this repeats until none is left.
    while kill_all()? > 0 {}
    for point in mounts_below(folder)?.iter().rev() {
        command("umount", &["--lazy", point])?;
    }
    command("umount", &["--lazy", RUN])?;
    command("mount", &["-t", "tmpfs", "tmpfs", RUN])?;
    fs::remove_dir_all(folder.join("run"))?;
    for program in ["iptables", "ip6tables"] {
        for rules in RULES {
            command(program, &rules.split(' ').collect::<Vec<_>>())?;
        }
    }
    for link in ["cni0", "node0"] {
        command("ip", &["link", "delete", link])?;
    }
    Ok(())
}

/// Kills all processes in the PID namespace except the calling process and the first process. Returns the number of
/// killed processes.
fn kill_all() -> io::Result<usize> {
    let ids = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others: Vec<_> = ids.filter(|id| *id != INIT && *id != process::id() && is_alive(*id)).collect();
    for id in &others {
        // `kill` fails if the process has already ended.
        let _ = Command::new("kill").args(["-KILL", &id.to_string()]).output()?;
    }
    Ok(others.len())
}

/// Returns whether a process exists and is not a zombie.
fn is_alive(id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn mounts_below(folder: &Path) -> io::Result<Vec<String>> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    Ok(points.filter(|point| Path::new(point).starts_with(folder)).map(str::to_owned).collect())
}

fn command(name: &str, arguments: &[&str]) -> io::Result<()> {
    let output = Command::new(name).args(arguments).output()?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!("{name} {}: {message}", arguments.join(" "))))
}
