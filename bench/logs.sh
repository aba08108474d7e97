#!/usr/bin/env bash
# Measures the import of a log of 10,000,000 lines: seconds, lines per second, and peak memory, compared with goaccess
# and `wc -l` on the same file in the same run. Targets: at most 60 s and 64 MiB. Needs 4 GB of disk in target/ and GNU
# time; goaccess is optional (Debian has both).
set -euo pipefail
cd "$(dirname "$0")/.."
lines=${1:-10000000}
dir=$(mktemp -d -p target logs.XXXXXX)
trap 'rm -rf "$dir"' EXIT

cargo build --release --locked --quiet --package plimsoll
awk -v lines="$lines" 'BEGIN {
    for (i = 0; i < lines; i++) {
        # On average 1,000 lines a second; 40 browsers; three consecutive requests per client.
        if (left-- <= 0) { second++; left = 500 + int(rand() * 1000) }
        if (i % 3 == 0) client = sprintf("10.%d.%d.%d", rand() * 40, rand() * 250, rand() * 250)
        at = sprintf("%02d:%02d:%02d", (second / 3600) % 24, (second / 60) % 60, second % 60)
        printf "%s - - [%02d/Oct/2026:%s +0000] \"GET /items/%d?sort=price&page=%d HTTP/1.1\" %d %d \"https://shop.example/\" \"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36\"\n", client, 10 + second / 86400, at, rand() * rand() * 5000, i % 7, i % 50 ? 200 : 404, rand() * 9000, 90 + i % 40
    }
}' > "$dir/access.log"

measure() { # name command…
    local name=$1
    shift
    /usr/bin/time -f '%e %M' -o "$dir/time" "$@" > "$dir/said" 2>&1
    awk -v name="$name" -v lines="$lines" '{ printf "  %-22s %6.1f s  %9.0f lines/s  %6.1f MiB\n", name, $1, lines / ($1 > 0 ? $1 : 1), $2 / 1024 }' "$dir/time"
}

echo "logs: $lines lines, $(($(stat -c %s "$dir/access.log") >> 20)) MiB"
measure "wc -l" wc -l "$dir/access.log"
measure "requests" target/release/plimsoll import log "$dir/access.log" --out "$dir/rows"
# The rows and the log must have the same count in each second.
python3 - "$dir/access.log" "$dir/rows.jsonl" << 'PY'
import collections, sys
log, rows = collections.Counter(), collections.Counter()
for line in open(sys.argv[1]):
    log[line[line.index("[") + 1:line.index("]")]] += 1
for row in open(sys.argv[2]):
    rows[int(row[11:row.index(",")]) // 1_000_000] += 1
same = [count for _, count in sorted(rows.items())] == list(log.values())
print("  rows of each second: %s" % ("as in the log" if same else "NOT as in the log"))
PY
measure "sessions" target/release/plimsoll import log "$dir/access.log" --out "$dir/sessions" --sessions
if command -v goaccess > /dev/null; then
    measure "goaccess" goaccess "$dir/access.log" --log-format=COMBINED -o "$dir/report.json" --no-progress
fi
