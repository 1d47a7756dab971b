#!/usr/bin/env bash
# Makes the Python environment of the command line: what `lengthwise results --compare` and its like run in. Does nothing
# where it is there and as this checkout says.
#
#   deploy/python_environment.sh [DIR]
#
# DIR is ${XDG_CACHE_HOME:-~/.cache}/lengthwise/python, where the programs look for it; for another, set LENGTHWISE_PYTHON to
# DIR/bin/python. It holds the packages of python/requirements.txt and the package `lengthwise` of this checkout. An older
# environment that this script made in DIR is replaced; a directory with anything else is refused.
set -euo pipefail
case ${1:-} in
  -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
  -*) echo "unknown flag $1; see deploy/python_environment.sh --help" >&2; exit 2 ;;
esac
# The programs ignore a relative one, too.
case ${XDG_CACHE_HOME:-} in /*) ;; *) unset XDG_CACHE_HOME ;; esac
directory=$(realpath -m "${1:-${XDG_CACHE_HOME:-${HOME:?is not set; name a directory}/.cache}/lengthwise/python}")
cd "$(dirname "$0")/.."

say() { printf '[python] %s\n' "$*"; }
fail() { printf '[python] error: %s\n' "$*" >&2; exit 1; }
# Hash of the files: a change rebuilds the environment, or the package in it.
contents() { find "$@" -type f -not -path '*/_proto/*' -not -path '*/_published/*' -not -path '*/__pycache__/*' -print0 |
  LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16; }

# Marks a directory that this script may replace. Written before anything else, so that an interrupted installation has it.
mark=.made_by_lengthwise
# Environments of 0.2.0 have no mark, but a hash in `requirements`. An interrupted installation of 0.2.0 has neither.
has_hash() { [ -f "$directory/pyvenv.cfg" ] && [[ $(cat "$directory/requirements" 2>/dev/null) =~ ^[0-9a-f]{16}$ ]]; }
if [ -n "$(ls -A "$directory" 2>/dev/null)" ] && [ ! -f "$directory/$mark" ] && ! has_hash; then
  [ -e "$directory/pyvenv.cfg" ] ||
    fail "$directory is not empty and holds no Python environment; name another directory, or delete it"
  fail "$directory holds a Python environment that this script did not make; name another directory. If an interrupted" \
    "installation of 0.2.0 left it there, run: rm -rf $(printf %q "$directory")"
fi
case $PWD/ in "$directory"/*) fail "$directory contains this checkout; name another directory" ;; esac

requirements=$(contents python/requirements.txt)
if [ "$(cat "$directory/requirements" 2>/dev/null)" != "$requirements" ]; then
  say "installing the packages of python/requirements.txt into $directory (about 130 MB to download)"
  mkdir -p "$directory"
  echo "Made by deploy/python_environment.sh, which may replace everything in this directory." >"$directory/$mark"
  # First, so that no checkout takes a half-deleted environment for a complete one.
  rm -f "$directory/requirements"
  find "$directory" -mindepth 1 -maxdepth 1 ! -name "$mark" -exec rm -rf {} +
  /usr/bin/python3 -m venv "$directory"
  "$directory/bin/pip" --disable-pip-version-check --quiet install --no-deps --require-hashes --requirement python/requirements.txt
  echo "$requirements" >"$directory/requirements"
fi

package=$(contents python/lengthwise python/pyproject.toml python/setup.py proto experiments/published)
if [ "$(cat "$directory/package" 2>/dev/null)" != "$package" ]; then
  say "installing the package lengthwise into $directory"
  # From a copy: what is built beside it stays there. Nothing is downloaded.
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  mkdir -p "$copy/experiments"
  cp -r proto "$copy/"
  cp -r experiments/published "$copy/experiments/"
  cp -r python "$copy/"
  rm -rf "$copy/python/build"
  PIP_ROOT_USER_ACTION=ignore "$directory/bin/pip" --disable-pip-version-check --quiet install --no-index --no-deps \
    --no-build-isolation --force-reinstall "$copy/python"
  # So that the first command does not compile it.
  "$directory/bin/python" -m compileall -q "$directory"/lib/python3*/site-packages/lengthwise
  echo "$package" >"$directory/package"
fi
say "ready: $directory"
