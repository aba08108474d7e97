#!/usr/bin/env bash
# Has libFuzzer look for inputs that break a target, so long for each: fuzz/run.sh SECONDS [TARGET...]
#
# A stable compiler does: what a fuzzer watches a program by are passes of LLVM. The long list is what
# `cargo fuzz --sanitizer none` uses; memory errors are what the language keeps out.
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
    # What is found stays beside the program, and what breaks the target with it.
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
    echo "broken: ${broken[*]}; put the input into fuzz/corpus/TARGET once it is mended" >&2
    exit 1
fi
