#!/usr/bin/env bash
# Counts the instructions of the server's HTTP thread per request, by kind of request, with callgrind. The counts are
# nearly the same on a busy and on an idle machine. Exits 1 if a count exceeds its limit. The server is the release
# build with symbols; the client needs no optimisation.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
    echo "installing valgrind" >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq valgrind >/dev/null
fi
cargo build --profile profiling --locked --quiet --package plimsoll
exec cargo run --locked --quiet --package plimsoll-bench --bin plimsoll-bench -- instructions target/profiling/plimsoll
