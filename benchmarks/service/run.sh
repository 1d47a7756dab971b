#!/bin/sh
# All load measurements of the service, on this machine, in less than five minutes. For figures that
# mean something nothing else should run.
#
#   benchmarks/service/run.sh [--short]
#
# --short: a tenth of the work and no comparison with MLflow, to see that everything runs and that
# nothing is lost on the way; each program ends with an error where an answer is wrong.
set -eu
cd "$(dirname "$0")/../.."
throughput="" watchers="" benchmark=""
case "${1:-}" in
  "") ;;
  --short)
    throughput="--points 200000 --trials 2000 --submissions 20"
    watchers="--watchers 200 --channels 10 --silent 20 --seconds 5 --events 40000"
    benchmark="--benchmark_min_time=0.1"
    ;;
  *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
esac
bazel build -c opt //benchmarks/service:throughput //benchmarks/service:watchers //server:lengthwise_server \
  //server/scheduling:scheduler_benchmark
server=bazel-bin/server/lengthwise_server
echo "$(date -u +%Y-%m-%dT%H:%MZ), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
bazel-bin/benchmarks/service/throughput --server_program "$server" $throughput
bazel-bin/benchmarks/service/watchers --server_program "$server" $watchers
bazel-bin/server/scheduling/scheduler_benchmark $benchmark
[ -z "$throughput" ] || exit 0
python=${MLFLOW_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/lengthwise/mlflow/bin/python}
if [ -x "$python" ]; then
  "$python" benchmarks/service/mlflow_comparison.py
else
  echo "mlflow: there is no $python; benchmarks/service/README.md says how to install it"
fi
