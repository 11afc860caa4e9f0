//! Runs this suite in namespaces of its own: network, mounts, processes.
//!
//! Interfaces, routes, rules and mounts disappear with the namespaces, and so do all processes, also after a failure. Only the
//! cgroups and the folder must be removed.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use tempfile::TempDir;

use crate::cleanup::{self, Process};

/// Names the folder of the node; set for the process in the namespaces.
const FOLDER: &str = "PORTCULLIS_CLUSTER_FOLDER";
const CGROUPS: &str = "/sys/fs/cgroup";
/// A first process that reaps orphans, as the shims of containers are.
const INIT: &str = "\"$@\" & wait $!";

/// Returns the folder of the node, if this process is in the namespaces.
pub fn folder() -> Option<PathBuf> {
    env::var_os(FOLDER).map(PathBuf::from)
}

/// Returns the name of the node's cgroup.
pub fn cgroup(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs this program again, with the same arguments, in namespaces of its own.
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

/// Returns the folders of cgroup controllers; version 2 has one.
pub fn controllers() -> Vec<PathBuf> {
    if Path::new(CGROUPS).join("cgroup.controllers").exists() {
        return vec![PathBuf::from(CGROUPS)];
    }
    let folders = fs::read_dir(CGROUPS).into_iter().flatten().flatten().map(|entry| entry.path());
    folders.filter(|folder| folder.join("cgroup.procs").exists()).collect()
}

/// Removes the cgroups of the node, whose processes have ended.
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
    // The run is over and cannot do more than try.
    let _ = fs::remove_dir(folder);
}
