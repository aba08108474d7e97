#!/usr/bin/env bash
# How many instructions of the server's HTTP thread a request takes, by kind of request, as callgrind counts them:
# nearly the same on a noisy machine as on a quiet one. Exits 1 where it takes more than it may. The program is the
# released one with names in it; who asks it needs no optimisation.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
    echo "installing valgrind" >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq valgrind >/dev/null
fi
cargo build --profile profiling --locked --quiet --package plimsoll
exec cargo run --locked --quiet --package plimsoll-bench --bin plimsoll-bench -- instructions target/profiling/plimsoll
