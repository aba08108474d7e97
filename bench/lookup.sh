#!/usr/bin/env bash
# The lookup service beside BaseX and PostgreSQL, in one run. --quick for a try, --full for a store of
# 100,000 registrations of 100 interfaces. Needs root: PostgreSQL runs as a user of its own, and what
# is missing is installed (Debian).
set -euo pipefail
cd "$(dirname "$0")/.."

need() { # file package
    [ -e "$1" ] && return
    echo "installing $2" >&2
    # Without a server of the distribution's own: the benchmark starts and ends its own.
    RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}
need /usr/share/java/basex.jar basex
need /usr/lib/postgresql postgresql

cargo build --release --locked --quiet --package plimsoll-bench --package plimsoll
exec target/release/plimsoll-bench-lookup "$@"
