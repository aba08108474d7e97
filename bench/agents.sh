#!/usr/bin/env bash
# Measures the cost of agents with the release build: a hub and all agents on loopback, nginx (Debian) as the system.
#
# First, AGENTS (200) agents drive 30 steps for a minute, and each reports every second. The result is the CPU use of
# the conductor, as a fraction of a core (target: at most 0.5). Then one agent over the hub and one generator over a pipe
# drive the same load, in turn, PAIRS (5) times. The result is the ratio of their CPU time per request (target: at most
# 1.01). The first part needs a gigabyte of memory per 100 agents; the second part needs an idle machine.
set -euo pipefail
cd "$(dirname "$0")/.."
agents=${AGENTS:-200} pairs=${PAIRS:-5}

need() { # command package
    command -v "$1" >/dev/null && return
    echo "installing $2" >&2
    RUNLEVEL=1 apt-get install -y -qq "$2" >/dev/null
}
need nginx nginx-light
need nats-server nats-server
if [ -z "${PLIMSOLL:-}" ]; then
    cargo build --release --locked --quiet --package plimsoll
    PLIMSOLL=$PWD/target/release/plimsoll
fi

scratch=$(mktemp -d)
started=()
end() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    wait
    rm -rf "$scratch"
}
trap end EXIT
cd "$scratch"
export PLIMSOLL_HUB=$scratch/hub PLIMSOLL_FLEET=$scratch/hub/conductor.token

cat > nginx.conf <<NGINX
daemon off;
worker_processes 1;
pid $scratch/nginx.pid;
error_log stderr warn;
events { worker_connections 10000; }
http {
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 10m;
  client_body_temp_path $scratch/body;
  proxy_temp_path $scratch/proxy;
  fastcgi_temp_path $scratch/fastcgi;
  uwsgi_temp_path $scratch/uwsgi;
  scgi_temp_path $scratch/scgi;
  server { listen 127.0.0.1:18089; location / { return 200 "A page.\n"; } }
}
NGINX
nginx -p "$scratch" -e stderr -c "$scratch/nginx.conf" 2> nginx.log &
started+=($!)
"$PLIMSOLL" hub --listen 127.0.0.1:4233 --name localhost > hub.log 2>&1 &
started+=($!)

study() { # name load...
    cat > "$1.study.yaml" <<STUDY
study: $1
title: The cost of agents
workload: steps
system: { attach: { url: "http://127.0.0.1:18089" } }
load: { $2 }
trials: 1
repeats: 0
STUDY
}
{
    printf 'workload: steps\nsession:\n  steps:\n'
    for step in $(seq 30); do
        printf '    - { step: Page %s, wait: "{{ least }}..{{ most }}", request: "GET /%s" }\n' "$step" "$step"
    done
} > steps.workload.yaml
sed -i 's/^session:/parameters: { least: 1s, most: 3s }\nsession:/' steps.workload.yaml
study all "users: 1000, ramp: 20s, hold: 60s"
study one "users: 500, ramp: 2s, hold: 15s"
printf 'parameters: { least: 50ms, most: 150ms }\n' >> one.study.yaml

until [ -e "$PLIMSOLL_FLEET" ] && grep -q 'invite an agent' hub.log; do sleep 0.2; done
join() { # first last
    for n in $(seq "$1" "$2"); do
        (umask 077 && "$PLIMSOLL" agents invite "a$n" > "a$n.token" 2>/dev/null)
        "$PLIMSOLL" agent --cores 0 --join "@a$n.token" --state "$scratch/state-$n" > "a$n.log" 2>&1 &
        started+=($!)
    done
}
join 1 "$agents"
until [ "$("$PLIMSOLL" agents list | grep -c nobody)" -eq "$agents" ]; do sleep 0.5; done
echo "$agents agents have joined" >&2

ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
"$PLIMSOLL" run all.study.yaml --agents "$agents" --lenient --patience 0 --out all > all.log 2>&1 &
run=$!
started+=("$run")
until grep -qs ': hold' all.log || ! kill -0 "$run" 2>/dev/null; do sleep 0.2; done
before=$(ticks "$run")
sleep 50
after=$(ticks "$run") || { cut -c 1-200 all.log >&2; exit 1; }
memory=$(awk '/VmHWM/ { printf "%d", $2 / 1024 }' "/proc/$run/status")
wait "$run" || true # on a busy machine the trial may be invalid; the figure is about the conductor
grep -m 1 'done in' all.log
awk -v used=$((after - before)) -v hertz="$(getconf CLK_TCK)" -v agents="$agents" -v memory="$memory" 'BEGIN {
    printf "%d agents, 30 steps, a report a second: the conductor uses %.3f of a core (at most 0.5), %d MB\n",
        agents, used / hertz / 50, memory }'

for n in $(seq 2 "$agents"); do "$PLIMSOLL" agents stop "a$n" > /dev/null; done
cpu() { # CPU use in the hold, as a fraction of a core
    awk -F '[:,]' '/"cpu_fraction"/ { print $2 + 0; exit }' "$1/trials/001/trial.json"
}
for pair in $(seq "$pairs"); do
    "$PLIMSOLL" run one.study.yaml --lenient --out "pipe-$pair" > "pipe-$pair.log" 2>&1 || tail -4 "pipe-$pair.log" >&2
    "$PLIMSOLL" run one.study.yaml --lenient --agents a1 --out "agent-$pair" > "agent-$pair.log" 2>&1 || tail -4 "agent-$pair.log" >&2
    echo "$(cpu "agent-$pair") $(cpu "pipe-$pair")"
done | awk '{ print "agent " $1 ", pipe " $2 " of a core: " $1 / $2; log_sum += log($1 / $2) }
    END { printf "CPU per request, an agent over the hub ÷ a generator over a pipe: %.3f (at most 1.01)\n", exp(log_sum / NR) }'
