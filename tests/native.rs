//! Compiles the C code in `native` with a C compiler and tests it. Of all binaries of Portcullis, only the static one
//! contains this code.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::Path;
use std::process::Command;

/// Compiles `native/{name}.c`, with the prefix `fast_` before the names of its functions, and `native/{name}_test.c`.
/// Runs the test, and returns the number that it prints: how often it called the functions.
fn test(name: &str, functions: &[&str]) -> u32 {
    let folder = tempfile::tempdir().unwrap();
    let (native, program) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("native"), folder.path().join("test"));
    let object = folder.path().join("object.o");
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // The same options as in build.rs.
    let options = ["-O3", "-ffreestanding", "-fno-builtin", "-fno-tree-loop-distribute-patterns"];
    let names = functions.iter().map(|name| format!("-D{name}=fast_{name}"));
    let warnings = ["-Wall", "-Wextra", "-Werror"];
    let [source, test] = [format!("{name}.c"), format!("{name}_test.c")].map(|file| native.join(file));
    run(Command::new("cc").args(options).args(names).args(warnings).arg("-c").arg(source).arg("-o").arg(&object));
    run(Command::new("cc").arg("-O1").arg(test).arg(&object).arg("-o").arg(&program));
    run(&mut Command::new(&program)).split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn moves_bytes_like_a_loop_over_bytes() {
    let copies = test("memmove", &["memmove", "memcpy"]);
    assert!(copies > 100_000, "{copies}");
}

#[test]
fn compares_bytes_like_a_loop_over_bytes() {
    let comparisons = test("memcmp", &["memcmp", "bcmp"]);
    assert!(comparisons > 100_000, "{comparisons}");
}
