//! Checks that the programs and CNI plugins that the node needs from the Linux distribution are installed.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The required programs, each with the package of Debian and Ubuntu that contains it.
const PROGRAMS: [(&str, &str); 8] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("ip", "iproute2"),
    ("unshare", "util-linux"),
    ("bash", "bash"),
    ("python3", "python3"),
];
const PLUGINS: [&str; 4] = ["bridge", "host-local", "loopback", "portmap"];
const PLUGINS_PACKAGE: &str = "containernetworking-plugins";
/// Folders that may contain CNI plugins: the folder of Debian, and that of most other distributions.
const PLUGIN_FOLDERS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// Returns one sentence for each missing requirement. If programs are missing, the last sentence says how to install
/// them.
pub fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    if !is_root() {
        missing.push("the node needs root: containers, network interfaces and mounts".to_owned());
    }
    let programs = PROGRAMS.iter().filter(|(name, _)| !is_program(name)).copied();
    let plugins = plugin_folder().is_none().then_some(("the CNI plugins", PLUGINS_PACKAGE));
    let mut packages = Vec::new();
    for (name, package) in programs.chain(plugins) {
        missing.push(format!("{name} is not installed"));
        packages.push(package);
    }
    packages.dedup();
    if !packages.is_empty() {
        missing.push(format!("on Debian and Ubuntu: apt-get install --no-install-recommends {}", packages.join(" ")));
    }
    missing
}

/// Returns the path of the folder that contains all CNI plugins of the node.
pub fn plugin_folder() -> Option<PathBuf> {
    let is_complete = |folder: &PathBuf| PLUGINS.iter().all(|name| folder.join(name).is_file());
    PLUGIN_FOLDERS.iter().map(PathBuf::from).find(is_complete)
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn is_program(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).is_file())
}
