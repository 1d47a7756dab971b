#!/usr/bin/env bash
# Trains one cell of a published table (Ruoss et al. 2023, table 1: reverse string, randomized
# relative positions; three learning rates, ten seeds, so 30 trials) with a server and a worker on a
# CUDA device. Kills the worker once all trials have checkpoints; a second one finishes them. Cuts
# the paper's 2,000,000 steps to what nine minutes allow.
#
#   tests/gpu/cell.sh [--steps N] [--rehearse]
#
# $OUT gets the events with all loss curves, the results and the programs' logs. --rehearse: a tiny
# network on the CPU.
set -uo pipefail
steps=8000 checkpoints=1000 device=cuda network=''
while [ $# -gt 0 ]; do
  case $1 in
    --steps) steps=${2:?--steps needs a number}; shift 2 ;;
    --rehearse) steps=200 checkpoints=20 device=cpu network='networks: {name: encoder, blocks: 1, heads: 2, d_model: 8}'; shift ;;
    *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
  esac
done
. "$(dirname "$0")/environment.sh"
[ $device = cpu ] || skip_without_cuda
find_libraries

server='' worker=''
# Kills what is left. Both also end with this script on their own (--exit_with_parent).
trap 'kill -9 $server $worker 2>/dev/null; rm -rf "$scratch"' EXIT
end_by=$((SECONDS + 450))
out_of_time() { [ $SECONDS -ge $end_by ]; }
give_up() {
  echo "FAILED: $*" >&2
  tail -n 20 "$results"/*.log >&2
  exit 1
}
command_line() { timeout --kill-after=5 30 "${native[@]}" "$BIN/client/lengthwise" "$@" --server "$address"; }
start_worker() {
  "${native[@]}" "$BIN/worker/lengthwise_worker" --server "$address" --device $device --max_pack_size 30 --worker_id "$1" \
    --spool_dir "$scratch/spool" --exit_with_parent >"$results/$1.log" 2>&1 &
  worker=$!
}
# Stops a program: by force if it has not ended after 20 seconds.
stop() {
  local tries=0
  kill -TERM "$1" 2>/dev/null
  while kill -0 "$1" 2>/dev/null && [ $((tries += 1)) -le 200 ]; do sleep 0.1; done
  kill -9 "$1" 2>/dev/null
  wait "$1" 2>/dev/null
}

step "a server with 30 trials"
cat >"$scratch/cell.yaml" <<YAML
name: cell
protocol: randomized_positional_encodings
tasks: reverse_string
encodings: {name: relative, randomized: true, max_position: 2048}
$network
training:
  steps: $steps
  report_every_steps: $((checkpoints / 10))
  checkpoint_every_steps: $checkpoints
$([ $device = cuda ] || printf '  batch_size: 2\n  lengths: 1..4\n')
evaluation:
  lengths: [$([ $device = cuda ] && echo 20, 40, 60, 100, 200 || echo 4, 8)]
  sequences: $([ $device = cuda ] && echo 100 || echo 4)
YAML
"${native[@]}" "$BIN/server/lengthwise_server" --listen 127.0.0.1:0 --metrics_listen '' --data_dir "$scratch/data" --lease_duration 4s \
  --ready_file "$scratch/ready" --exit_with_parent >"$results/server.log" 2>&1 &
server=$!
until [ -s "$scratch/ready" ]; do
  ! out_of_time && kill -0 $server 2>/dev/null || give_up "the server did not start"
  sleep 0.1
done
address=$(head -1 "$scratch/ready")
name=$(command_line submit "$scratch/cell.yaml" --output json | "$PYTHON" -c 'import json, sys
print(json.load(sys.stdin)[0]["name"])') || give_up "the specification was rejected"
trials() { command_line show "$name" --output csv; }
# count COLUMN CONDITION: counts the trials that meet it, as "attempt" '== "2"'.
count() {
  trials | "$PYTHON" -c 'import csv, sys
print(sum(eval("value " + sys.argv[2], {"value": row[sys.argv[1]]}) for row in csv.DictReader(sys.stdin)))' "$1" "$2"
}

step "a worker, until each trial has a checkpoint"
start_worker first
until [ "$(count checkpoint_step 'not in ("", "0")')" = 30 ]; do
  ! out_of_time && kill -0 $worker 2>/dev/null || give_up "no checkpoints"
  sleep 0.2
done
kill -9 $worker
wait $worker 2>/dev/null
trials >"$results/trials_after_the_kill.csv"

step "a second worker, until all have ended"
start_worker second
# `timeout 0` would set no limit.
left=$((end_by - SECONDS))
timeout --kill-after=5 $((left > 1 ? left : 1)) "${native[@]}" "$BIN/client/lengthwise" watch "$name" --server "$address" \
  --output json >"$results/events.jsonl" ||
  echo "not all ended in time; use fewer --steps"
echo "trials ended after $SECONDS s"
trials >"$results/trials.csv"
command_line results "$name" --output csv >"$results/results.csv"
check "30 trials succeeded" [ "$(count state '== "succeeded"')" = 30 ]
check "every loss curve is complete" "$PYTHON" - "$results/events.jsonl" $((checkpoints / 10)) $steps <<'PYTHON'
import collections, json, sys
steps = collections.defaultdict(dict)
for line in open(sys.argv[1]):
    event = json.loads(line)
    points = event.get("training_points", {})
    for step, loss in zip(points.get("steps", []), points.get("losses", [])):
        # Steps that the second worker repeats must have the first one's losses.
        if steps[event["trial"]].setdefault(int(step), loss) != loss:
            sys.exit(f"{event['trial']}: two losses at step {step}")
every, last = int(sys.argv[2]), int(sys.argv[3])
wrong = [trial for trial, found in steps.items() if sorted(found) != list(range(every, last + 1, every))]
sys.exit(f"{len(steps)} curves, not whole: {wrong}" if wrong or len(steps) != 30 else 0)
PYTHON
check "the second worker resumed some from a checkpoint" "$PYTHON" - "$results/events.jsonl" <<'PYTHON'
import json, sys
changes = [(event["attempt"], event["state_change"]) for event in map(json.loads, open(sys.argv[1])) if "state_change" in event]
resumed = [change for attempt, change in changes if attempt > 1 and int(change.get("resumed_from_step", 0)) > 0]
sys.exit(not resumed)
PYTHON
gzip --force "$results/events.jsonl"
head -5 "$results/results.csv"
stop $worker
stop $server
server='' worker=''
finish
