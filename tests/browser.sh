#!/usr/bin/env bash
# Installs Debian's Chromium and its driver if they are missing and the script runs as root on Debian.
# Without them, the browser tests report that they are skipped.
set -uo pipefail
if command -v chromedriver >/dev/null && { command -v chromium || command -v google-chrome; } >/dev/null; then
    exit 0
fi
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing chromium-driver for the tests of the pages"
    export DEBIAN_FRONTEND=noninteractive
    timeout 60 apt-get update -qq >/dev/null 2>&1
    timeout 240 apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null 2>&1 && exit 0
fi
echo "no chromedriver: the tests of the pages in a browser are skipped (Debian: apt install chromium-driver)"
