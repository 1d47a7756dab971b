#!/usr/bin/env bash
# Installs missing packages, builds the tests and what they run, and runs all except the long ones. Ends with the line "N passed, N failed[, N skipped]".
#
#   tests/run.sh [--strict] [--long[=PART,...]] [--within=MINUTES] [Bazel targets]
#
# --strict makes the compiler's warnings errors in this checkout, from now on (deploy/install.sh --strict), and also builds what no
#   test runs, such as benchmarks. CI does.
# --long adds long tests; --long=PART adds one part of them:
#   asan           unit tests without LibTorch under AddressSanitizer and UndefinedBehaviorSanitizer
#   asan_libtorch  those with LibTorch under the same
#   tsan           unit tests without LibTorch under ThreadSanitizer
#   fuzz           libFuzzer on every target of tests/fuzz, $LENGTHWISE_FUZZ_SECONDS each (60)
#   faults         tests tagged "long_part": hundreds of kills and interrupted runs, thousands of changed answers, crashes at
#                  the third hit of a failpoint
#   threads        every network with every encoding, eight batch sizes and five numbers of threads, on AVX-512 and AVX2
#   benchmarks     short benchmarks of the service, the scheduler, a watch and a large experiment's results: they must run
#                  and give right answers
#   releases       this build's programs with those of 0.1.0, built from the history
#   single_files   every source compiled by itself, instead of several at a time (bazel/cc.bzl): finds missing includes
#   wheel          the wheel of this build in a fresh Debian 12 and 13; needs root and a network
#   service        the units under the systemd of a fresh Debian 12, which needs root and a network, and every alert under
#                  Prometheus
# --within=MINUTES limits the total time, but for what the build needs. Does not start a part that needs more than the time left,
# and stops the tests or the part that runs at the limit. Reports what did not run and counts it as skipped.
set -euo pipefail
# The programs ignore a relative one, too.
case ${XDG_CACHE_HOME:-} in /*) ;; *) unset XDG_CACHE_HOME ;; esac
cd "$(dirname "$0")/.."

FUZZ_SECONDS="${LENGTHWISE_FUZZ_SECONDS:-60}"
# 0.1.0. docs/releasing.md states which releases work together.
EARLIER_RELEASE=4ad12fe

# Minutes that each part needs on two cores, with most of its objects in the disk cache.
declare -A needs=([asan]=10 [asan_libtorch]=15 [tsan]=10 [fuzz]=14 [faults]=25 [threads]=20 [benchmarks]=5 [releases]=12 [single_files]=20 [wheel]=15 [service]=12)

started=$SECONDS
within=0
strict=()
# Says how long the step before took. The times of all are printed in the line before the last.
times=""
step_started=$SECONDS
end_step() {
  [ -z "${step_name:-}" ] || times+="${times:+, }$step_name $((SECONDS - step_started)) s"
  step_name=$1 step_started=$SECONDS
}
step() { printf '\n== %s\n' "$*"; }
number=0
numbered_step() { step "$((++number))/4 $*"; }
parts=()
targets=()
for argument in "$@"; do
  case $argument in
    --strict) strict=(--strict) ;;
    --long) parts=(asan asan_libtorch tsan fuzz faults threads benchmarks releases single_files wheel service) ;;
    --long=*)
      IFS=, read -ra parts <<<"${argument#--long=}"
      for part in "${parts[@]}"; do
        [ -n "${needs[$part]:-}" ] || { echo "unknown part $part; see tests/run.sh --help" >&2; exit 2; }
      done
      ;;
    --within=*)
      within=${argument#--within=}
      [[ $within =~ ^[1-9][0-9]*$ ]] || { echo "--within takes minutes; see tests/run.sh --help" >&2; exit 2; }
      ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) echo "unknown flag $argument; see tests/run.sh --help" >&2; exit 2 ;;
    *) targets+=("$argument") ;;
  esac
done
filter=(--build_tag_filters=-manual --test_tag_filters=-long_part,-manual)
if [ ${#targets[@]} = 0 ]; then
  targets=(//...)
  [ ${#strict[@]} -gt 0 ] || filter+=(--build_tests_only)
fi
# Test tools only; users of Lengthwise need none of these. Without them the tests of monitoring,
# completion, manual pages, pages in a browser and exported weights in PyTorch are skipped.
# Debian's PyTorch multiplies five times as fast with BLIS as with the BLAS that it brings along.
packages=(chromium curl fish groff-base libblis4-serial man-db prometheus python3-torch zsh)
[[ ! " ${parts[*]} " =~ " fuzz " ]] || packages+=(clang libclang-rt-dev)
[[ ! " ${parts[*]} " =~ " wheel " ]] || packages+=(debootstrap qemu-user)
[[ ! " ${parts[*]} " =~ " service " ]] || packages+=(debootstrap libfaketime openssl strace)

# The Python package's dependencies, the packages that read models and exports, and the formatter.
# The C++ programs do not need them; without them their tests are skipped.
test_tools="${XDG_CACHE_HOME:-$HOME/.cache}/lengthwise/test-tools"
requirements=tests/python/requirements.txt
protobuf_versions=$(sed -n 's/^protobuf==\([0-9.]*\).*/\1/p' tests/python/protobuf_versions.txt)
test_tools_are_there() {
  local version
  cmp --silent "$requirements" "$test_tools/requirements.txt" || return
  for version in $protobuf_versions; do [ -d "$test_tools/protobuf-$version" ] || return; done
}
install_test_tools() {
  local pip=("$test_tools/bin/pip" --disable-pip-version-check --quiet install --no-deps --require-hashes) version
  if ! cmp --silent "$requirements" "$test_tools/requirements.txt"; then
    /usr/bin/python3 -m venv "$test_tools" && "${pip[@]}" --requirement "$requirements" || return
    cp "$requirements" "$test_tools/requirements.txt"
  fi
  # Installed beside the version of the requirements.
  for version in $protobuf_versions; do
    [ -d "$test_tools/protobuf-$version" ] && continue
    rm -rf "$test_tools/new" &&
      grep "^protobuf==$version " tests/python/protobuf_versions.txt >"$test_tools/protobuf.txt" &&
      "${pip[@]}" --target "$test_tools/new" --requirement "$test_tools/protobuf.txt" &&
      mv "$test_tools/new" "$test_tools/protobuf-$version" || return
  done
}
install_for_tests() {
  deploy/install.sh "${strict[@]}" "${packages[@]}"
  install_test_tools ||
    echo "cannot install $requirements into $test_tools: the tests of exports, of the Python package and of the documents'" \
      "commands will be skipped" >&2
  # Otherwise the tests would wait for it.
  [ -d "${test_tools%/*}/swift" ] || tests/object_store/with_store.sh true
  # Packages that tests have not used for a week (tests/python/installed_package.py). Another run may delete them, too.
  find "$test_tools" -maxdepth 2 -path "$test_tools/shared/package-*" -mtime +7 -exec rm -rf {} + || true
}
check_sources() {
  end_step checks
  numbered_step "checking formatting, Python style, and the documents' links, proofs and numbers"
  ! test_tools_are_there || export LENGTHWISE_TEST_PYTHON="$test_tools/bin/python"
  # Each version of clang-format formats differently. This one is the same on every system.
  formatter=$test_tools/bin/clang-format
  [ ! -x "$formatter" ] || git ls-files '*.h' '*.cc' '*.cu' | xargs "$formatter" --dry-run --Werror
  # //tests/python:python_client_test checks its types, because the messages are generated when it is
  # built.
  [ -z "${LENGTHWISE_TEST_PYTHON:-}" ] || "$LENGTHWISE_TEST_PYTHON" -m ruff check --quiet examples python experiments
  tests/documentation/check_proofs.py
  tests/documentation/check_links.py
  tests/documentation/check_includes.py
  experiments/reproduced/make_page.py --check
  experiments/quick_pages.py --check
}
build() {
  numbered_step "building ${targets[*]} (some minutes on two cores the first time)"
  bazel build "${filter[@]}" "${targets[@]}"
}

