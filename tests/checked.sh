#!/bin/sh
# Compiles one of our crates for the tests, by the linter, and writes its documentation: a warning of either is an error.
# So what is tested is linted and documented as it is built, once, where `cargo clippy` and `cargo doc` would each look
# through all that it depends on once more. Cargo calls it in place of the compiler, as `checked.sh RUSTC ARGUMENTS…`
# (RUSTC_WORKSPACE_WRAPPER).
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
# As cargo has it: nobody else can see anything of a program, so all of it is told.
*" --crate-type bin "*) documents=--document-private-items ;;
*" --crate-name "*) ;;
*) exec "$@" ;;
esac
"$tools/clippy-driver" "$@" -Dwarnings
[ "$documents" ] || exit 0

# All that the compiler was told but for what it was to write.
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
