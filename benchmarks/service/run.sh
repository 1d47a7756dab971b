#!/bin/sh
# All load measurements of the service, on this machine, in less than five minutes. For figures that
# mean something nothing else should run.
set -eu
cd "$(dirname "$0")/../.."
bazel build -c opt //benchmarks/service:throughput //benchmarks/service:watchers //server:lengthwise_server
server=bazel-bin/server/lengthwise_server
echo "$(date -u +%Y-%m-%dT%H:%MZ), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
bazel-bin/benchmarks/service/throughput --server_program "$server"
bazel-bin/benchmarks/service/watchers --server_program "$server"
python=${MLFLOW_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/lengthwise/mlflow/bin/python}
if [ -x "$python" ]; then
  "$python" benchmarks/service/mlflow_comparison.py
else
  echo "mlflow: there is no $python; benchmarks/service/README.md says how to install it"
fi
