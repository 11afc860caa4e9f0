//! Tests that portcullis works as a plugin of kubectl, with the file name that it has in the krew archive.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::Case;
use crate::context::Context;

/// The tests of this file.
pub const CASES: &[Case] = &[("plugin::kubectl_runs_the_command", kubectl_runs_the_command)];

fn kubectl_runs_the_command(ctx: &Context) {
    let plugins = tempfile::tempdir().expect("a temporary folder can be created");
    symlink(env!("CARGO_BIN_EXE_portcullis"), plugins.path().join("kubectl-portcullis"))
        .expect("the symbolic link can be created");
    let kubectl = |arguments: &[&str]| {
        let mut command = Command::new(ctx.cluster.assets().program("kubectl"));
        command.env("PATH", plugins.path()).current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
        let output = command.output().expect("kubectl starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let version = concat!("portcullis ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(kubectl(&["portcullis", "--version"]), (Some(0), version.to_owned()));
    let (code, printed) = kubectl(&["portcullis", "rules", "KZ001"]);
    assert!(code == Some(0) && printed.contains("KZ001"), "{printed}");
    let (code, _) = kubectl(&["portcullis", "check", "no-such-folder"]);
    assert_eq!(code, Some(2), "kubectl returns the plugin's exit code");
}
