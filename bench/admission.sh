#!/usr/bin/env bash
# What the shares of admission cost of a request's CPU, as a ratio: the program as it is beside one that is
# built without them. The first build of that takes as long as any whole build.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --locked --quiet --package plimsoll-bench --package plimsoll
RUSTFLAGS="--cfg plimsoll_without_shares" cargo build --release --locked --quiet --package plimsoll \
    --target-dir target/without-shares
exec target/release/plimsoll-bench admission target/release/plimsoll \
    target/without-shares/release/plimsoll
