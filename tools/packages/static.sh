#!/usr/bin/env bash
# Builds the static binary of a target, and prints its path. Without the musl target, links the C library of the system statically.
set -euo pipefail
target=$1
shift
# RUSTFLAGS replaces the flags in .cargo/config.toml.
export RUSTFLAGS="${RUSTFLAGS:-} -C relocation-model=static --remap-path-prefix=$PWD=/source --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
if [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
  cargo build --release --locked "$@" --bin portcullis --target "$target" >&2
  echo "target/$target/release/portcullis"
elif [ "$target" = "$(rustc -vV | sed -n 's/^host: //p' | sed 's/-gnu$/-musl/')" ]; then
  host=$(rustc -vV | sed -n 's/^host: //p')
  echo "the Rust target $target is not installed: linking the C library of this system statically" >&2
  RUSTFLAGS="$RUSTFLAGS -C target-feature=+crt-static" \
    cargo build --release --locked "$@" --bin portcullis --target "$host" >&2
  echo "target/$host/release/portcullis"
else
  echo "the Rust target $target is not installed: rustup target add $target" >&2
  exit 1
fi
