#!/usr/bin/env bash
# Installs Debian's nats-server if it is missing and the script runs as root on Debian. Without it, the tests
# of remote load generators report that they are skipped.
set -uo pipefail
if command -v nats-server >/dev/null || [ -x /usr/sbin/nats-server ]; then
    exit 0
fi
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing nats-server for the tests of agents"
    export DEBIAN_FRONTEND=noninteractive
    timeout 60 apt-get update -qq >/dev/null 2>&1
    # The tests start their own servers. The package's service must not run.
    if timeout 240 apt-get install -y -qq --no-install-recommends nats-server >/dev/null 2>&1; then
        systemctl disable --now nats-server >/dev/null 2>&1
        exit 0
    fi
fi
echo "no nats-server: the tests of agents are skipped (Debian: apt install nats-server)"
