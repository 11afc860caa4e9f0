#!/usr/bin/env bash
# Builds the static binary of this machine's target, optimized by a recorded profile, and prints its path.
#
# The profile says which code runs while Portcullis serves and checks. It is recorded by an instrumented build, which runs in the
# benchmarks of memory and of calls, with a real API server, and checks the examples.
#
#   tools/packages/profiled.sh TARGET [OPTIONS OF CARGO]
#
# Needs llvm-profdata of the same Rust: `rustup component add llvm-tools`.
set -euo pipefail
target=$1
shift
host=$(rustc -vV | sed -n 's/^host: //p')
merge=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
[ -x "$merge" ] || { echo "llvm-profdata is not installed: rustup component add llvm-tools" >&2; exit 1; }
folder=$PWD/target/profiled
binary=$folder/$target/release/portcullis
profile=$folder/portcullis.profdata

# Builds the binary with a flag of rustc. RUSTFLAGS replaces the flags in .cargo/config.toml.
build() {
  RUSTFLAGS="-C relocation-model=static $1" \
    cargo build --release --locked "${@:2}" --bin portcullis --target "$target" --target-dir "$folder" >&2
}
# Runs a benchmark, which need not be optimized itself, with the instrumented binary.
record() {
  CARGO_PROFILE_BENCH_LTO=off CARGO_PROFILE_BENCH_CODEGEN_UNITS=16 cargo bench --locked "$@" --binary="$binary" >&2
}

rm -rf "$folder/runs"
build "-Cprofile-generate=$folder/runs" "$@"
record "$@" --bench memory -- files
record "$@" --bench memory -- soak --seconds=30
record "$@" --bench admission -- sizes overwrites --rounds=1
for example in examples/*/; do
  # Some examples are wrong on purpose.
  "$binary" check "$example" >/dev/null 2>&1 || true
  "$binary" build --all "$example" -o "$folder/built" >/dev/null 2>&1 || true
done
"$merge" merge --output="$profile" "$folder/runs"
build "-Cprofile-use=$profile" "$@"
echo "$binary"
