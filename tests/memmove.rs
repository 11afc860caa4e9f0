//! Compiles `native/memmove.c` with a C compiler and tests it. Of all binaries of Portcullis, only the static one
//! contains the code of `native/memmove.c`.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::Path;
use std::process::Command;

#[test]
fn moves_bytes_like_a_loop_over_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (native, program) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("native"), folder.path().join("test"));
    let object = folder.path().join("memmove.o");
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // The same options as in build.rs.
    let options = ["-O3", "-ffreestanding", "-fno-builtin", "-fno-tree-loop-distribute-patterns"];
    let names = ["-Dmemmove=fast_memmove", "-Dmemcpy=fast_memcpy", "-Wall", "-Wextra", "-Werror"];
    run(Command::new("cc").args(options).args(names).arg("-c").arg(native.join("memmove.c")).arg("-o").arg(&object));
    run(Command::new("cc").arg("-O1").arg(native.join("memmove_test.c")).arg(&object).arg("-o").arg(&program));
    let copies: u32 = run(&mut Command::new(&program)).split(' ').next().unwrap().parse().unwrap();
    assert!(copies > 100_000, "{copies}");
}
