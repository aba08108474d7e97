#!/usr/bin/env bash
# Builds a Debian package in target/debian: the program, its man pages, completions for three shells, and systemd units,
# which are neither enabled nor started. Installs cargo-deb if it is missing.
#
#   packaging/deb.sh               builds the release program first
#   packaging/deb.sh --no-build    uses the program in target/release
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
if ! "$cargo" deb --version >/dev/null 2>&1; then
    echo "installing cargo-deb, which builds the package"
    # Without liblzma compression, which needs a C library and its headers.
    "$cargo" install cargo-deb --locked --no-default-features
fi
if [ "${1:-}" != --no-build ]; then
    "$cargo" build --release --locked --package plimsoll --bin plimsoll
fi
program=target/release/plimsoll
made=target/deb
rm -rf "$made"
mkdir -p "$made/man" "$made/units"
"$program" man "$made/man" 2>/dev/null
"$program" completions bash >"$made/plimsoll"
"$program" completions zsh >"$made/_plimsoll"
"$program" completions fish >"$made/plimsoll.fish"
# Packages install programs in /usr/bin. /usr/local is for the administrator's own installations.
for unit in plimsoll.service plimsoll-agent.service; do
    sed 's|/usr/local/bin/|/usr/bin/|g' "packaging/$unit" >"$made/units/$unit"
done
# --fast: the strongest compression takes minutes.
"$cargo" deb --package plimsoll --no-build --fast
