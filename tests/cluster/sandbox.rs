//! Runs this test in new Linux namespaces for network, mounts and processes.
//!
//! When the namespaces end, also after a failure, the kernel removes their network interfaces, routes, firewall rules
//! and mounts, and kills their processes. It does not remove the cgroups and the folder of the node, so this module
//! removes them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use tempfile::TempDir;

use crate::cleanup::{self, Process};

/// Environment variable with the path of the node's folder. It is set only for the process in the new Linux namespaces
/// (see [`run`]).
const FOLDER: &str = "PORTCULLIS_CLUSTER_FOLDER";
const CGROUPS: &str = "/sys/fs/cgroup";
/// Shell script of the first process in the PID namespace. It starts the command in its arguments, and waits for it.
/// The shell also reaps orphaned processes, such as the shims of containers.
const INIT: &str = "\"$@\" & wait $!";

/// Returns the path of the node's folder, if this process runs in the Linux namespaces that [`run`] creates.
pub fn folder() -> Option<PathBuf> {
    env::var_os(FOLDER).map(PathBuf::from)
}

/// Returns the name of the node's cgroup, which is the name of the node's folder.
pub fn cgroup(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs this program again with the same arguments, in new Linux namespaces. When it has ended, removes the cgroups of
/// the node.
pub fn run() -> io::Result<ExitCode> {
    let folder = TempDir::with_prefix("portcullis-node-")?;
    cleanup::add_folder(folder.path());
    let mut arguments = vec![OsString::from("bash"), env::current_exe()?.into_os_string()];
    arguments.extend(env::args_os().skip(1));
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--", "bash", "-c", INIT]);
    let status = Process::start(command.args(arguments).env(FOLDER, folder.path()))?.wait()?;
    remove_cgroups(&cgroup(folder.path()));
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the paths of the cgroup hierarchies: one for cgroup v2, and one for each controller for cgroup v1.
pub fn controllers() -> Vec<PathBuf> {
    if Path::new(CGROUPS).join("cgroup.controllers").exists() {
        return vec![PathBuf::from(CGROUPS)];
    }
    let folders = fs::read_dir(CGROUPS).into_iter().flatten().flatten().map(|entry| entry.path());
    folders.filter(|folder| folder.join("cgroup.procs").exists()).collect()
}

/// Removes the cgroups of the node. All processes in them must have ended.
fn remove_cgroups(name: &str) {
    for controller in controllers() {
        remove_cgroup(&controller.join(name));
    }
}

fn remove_cgroup(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_cgroup(&entry.path());
        }
    }
    // An error is ignored, because the run is over.
    let _ = fs::remove_dir(folder);
}