results=$(mktemp -d)
installing=""
clean_up() {
  if [ -n "$installing" ]; then
    echo "waiting for the installation of the tests' tools to end" >&2
    wait "$installing" || cat "$results/install.output" >&2
  fi
  rm -rf "$results" "${in_memory[@]#--sandbox_base=}"
}
in_memory=()
trap clean_up EXIT
end_step install
numbered_step "installing missing packages (nothing to do the second time)"
(. /etc/os-release && echo "on $PRETTY_NAME ($(cat /etc/debian_version 2>/dev/null || echo "no Debian"), $(uname -m))")
# The first time beside the build, which needs none of it: pip, dpkg and the network keep one processor busy at most. Not if a
# password would be asked for, or if only an administrator can install.
if test_tools_are_there || { [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; }; then
  install_for_tests
  check_sources
  end_step build
  build
else
  deploy/install.sh "${strict[@]}"
  (install_for_tests) >"$results/install.output" 2>&1 &
  installing=$!
  end_step "build beside the tests' tools"
  build
  installed=0
  wait "$installing" || installed=$?
  installing=""
  cat "$results/install.output"
  [ "$installed" = 0 ] || exit "$installed"
  check_sources
fi

[ -x "$formatter" ] || echo "the formatting was not checked: $formatter is not installed" | tee -a "$results/skipped.txt"
status=0
limit=0 # seconds that a command of run_tests or run_part may take; 0: as long as it takes
# Runs a command for at most $limit seconds. Exits with 124 if it was stopped.
bounded() {
  if [ $limit = 0 ]; then "$@"; else timeout --signal=INT --kill-after=60 $limit "$@"; fi
}
stopped() { echo "$1 was stopped at the time limit: it did not run completely" | tee -a "$results/skipped.txt"; }
# Tests work in memory where there are 6 GB of it: nothing that they write outlives them, so no disk needs to take and discard it.
# Bazel 4 keeps the directories of all tests until it ends (3.4 GB after a whole run), so they are deleted at the end. The path is
# short because SQLite's paths have at most 512 bytes, and a test's directory has a long name.
kilobytes=$({ df --output=avail /dev/shm 2>/dev/null; sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo; } |
  grep '^ *[0-9]' | sort -n | head -n 1)
if [ -w /dev/shm ] && ! grep -q '^[^ ]* /dev/shm [^ ]* [^ ]*noexec' /proc/mounts && [ "${kilobytes:-0}" -gt 6000000 ]; then
  in_memory=(--sandbox_base="$(mktemp -d /dev/shm/lw.XXXXXX)")
fi
# run_tests NAME FLAG... TARGET...: continues after failures, which are counted at the end.
run_tests() {
  local name=$1 ended=0
  shift
  test_all "$name" "${in_memory[@]}" "$@" || ended=$?
  if [ $ended = 1 ] && [ ${#in_memory[@]} -gt 0 ]; then
    echo "bazel test could not run everything in memory: what is missing runs on the disk" >&2
    df -h /dev/shm >&2
    rm -rf "${in_memory[@]#--sandbox_base=}"
    in_memory=() ended=0
    [ $limit = 0 ] || limit=$(($(seconds_left) > 60 ? $(seconds_left) : 60))
    test_all "$name" "$@" || ended=$?
  fi
  case $ended in
    0) return ;;
    124) stopped "$name"; return ;;
    3) ;; # tests failed
    *) echo "bazel test exited with status $ended: something did not run" >&2 ;;
  esac
  status=1
}
test_all() {
  local name=$1
  shift
  bounded tests/object_store/with_store.sh bazel test --keep_going --build_event_json_file="$results/$name.json" "$@"
}
# run_part NAME COMMAND...: a part that is not a Bazel test. Exit code 77 means skipped; its last
# line is the reason.
run_part() {
  local name=$1 ended=0
  shift
  bounded "$@" | tee "$results/$name.output" || ended=$?
  case $ended in
    0) ;;
    77) tail -n 1 "$results/$name.output" >>"$results/skipped.txt" ;;
    124) stopped "$name" ;;
    *) echo "$name ended with status $ended" | tee -a "$results/failed.txt" ;;
  esac
}

