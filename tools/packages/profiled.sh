#!/usr/bin/env bash
# Builds the static binary of this machine's target, optimized by a recorded profile, and prints its path.
#
# The profile says which code runs while Portcullis serves and checks. It is recorded by an instrumented build, which runs in the
# benchmarks of memory and of calls, with a real API server, and checks the examples.
#
# The linker places the functions that a server runs next to each other. The kernel maps 16 pages of a file at a time, so a function
# in memory also takes the memory of its neighbors.
#
#   tools/packages/profiled.sh TARGET [OPTIONS OF CARGO]
#
# Needs LLVM's tools of the same Rust: `rustup component add llvm-tools`. The linker is lld, which is part of Rust.
set -euo pipefail
target=$1
shift
host=$(rustc -vV | sed -n 's/^host: //p')
tools=$(rustc --print sysroot)/lib/rustlib/$host/bin
[ -x "$tools/llvm-profdata" ] || { echo "llvm-profdata is not installed: rustup component add llvm-tools" >&2; exit 1; }
folder=$PWD/target/profiled
runs=$folder/runs
binary=$folder/$target/release/portcullis
profile=$folder/portcullis.profdata
# The part of the profile that was recorded by servers with many objects.
server=$folder/server.profdata
order=$folder/functions

# Builds the binary with flags of rustc. RUSTFLAGS replaces the flags in .cargo/config.toml. Both builds keep their symbols: with
# another setting, Cargo would give all functions other names, and the profile would not apply to them.
build() {
  CARGO_PROFILE_RELEASE_STRIP=none RUSTFLAGS="-C relocation-model=static $1" \
    cargo build --release --locked "${@:2}" --bin portcullis --target "$target" --target-dir "$folder" >&2
}
# Runs a benchmark, which need not be optimized itself, with the instrumented binary. The names of the recorded files begin with $1.
record() {
  LLVM_PROFILE_FILE=$runs/$1-%p.profraw CARGO_PROFILE_BENCH_LTO=off CARGO_PROFILE_BENCH_CODEGEN_UNITS=16 \
    cargo bench --locked "${@:2}" --binary="$binary" >&2
}
# Prints the names of the functions in a profile. Further arguments are options of `llvm-profdata show`.
functions() {
  "$tools/llvm-profdata" show --all-functions "$@" | sed -n 's/^  \([^ ].*;\)\{0,1\}\([^ ;]*\):$/\2/p'
}
# Prints the names of the functions that ran.
ran() {
  functions --value-cutoff=1 "$1"
}
# Prints the names of all functions in the binary.
defined() {
  "$tools/llvm-nm" --defined-only --numeric-sort --format=posix "$binary" | awk '$2 ~ /[tTwW]/ { print $1 }'
}
# Prints the names of functions that are not in the profile. They belong to the standard library, or are written in C.
not_profiled() {
  defined | awk 'NR == FNR { profiled[$1]; next } !($1 in profiled)' <(functions "$profile") -
}
# Fails if the binary has few of the functions that ran for the profile. Many of them are inlined into others, but if most are missing,
# the two builds have different names for them.
check_names() {
  defined | awk 'NR == FNR { all++; ran[$1]; next } $1 in ran { found++; delete ran[$1] }
    END { if (2 * found < all) { print "the profile does not apply: " found + 0 " of its " all " functions are in the binary"; exit 1 } }' \
    <(ran "$profile") - >&2
}

rm -rf "$runs"
build "-Cprofile-generate=$runs" "$@"
record server "$@" --bench memory -- files
record server "$@" --bench memory -- soak --seconds=30
record calls "$@" --bench admission -- sizes overwrites --rounds=1
for example in examples/*/; do
  # Some examples are wrong on purpose.
  "$binary" check "$example" >/dev/null 2>&1 || true
  "$binary" build --all "$example" -o "$folder/built" >/dev/null 2>&1 || true
done
"$tools/llvm-profdata" merge --output="$profile" "$runs"/*.profraw
"$tools/llvm-profdata" merge --output="$server" "$runs"/server-*.profraw
{ ran "$server"; not_profiled; ran "$profile"; } | awk '!seen[$0]++' >"$order"
link="-Clink-arg=-fuse-ld=lld -Clink-arg=-B$tools/gcc-ld"
link+=" -Clink-arg=-Wl,--symbol-ordering-file=$order -Clink-arg=-Wl,--no-warn-symbol-ordering"
build "-Cprofile-use=$profile $link" "$@"
check_names
"$tools/llvm-strip" "$binary"
echo "$binary"
