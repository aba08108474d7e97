#!/bin/sh
# Compiles one of our crates for the tests, by the linter, and writes a library's documentation: a warning of either is
# an error. So what is tested is linted and documented as it is built, once, where `cargo clippy` and `cargo doc` would
# each look through all that it depends on once more. Cargo calls it in place of the compiler, as `checked.sh RUSTC
# ARGUMENTS…` (RUSTC_WORKSPACE_WRAPPER).
set -eu

sysroot=$("$1" --print sysroot)
clippy=$sysroot/bin/clippy-driver
if ! [ -x "$clippy" ]; then
    echo "clippy is missing: there is no $clippy (rustup component add clippy; Debian: apt install rust-clippy)" >&2
    exit 1
fi
case " $* " in
*" --crate-name ___ "*) exec "$@" ;; # Cargo asks what the compiler can do.
*" --crate-type lib "*) is_library=yes ;;
*" --crate-name "*) is_library= ;;
*) exec "$@" ;;
esac
"$clippy" "$@" -Dwarnings
[ "$is_library" ] || exit 0

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
exec "$sysroot/bin/rustdoc" "$@" -Dwarnings --out-dir "$folder/../../doc"
