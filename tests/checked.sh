#!/bin/sh
# Compiles a crate of this workspace for the tests with clippy, and writes its documentation. A warning of either is an
# error. One build thus compiles, lints, and documents; `cargo clippy` and `cargo doc` would each check all dependencies
# again. Cargo calls this script in place of the compiler, as `checked.sh RUSTC ARGUMENTS…` (RUSTC_WORKSPACE_WRAPPER).
set -eu

compiler=$(command -v "$1")
tools=${compiler%/*}
if ! [ -x "$tools/clippy-driver" ]; then
    echo "clippy is missing beside $compiler (rustup component add clippy; Debian: apt install rust-clippy)" >&2
    exit 1
fi
documents=
case " $* " in
*" --crate-name ___ "*) exec "$@" ;; # Cargo asks what the compiler can do.
*" --crate-name build_script_"* | *" --test "*) ;;
*" --crate-type lib "*) documents=yes ;;
# Cargo does the same: a program has no public API, so its private items are documented.
*" --crate-type bin "*) documents=--document-private-items ;;
*" --crate-name "*) ;;
*) exec "$@" ;;
esac
"$tools/clippy-driver" "$@" -Dwarnings
[ "$documents" ] || exit 0

# Pass the compiler's arguments to rustdoc, except those about the compiler's output.
shift
folder=
for argument in "$@"; do
    shift
    case $folder:$argument in
    next:*) folder=$argument ;;
    *:--out-dir) folder=next ;;
    *:--emit=* | *:--json=*) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
[ "$documents" = yes ] || set -- "$@" "$documents"
exec "$tools/rustdoc" "$@" -Dwarnings --out-dir "$folder/../../doc"
