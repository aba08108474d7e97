#!/usr/bin/env bash
# What the shares of admission cost of a request's CPU, as a ratio: the program as it is beside one that is
# built without them. Only the workspace's own crates are built a second time.
set -euo pipefail
cd "$(dirname "$0")/.."

build() { # so that both are made of the same dependencies
    cargo build --release --locked --quiet --bin plimsoll --bin plimsoll-bench
}
with=target/admission-with without=target/admission-without
RUSTC_WORKSPACE_WRAPPER="$PWD/bench/without-shares" build
cp target/release/plimsoll "$without"
build
cp target/release/plimsoll "$with"
exec target/release/plimsoll-bench admission "$with" "$without"
