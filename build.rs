//! Records what the program is built from, for `portcullis version --output json`.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=PORTCULLIS_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=PORTCULLIS_TARGET={}", env::var("TARGET").unwrap_or_default());
    if let Some(commit) = env::var("PORTCULLIS_COMMIT").ok().or_else(released) {
        println!("cargo::rustc-env=PORTCULLIS_COMMIT={commit}");
    }
}

/// Returns the commit of the checkout in a release build. Other builds would be repeated with every commit.
fn released() -> Option<String> {
    if env::var("PROFILE").as_deref() != Ok("release") {
        return None;
    }
    println!("cargo::rerun-if-changed=.git/HEAD");
    let output =
        Command::new("git").args(["rev-parse", "HEAD"]).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
