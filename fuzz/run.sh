#!/usr/bin/env bash
# Runs libFuzzer on each target for SECONDS: fuzz/run.sh SECONDS [TARGET...]
#
# A stable compiler is sufficient: coverage instrumentation is an LLVM pass. The options are those of
# `cargo fuzz --sanitizer none`. No sanitizer is needed: safe Rust excludes memory errors.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
shift
host=$(rustc -vV | sed -n 's/^host: //p')
counters="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS="--cfg fuzzing $counters" cargo build --quiet --locked --profile fuzz --target "$host" \
    --package plimsoll-fuzz --bin fuzz --features libfuzzer

targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls fuzz/corpus)
broken=()
for target in "${targets[@]}"; do
    # Found inputs, and inputs that break the target, are kept in target/fuzzed.
    found=target/fuzzed/$target
    mkdir -p "$found/inputs"
    echo "$target, $seconds s"
    if ! PLIMSOLL_TARGET=$target "target/$host/fuzz/fuzz" "$found/inputs" "fuzz/corpus/$target" \
        -max_total_time="$seconds" -timeout=20 -artifact_prefix="$found/" >"$found/log" 2>&1; then
        broken+=("$target")
        grep -E 'panicked at|^==|Test unit written|ERROR' -A1 "$found/log" || tail -5 "$found/log"
    fi
    tail -1 "$found/log"
done
if [ ${#broken[@]} -gt 0 ]; then
    echo "broken: ${broken[*]}; add the input to fuzz/corpus/TARGET after the fix" >&2
    exit 1
fi
