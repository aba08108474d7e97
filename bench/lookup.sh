#!/usr/bin/env bash
# Compares the lookup service with BaseX and PostgreSQL, in one run. --quick: a short test; --full: a store
# of 100,000 registrations of 100 interfaces. Needs root: PostgreSQL runs as its own user, and missing
# packages are installed (Debian).
set -euo pipefail
cd "$(dirname "$0")/.."

need() { # file package
    [ -e "$1" ] && return
    echo "installing $2" >&2
    # RUNLEVEL=1 keeps the package from starting a server: the benchmark starts and stops its own.
    RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}
need /usr/share/java/basex.jar basex
need /usr/lib/postgresql postgresql

cargo build --release --locked --quiet --package plimsoll-bench --package plimsoll
exec target/release/plimsoll-bench-lookup "$@"
