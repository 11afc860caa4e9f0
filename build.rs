//! Records the commit and the target platform of the build for `portcullis version --output json`, and writes the
//! built-in tables of kustomize as Rust source. Compiles the C code in `native` for the static binary.

#[path = "src/kustomize/generate.rs"]
mod generate;

use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

/// A built-in table of kustomize: the path of its text file, the function that converts the text to Rust source, and
/// the name of the file for this source.
type Table = (&'static str, fn(&str) -> String, &'static str);

const TABLES: [Table; 2] = [
    ("src/kustomize/schema/built_in.txt", generate::definitions, "definitions.rs"),
    ("src/kustomize/engine/field_specs.txt", generate::field_specs, "field_specs.rs"),
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-env-changed=PORTCULLIS_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=PORTCULLIS_TARGET={}", env::var("TARGET").unwrap_or_default());
    if let Some(commit) = env::var("PORTCULLIS_COMMIT").ok().or_else(released) {
        println!("cargo::rustc-env=PORTCULLIS_COMMIT={commit}");
    }
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    println!("cargo::rerun-if-changed=src/kustomize/generate.rs");
    for (table, source, name) in TABLES {
        println!("cargo::rerun-if-changed={table}");
        fs::write(Path::new(&out).join(name), source(&fs::read_to_string(table)?))?;
    }
    compile_native();
    Ok(())
}

/// Compiles our own memcpy, memmove and memcmp for x86-64 with musl. They replace those of musl, which are slow for a
/// few bytes.
fn compile_native() {
    let is_set = |name: &str, value: &str| env::var(name).as_deref() == Ok(value);
    if !(is_set("CARGO_CFG_TARGET_ENV", "musl") && is_set("CARGO_CFG_TARGET_ARCH", "x86_64")) {
        return;
    }
    // Without these options the compiler may replace the loops by calls of the functions themselves.
    let options = ["-ffreestanding", "-fno-builtin", "-fno-tree-loop-distribute-patterns"];
    let mut build = cc::Build::new();
    for option in options {
        build.flag(option);
    }
    for file in ["native/memmove.c", "native/memcmp.c"] {
        println!("cargo::rerun-if-changed={file}");
        build.file(file);
    }
    build.opt_level(3).compile("portcullis_native");
}

/// Returns the commit of the checkout in a release build. Returns `None` in other builds, because otherwise Cargo would
/// rebuild the program after every commit.
fn released() -> Option<String> {
    if env::var("PROFILE").as_deref() != Ok("release") {
        return None;
    }
    // The first file changes when another branch is checked out, the second one also with each commit. In a worktree,
    // neither is in the folder `.git`. Cargo would run this program in each build if a file did not exist.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"])
}

/// Returns what git prints. `None` if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
