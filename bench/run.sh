#!/usr/bin/env bash
# Side-by-side benchmarks: each pair in one run, reported as ratios. Absolute times drift with the
# machine; ratios are what to compare. First of all the measurer itself is measured (`make measure`),
# unless a part is named. Needs root only to install wrk, nginx, h2load, and etcd (Debian). Calls of gRPC are compared
# where ghz is: go install github.com/bojand/ghz/cmd/ghz@latest
set -euo pipefail
cd "$(dirname "$0")/.."

need() { # command package
    command -v "$1" >/dev/null && return
    echo "installing $2" >&2
    apt-get install -y -qq "$2" >/dev/null
}
need wrk wrk
need nginx nginx-light
need h2load nghttp2-client
if command -v ghz >/dev/null || [ -x "$HOME/go/bin/ghz" ]; then
    RUNLEVEL=1 need etcd etcd-server
fi

cargo build --release --locked --quiet --package plimsoll-bench --package plimsoll
if [ $# -eq 0 ]; then
    target/release/plimsoll-measure
fi
exec target/release/plimsoll-bench "$@"
