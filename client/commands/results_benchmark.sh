#!/usr/bin/env bash
# Times the commands that show a whole paper's results. The server and the command line are real; workers with invented
# numbers fill the server with the 4,950 trials of Table 1 (15 tasks, 11 encodings, 3 learning rates, 10 seeds, 500 lengths).
#
#   bazel run //client/commands:results_benchmark
set -euo pipefail
client=client/lengthwise
directory=$(mktemp -d)
children=()
trap 'kill "${children[@]}" 2>/dev/null || true; wait; rm -rf "$directory"' EXIT
export LENGTHWISE_CONFIG= LC_ALL=C.UTF-8
server/lengthwise_server --data_dir "$directory/data" --listen 127.0.0.1:0 --metrics_listen 127.0.0.1:0 \
  --ready_file "$directory/ready" >"$directory/server.log" 2>&1 &
children+=($!)
until [ -s "$directory/ready" ]; do sleep 0.05; done
LENGTHWISE_SERVER=$(head -1 "$directory/ready")
export LENGTHWISE_SERVER
printf 'name: table1\nprotocol: randomized_positional_encodings\ntraining: {steps: 2}\n' >"$directory/table1.yaml"
$client submit "$directory/table1.yaml" | head -1
for i in 1 2; do
  tests/faults/scripted_worker --server "$LENGTHWISE_SERVER" --worker_id "scripted-$i" --max_pack_size 30 \
    --step_microseconds 1 >"$directory/worker-$i.log" 2>&1 &
  children+=($!)
done
# Prints only the last line of a watch, whose output may be long.
$client watch table1 >"$directory/watched"
for command in "results table1" "results table1 --output json" "watch table1" "list" "show table1"; do
  best=
  for _ in 1 2 3 4 5; do
    begin=$(date +%s%N)
    $client $command >"$directory/output"
    took=$((($(date +%s%N) - begin) / 1000000))
    if [ -z "$best" ] || [ "$took" -lt "$best" ]; then best=$took; fi
  done
  printf '%6d ms, the best of 5: lengthwise %s (%s lines)\n' "$best" "$command" "$(wc -l <"$directory/output")"
done
