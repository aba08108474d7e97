#!/usr/bin/env bash
# Compares mail with Dovecot, in one run, as ratios. Needs root to install Dovecot (Debian), and because
# Dovecot starts as root. Another Dovecot on this machine is not affected: the benchmark's Dovecot has its
# own folder, ports, and processes, and stops with the run.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v dovecot >/dev/null || ! [ -e /usr/lib/dovecot/lmtp ]; then
    echo "installing dovecot" >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq dovecot-imapd dovecot-lmtpd >/dev/null
fi
cargo build --release --locked --quiet --package plimsoll-bench --package plimsoll
exec target/release/plimsoll-bench mail
