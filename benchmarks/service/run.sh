#!/usr/bin/env bash
# Runs all load measurements of the service on this machine, in some minutes. At the end it prints
# the figures with required values beside the requirements. Run nothing else meanwhile, or the
# figures mean little.
#
#   benchmarks/service/run.sh [--short]
#
# --short: a tenth of the work, without the comparison with MLflow, to check that everything runs
# and nothing is lost. Each program fails if an answer is wrong, a watcher missed an event, or the
# server took more than 300 MB for watchers; this script then fails too. Its fleet has 4,000 workers,
# because the server holds no heartbeats of fleets up to 2,000.
set -euo pipefail
cd "$(dirname "$0")/../.."
throughput=() watchers=() benchmark=() fleet=() simulated=(--workers=10000 --events=6000000)
case "${1:-}" in
  "") ;;
  --short)
    throughput=(--points 200000 --trials 2000 --submissions 20)
    watchers=(--watchers 200 --channels 10 --silent 20 --seconds 5 --events 40000)
    benchmark=(--benchmark_min_time=0.1)
    fleet=(--workers 4000 --connections 400 --seconds 5 --uploads 10 --checkpoint_mb 4)
    simulated=(--workers=1000 --events=600000)
    ;;
  *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
esac
bazel build -c opt //benchmarks/service:throughput //benchmarks/service:watchers //benchmarks/service:fleet \
  //server:lengthwise_server //server/scheduling:scheduler_benchmark //server/simulation:simulate
server=bazel-bin/server/lengthwise_server
log=$(mktemp)
trap 'rm -f "$log"' EXIT
measure() { "$@" | tee -a "$log"; }
echo "$(date -u +%Y-%m-%dT%H:%MZ), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
measure bazel-bin/benchmarks/service/throughput --server_program "$server" "${throughput[@]}"
measure bazel-bin/benchmarks/service/watchers --server_program "$server" "${watchers[@]}"
measure bazel-bin/benchmarks/service/fleet --server_program "$server" "${fleet[@]}"
measure bazel-bin/server/simulation/simulate --storms --seeds=1 "${simulated[@]}"
measure bazel-bin/server/scheduling/scheduler_benchmark "${benchmark[@]}"
awk '
  # The number before or after the given words.
  function Behind(words) { return match($0, words) ? substr($0, RSTART + RLENGTH) + 0 : "missing" }
  function Row(what, figure, bound) { printf "%-66s %14s   %s\n", what, figure, bound }
  /^points stored, 100 / { points = Behind("an event +") }
  /^empty trials.*packs of 1 / { trials = Behind("packs of 1 +") }
  /^submit 330 trials/ { submission = Behind("durable +") }
  /from the worker to a watcher/ { latency = Behind("99th percentile ") }
  /the server.s memory:/ { memory = Behind("at most ") * 1.048576 }
  /^upload of 1 MiB beside/ { upload = $0; sub(/.*longest of [0-9]+ /, "", upload); upload += 0 }
  /^heartbeats of/ {
    cores = Behind("/s; "); beat = Behind("not held: 99th percentile ")
    cancellation = Behind("to its worker: 99th percentile ")
    if (/load not reached/) beat = cancellation = "load not reached"
  }
  /^drain of a checkpoint/ { drain = Behind("ended in "); stored = Behind("stored ") }
  / storms$/ { seen = $(NF - 1) }
  /events; the promise was kept/ { storms = seen > 0 ? "kept, " seen " storms" : "no storm came" }
  /^BM_LeaseNextPack/ {
    microseconds = Behind("p99_us=") * ($0 ~ /p99_us=[0-9.]+k/ ? 1000 : 1)
    if (microseconds / 1000 > pick) pick = microseconds / 1000
  }
  END {
    print ""
    Row("metric points stored durably per second", points, "at least 200000")
    Row("trials dispatched to finished (empty trials, one by one) per second", trials, "at least 1500")
    Row("submission of 330 trials acknowledged, durable, median, ms", submission, "at most 5")
    Row("event from worker to all watchers, 99th percentile, ms", latency, "at most 100")
    Row("pick the next pack among 1,000,000 queued trials, 99th percentile, ms", pick ? pick : "missing", "at most 1")
    Row("upload of 1 MiB beside eight slow downloads, longest, ms", upload, "below 100")
    Row("cores of the server for heartbeats of 10,000 workers", cores, "below 1")
    Row("a heartbeat among them that is not held, 99th percentile, ms", beat, "below 100")
    Row("from a cancellation to its worker, 99th percentile, ms", cancellation, "below 100")
    Row("checkpoint of 47 MB drained over 2 MB/s, seconds (MB stored: " stored ")", drain, "below 40")
    Row("every promise, simulated workers with wall-time storms", storms ? storms : "missing", "kept")
    Row("server memory with the watchers, some of which never read, MB", memory, "below 300")
  }' "$log"
[ ${#throughput[@]} -eq 0 ] || exit 0
# The programs ignore a relative one, too.
case ${XDG_CACHE_HOME:-} in /*) ;; *) unset XDG_CACHE_HOME ;; esac
python=${MLFLOW_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/lengthwise/mlflow/bin/python}
if [ -x "$python" ]; then
  "$python" benchmarks/service/mlflow_comparison.py
else
  echo "mlflow: $python does not exist; benchmarks/service/README.md explains how to install it"
fi