seconds_left() { echo $((60 * within - (SECONDS - started))); }

end_step tests
numbered_step "testing"
if [ "$within" != 0 ]; then
  limit=$(seconds_left)
  [ "$limit" -gt 0 ] || limit=1
fi
# Many tests wait for processes and clocks for a part of their time, so two more than there are processors run at a time.
jobs=$(($(nproc) + 2))
run_tests plain --jobs=$jobs --local_test_jobs=$jobs "${filter[@]}" "${targets[@]}"

# unit_tests PART: the tests that a sanitizer runs. Excludes tests of processes (end_to_end, faults,
# fleet, monitoring, documentation, python, web), which would show it no further code. The tags no-asan
# and no-tsan exclude tests in which a sanitizer finds nothing and takes long.
unit_tests() {
  local libtorch='rdeps(//..., @libtorch//:libtorch)' which sanitizer=${1%_libtorch}
  which="except $libtorch"
  [ "$1" = "$sanitizer" ] || which="intersect $libtorch"
  bazel cquery --noshow_progress 'tests(//...) '"$which"' except
    (attr(tags, "manual|long_part|no-'"$sanitizer"'", //...) union //tests/end_to_end/... union //tests/faults/... union
     //tests/fleet/... union //tests/monitoring/... union //tests/documentation/... union //tests/python/... union //tests/web/...)' |
    sed 's/ (.*//' | sort -u
}
for part in "${parts[@]}"; do
  end_step "long: $part"
  if [ "$within" != 0 ]; then
    left=$(seconds_left)
    if [ $left -lt $((60 * needs[$part])) ]; then
      echo "$part was not started: it needs ${needs[$part]} minutes, $((left / 60)) of $within are left" |
        tee -a "$results/skipped.txt"
      continue
    fi
    limit=$((left - 60)) # a minute to stop and to count
  fi
  case $part in
    asan | asan_libtorch | tsan)
      step "long: unit tests, $part"
      unit_tests "$part" >"$results/$part.targets"
      run_tests "$part" "--config=$part" --target_pattern_file="$results/$part.targets"
      ;;
    faults)
      step "long: tests tagged long_part"
      run_tests faults --build_tag_filters=long_part,-threads,-manual --test_tag_filters=long_part,-threads,-manual //...
      ;;
    threads)
      step "long: any number of threads"
      run_tests threads --test_tag_filters=threads //worker/training/...
      ;;
    fuzz)
      step "long: fuzzing, $FUZZ_SECONDS s each"
      run_part fuzz tests/fuzz/run.sh "$FUZZ_SECONDS"
      ;;
    benchmarks)
      step "long: benchmarks, shortened"
      run_part service_benchmarks benchmarks/service/run.sh --short
      run_part watch_benchmark bazel run //client/commands:watch_benchmark -- --seconds 5
      run_part results_benchmark bazel run //client/commands:results_benchmark
      ;;
    releases)
      step "long: compatibility with 0.1.0"
      run_part build_release tests/end_to_end/build_release.sh "$EARLIER_RELEASE"
      programs=$(tail -n 1 "$results/build_release.output")
      if [ -x "$programs/lengthwise" ]; then
        run_tests releases --test_env=LENGTHWISE_OTHER_RELEASE="$programs" //tests/end_to_end:release_test
      fi
      ;;
    single_files)
      step "long: every source compiled by itself"
      bazel query --noshow_progress 'kind("cc_(library|binary|test) rule", //...)' >"$results/single_files.targets"
      run_part single_files bazel build --config=single_files --target_pattern_file="$results/single_files.targets"
      ;;
    wheel)
      step "long: the wheel on a fresh Debian 12 and 13"
      # Other parts leave the programs of other configurations in bazel-bin.
      run_part wheel_programs bazel build //client:lengthwise //server:lengthwise_server //worker:lengthwise_worker
      run_part wheel tests/wheel/try_wheel.sh
      ;;
    service)
      step "long: the units under systemd, and every alert under Prometheus"
      run_part service_programs bazel build //client:lengthwise //server:lengthwise_server //worker:lengthwise_worker
      run_part units tests/systemd/try_units.sh
      run_part alerts tests/monitoring/every_alert.py
      ;;
  esac
done
end_step ""

rm -f "$results"/*.targets "$results"/*.output
/usr/bin/python3 tests/count_results.py "$results"/* | sed "\$i took: $times; everything $((SECONDS - started)) s" || status=1
exit $status
