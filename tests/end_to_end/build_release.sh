#!/usr/bin/env bash
# Builds the programs of an earlier release from this repository's history, once, and prints the
# folder that holds them.
#
#   tests/end_to_end/build_release.sh REVISION
#
# If the history lacks the revision, as in a shallow clone, prints the reason as the last line and
# exits with 77.
set -euo pipefail
cd "$(dirname "$0")/../.."
revision=${1:?usage: tests/end_to_end/build_release.sh REVISION}
# The programs ignore a relative one, too.
case ${XDG_CACHE_HOME:-} in /*) ;; *) unset XDG_CACHE_HOME ;; esac
directory=${XDG_CACHE_HOME:-$HOME/.cache}/lengthwise/releases/$revision

if [ ! -e "$directory/bin/complete" ]; then
  if ! git rev-parse --quiet --verify "$revision^{commit}" >/dev/null; then
    echo "other releases were not tested: this clone has no revision $revision"
    exit 77
  fi
  rm -rf "$directory"
  mkdir -p "$directory/source" "$directory/bin"
  git archive "$revision" | tar -x -C "$directory/source"
  # Keep the paths to LibTorch. Warnings are not errors, because a newer compiler warns about more.
  { grep -v -e '--config=' user.bazelrc && echo "build --copt=-Wno-error"; } >"$directory/source/user.bazelrc"
  (
    cd "$directory/source"
    bazel build //client:lengthwise //server:lengthwise_server //worker:lengthwise_worker
    install -t ../bin bazel-bin/client/lengthwise bazel-bin/server/lengthwise_server bazel-bin/worker/lengthwise_worker
    bazel clean --expunge
  ) >&2
  rm -rf "$directory/source"
  touch "$directory/bin/complete"
fi
echo "$directory/bin"
