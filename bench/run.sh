#!/usr/bin/env bash
# Side-by-side benchmarks: each pair in one run, reported as ratios. Compare the ratios: absolute times vary with the
# machine. Without arguments, the script first checks the measuring program itself (`make measure`). Needs root only to
# install wrk, nginx, h2load, and etcd (Debian). gRPC calls are compared only if ghz is installed:
# go install github.com/bojand/ghz/cmd/ghz@latest
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
