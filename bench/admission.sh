#!/usr/bin/env bash
# Measures the CPU cost of fair-share admission per request, as a ratio of two builds: with and without the
# shares. Only the workspace's own crates are built twice.
set -euo pipefail
cd "$(dirname "$0")/.."

build() { # both programs use the same dependencies
    cargo build --release --locked --quiet --bin plimsoll --bin plimsoll-bench
}
with=target/admission-with without=target/admission-without
RUSTC_WORKSPACE_WRAPPER="$PWD/bench/without-shares" build
cp target/release/plimsoll "$without"
build
cp target/release/plimsoll "$with"
exec target/release/plimsoll-bench admission "$with" "$without"
