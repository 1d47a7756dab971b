#!/usr/bin/env bash
# Trains what the pages of this folder still lack, at the lowest priority and on one thread a trial, and adds it to them. If it is
# interrupted, it adds the trials that have ended; the same call resumes. Needs `lengthwise` on the PATH, and a python3 with the
# Python package for the pictures.
#
#   experiments/reproduced/missing.sh PART MACHINE [OPTIONS of `lengthwise run`, such as --workers 1]
#
# MACHINE names the machine on the page: "two cores of an Intel Xeon, one thread a trial". The parts, with the hours of one core:
#   others      Table 1's sorting, ten runs of each graph, tested on 100,000 other vectors     20 trials, 3 to 4 hours
#   stars       Table 1's sums on a star with self-connections, seeds 1 to 9                    9 trials, 5 hours
#   even_pairs  the last encoding of ten_seeds.yaml's first task                               10 trials, 1 hour
#   tasks       its other three tasks                                                         120 trials, 12 hours
#
# LENGTHWISE_RUNS_DIR names the directory of the runs; default ~/.local/share/lengthwise/runs.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
part=${1:?PART is missing: others, stars, even_pairs or tasks}
machine=${2:?MACHINE is missing: where this is trained, for the page}
shift 2
runs=${LENGTHWISE_RUNS_DIR:-$HOME/.local/share/lengthwise/runs}/$part
name=table1_gcn
case $part in
  others)
    name=table1_gcn_others
    edit=(-e 's/^name:.*/name: table1_gcn_others/' -e 's/^tasks:.*/tasks: sorting/'
      -e 's/^evaluation: {/&sequences: 100000, seed: 1, /')
    ;;
  stars)
    edit=(-e 's/^tasks:.*/tasks: cumulative_sum\nseeds: 1..9/' -e '/gcn_complete/d' -e 's/ self_connections: false,//')
    ;;
  even_pairs)
    name=ten_seeds
    edit=(-e 's/^tasks:.*/tasks: even_pairs/' -e '/^  - {name: sin_cos/d' -e '/^  - {name: relative, max_position: 256}/d')
    ;;
  tasks)
    name=ten_seeds
    edit=(-e 's/^tasks: \[even_pairs, /tasks: [/')
    ;;
  *)
    echo "there is no part $part; expected others, stars, even_pairs or tasks" >&2
    exit 2
    ;;
esac
status=0
sed "${edit[@]}" "$here/${name%_others}.yaml" | nice -n 19 lengthwise run - --threads 1 --data_dir "$runs" "$@" || status=$?
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
lengthwise publish "$name" -o "$site/site" --data_dir "$runs"
"$here/make_page.py" --add "$site/site" --machine "$machine"
exit "$status"
