#!/usr/bin/env bash
# Runs every command that `lengthwise --help` lists, with every analysis, figure and export format,
# on an installation. Trains, draws, analyses and exports a few small experiments. A listed command
# that this script does not run is a failure.
#
#   tests/end_to_end/every_command.sh [LENGTHWISE [SERVER [WORKER]]]
#
# LENGTHWISE is the program, by default bazel-bin/client/lengthwise of this checkout. Server and
# worker are looked up beside it, or in a build's folders, unless they are given. The last line
# counts the commands that were run. Exits with 1 after a failure.
set -uo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
program=$(realpath "${1:-$checkout/bazel-bin/client/lengthwise}")
# beside NAME: prints the path of lengthwise_NAME in an installation or a build.
beside() {
  local path
  for path in "$(dirname "$program")/lengthwise_$1" "$(dirname "$program")/../$1/lengthwise_$1"; do
    [ ! -x "$path" ] || { realpath "$path"; return; }
  done
}
server=${2:-$(beside server)}
worker=${3:-$(beside worker)}
for path in "$program" "$server" "$worker"; do
  [ -x "$path" ] || { echo "no program ${path:-beside $program}; see $0" >&2; exit 2; }
done

work=$(mktemp -d)
started=()
stop() {
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do kill "${started[$i]}" 2>/dev/null && wait "${started[$i]}" 2>/dev/null; done
  rm -rf "$work"
}
trap stop EXIT
cd "$work" || exit
# Removes the caller's settings.
for variable in $(compgen -e LENGTHWISE_); do
  [ "$variable" = LENGTHWISE_PYTHON ] || unset "$variable"
done
export LENGTHWISE_CONFIG="" LC_ALL=C.UTF-8
export LENGTHWISE_SERVER_BINARY=$server LENGTHWISE_WORKER_BINARY=$worker

# The commands that were run, and the number of failures.
declare -A ran=()
count=0
failures=0
fail() { failures=$((failures + 1)); printf 'FAILED: %s\n' "$*"; }
# try COMMAND...: must exit with 0 and print something.
try() {
  count=$((count + 1))
  ran[$1]=1
  if ! timeout 300 "$program" "$@" >output 2>&1 </dev/null; then
    fail "lengthwise $*"
    sed 's/^/    /' output | tail -n 12
  elif [ ! -s output ]; then
    fail "lengthwise $* prints nothing"
  fi
}
# try_for TEXT COMMAND...: its output must contain TEXT.
try_for() {
  local text=$1
  shift
  try "$@"
  grep -qF -- "$text" output || fail "lengthwise $* does not print \"$text\""
}
# made FILE...: the last command must have created these files.
made() {
  for path in "$@"; do [ -s "$path" ] || fail "$path was not written"; done
}

cat >strings.yaml <<'YAML'
name: strings
protocol: randomized_positional_encodings
tasks: bucket_sort
networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}
encodings: [{name: relative, max_position: 64}, {name: relative, max_position: 64, randomized: true}]
learning_rates: 1e-3
seeds: 0..1
training: {steps: 20, batch_size: 8, lengths: 1..8, report_every_steps: 2}
evaluation:
  lengths: 4..16 step 4
  sequences: 16
  every_steps: 5
  interval_lengths: [4, 12]
  attention_lengths: [8]
  projection: {fitted_length: 8, lengths: [8, 16], sequences: 4}
YAML
cat >puzzles.yaml <<'YAML'
name: puzzles
protocol: latin_square
tasks: {name: latin_square, training_puzzles: 256}
networks: {name: layerwise_encoder, blocks: 2, heads: 1, d_model: 16}
encodings:
  - {name: learned, max_position: 16, distribution: normal, stddev: 0.2, label: learn_0.2}
  - {name: sin_cos_2d, label: 2d_fixed}
learning_rates: 3e-4
seeds: [1, 2]
training: {epochs: 1, examples: 256, batch_size: 32, report_every_steps: 1}
evaluation:
  every_steps: 4
  attention_lengths: 1..3
  attention_sequences: 4
  sequence_scores: true
  embedding_noise: [0.1, 1]
  training_examples: 32
YAML
cat >numbers.yaml <<'YAML'
name: numbers
protocol: positional_attention
tasks: [cumulative_sum, sorting]
seeds: [0, 1]
training: {steps: 10, batch_size: 16, report_every_steps: 2}
evaluation: {sequences: 16, attention_lengths: [1, 3]}
YAML
cat >sums.yaml <<'YAML'
name: sums
protocol: decimal_addition
tasks: {name: decimal_addition, hint_symbols: 9}
networks: {name: causal_decoder, blocks: 1, heads: 2, d_model: 16, d_ff: 32}
encodings: [fire, {name: none, label: nope}]
learning_rates: [1e-3, 1e-4]
weight_seeds: [0, 1]
data_seeds: [0, 1]
training:
  steps: 20
  batch_size: 2
  lengths: 1..4
  packing: {tokens: 64, answers_only: true}
  schedule: {name: warmup_cosine, warmup_steps: 5}
  report_every_steps: 2
evaluation: {lengths: 1..6, sequences: 40, sequence_scores: true, every_steps: 5, interval_lengths: [2, 6]}
YAML
# On this machine, without a running server.
try_for "by length" run strings.yaml --data_dir alone --workers 1
for command in list storage backup; do try "$command" --data_dir alone; done
for command in results report; do try "$command" strings --data_dir alone; done

# Without a server.
try_for OK validate puzzles.yaml
cat >module.py <<'MODULE'
import torch


class Net(torch.nn.Module):
    def __init__(self, vocabulary, outputs):
        super().__init__()
        self.embedding, self.out = torch.nn.Embedding(vocabulary, 8), torch.nn.Linear(8, outputs)

    def forward(self, tokens):
        return self.out(self.embedding(tokens))
MODULE
cat >module.yaml <<'SPECIFICATION'
name: module
tasks: reverse_string
networks: {name: python, file: module.py, class: Net}
encodings: own
learning_rates: 1e-3
seeds: 0
training: {steps: 2, batch_size: 2, lengths: 1..4}
evaluation: {lengths: 2..4}
SPECIFICATION
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  export LENGTHWISE_PYTHON_NETWORKS=/usr/bin/python3
  try_for "logits have the shape" check module.yaml
  sed 's/tasks: .*/tasks: [reverse_string, parity_check]/' module.yaml >two.yaml
  try_for "python, parity_check: logits have the shape" check two.yaml
else
  echo "not run: check, because /usr/bin/python3 has no PyTorch"
  ran[check]=1
fi
try sample bucket_sort --length 8 --count 3
for command in tasks encodings networks optimizers schedules protocols; do try "$command"; done
try tasks latin_square
try man
try man watch
try man --out pages
made pages/lengthwise-analyze-noise.1
for shell in bash zsh fish; do try_for lengthwise completion "$shell"; done

# With a server that requires tokens, and a worker.
"$server" --data_dir data --create_admin_token admin.token >server.log 2>&1 || { cat server.log; exit 1; }
"$server" --data_dir data --listen 127.0.0.1:0 --metrics_listen 127.0.0.1:0 --ready_file ready >>server.log 2>&1 &
started+=($!)
until [ -s ready ]; do
  kill -0 "${started[0]}" || { cat server.log; exit 1; }
  sleep 0.1
done
export LENGTHWISE_SERVER LENGTHWISE_TOKEN_FILE=admin.token
LENGTHWISE_SERVER=$(head -n 1 ready)
try auth create-token ada --role submitter --out ada.token
try auth create-token gpus --role worker --out gpus.token
try auth list-tokens
try_for ada auth whoami --token_file ada.token
try config
LENGTHWISE_TOKEN_FILE=gpus.token "$worker" --server "$LENGTHWISE_SERVER" --device cpu --threads 1 >worker.log 2>&1 &
started+=($!)

export LENGTHWISE_TOKEN_FILE=ada.token
try submit strings.yaml --dry_run
try submit strings.yaml --watch
for name in puzzles numbers sums; do try submit "$name.yaml"; done
for name in puzzles numbers sums; do try watch "$name"; done
try_for strings-1 list
try show strings
try show strings/0
try logs strings/0
try results strings
for kind in json csv markdown latex; do try results strings --output "$kind"; done
try results --compare list
try_for "Table 1" results strings --compare randomized_pe/table_1
try_for "Table 1" results puzzles --compare lst_pe_init/table_1
try results numbers --compare positional_attention/figure_2
try results sums --compare addition_length_gen/statements
try attention strings/0
try attention strings/0 --input 0,1,1,0,1
try errors strings/0 --length 20 --count 3
try predict strings/0 --input 0,1,1,0,1
try predict sums/0 --input '12+07='
try evaluate strings/0 --lengths 4,20 --sequences 8
try extend strings --seeds 2
try watch strings
try compare strings puzzles
try workers
for owner in grace ada; do try hand-over strings-1 --to "$owner" --token_file admin.token; done
try queue pause --reason "new disks" --token_file admin.token
try_for "The queue is paused by" list --token_file admin.token
try queue resume --token_file admin.token
try storage --token_file admin.token
try backup --token_file admin.token
try doctor --token_file admin.token

# Each analysis, and each output format.
"$program" sample latin_square --validation --length 1 --count 1000 --output csv | awk -F , '
  BEGIN { printf "{\"puzzles\": [" }
  NR > 1 { printf "%s{\"puzzle\": \"%s\", \"human_accuracy\": %.2f}", (NR > 2 ? ", " : ""), $1, (NR % 5) / 4 }
  END { print "]}" }' >people.json
declare -A analyses=(
  [attention]="puzzles --reference 2d_fixed --compare lst_pe_init/table_3"
  [attention_matrix]="puzzles --measure js"
  [ground_truth]="puzzles"
  [encodings]="puzzles --reference 2d_fixed"
  [noise]="puzzles"
  [humans]="puzzles --file people.json"
  [carries]="sums"
  [carry_chains]="sums"
  [speed]="strings --accuracy 0.01"
  [loss_ratios]="numbers --reference standard --compare positional_attention/figure_2"
  [t_test]="puzzles --reference 2d_fixed"
)
# shellcheck disable=SC2086 # options
for analysis in $("$program" analyze --help | sed -nE 's/^  lengthwise analyze ([a-z_]+) .*/\1/p'); do
  if [ -n "${analyses[$analysis]:-}" ]; then try analyze "$analysis" ${analyses[$analysis]}; else fail "no run of analyze $analysis"; fi
done
for kind in json csv markdown latex; do try analyze noise puzzles --output "$kind"; done

# Each figure, and each file format.
declare -A figures=(
  [accuracy_by_length]="sums --seeds best --together"
  [accuracy_of_trials]="sums"
  [seed_distribution]="sums --threshold 0.5 --select unseen"
  [error_places]="sums --seeds all"
  [error_counts]="sums --length 6"
  [loss]="sums --seeds all"
  [loss_over_time]="strings"
  [attention]="strings"
  [projection]="strings"
  [length_sweep]="sums --parameter learning_rate"
  [accuracy_over_steps]="sums"
  [accuracy_over_epochs]="puzzles"
  [accuracy_over_time]="strings"
  [noise]="puzzles"
  [attention_ground_truth]="puzzles"
  [attention_similarity]="puzzles --reference 2d_fixed"
  [encoding_distance]="puzzles --reference 2d_fixed"
  [noise_average]="puzzles"
  [attention_matrix]="puzzles"
  [human_scores]="puzzles --people people.json"
  [human_scatter]="puzzles --people people.json"
  [error_carries]="sums"
  [carry_chains]="sums"
  [domain_bound]="numbers"
)
# shellcheck disable=SC2086 # options
for figure in $("$program" plot --help | sed -n '/^ *Figures:/,$p' | sed -nE 's/^ +([a-z_]+)  +[a-z].*/\1/p'); do
  if [ -z "${figures[$figure]:-}" ]; then fail "no run of plot --figure $figure"; continue; fi
  try plot ${figures[$figure]} --figure "$figure" -o "$figure.svg"
  made "$figure.svg"
done
try plot strings --figure loss
made strings-1-loss.svg strings-1-loss.png
try plot strings --figure loss -o loss.pdf --data loss.csv --script loss.py
made loss.pdf loss.csv loss.py
try plot strings --figure accuracy_by_length --terminal

# Each export format.
formats=$("$program" export --help | sed -nE 's/^ *--format FORMAT:\{([a-z,]+)\}.*/\1/p' | tr , ' ')
[ "$(wc -w <<<"$formats")" -gt 3 ] || fail "the help of export lists few formats: $formats"
for format in $formats; do
  try export strings --format "$format" -o "export-$format"
  [ -e "export-$format" ] || fail "export-$format was not written"
done
try_for report.html report strings -o report.html
made report.html
try publish strings -o site
made site/index.html site/SHA256SUMS
try report puzzles --compare lst_pe_init/table_1 -o puzzles.html

# The page serves until it is interrupted.
count=$((count + 1)) ran[web]=1
exec 3< <(exec "$program" web --listen 127.0.0.1:0 2>&1)
page=$!
read -r -t 120 line <&3
[[ ${line:-} = http://127.0.0.1:*/?token=* ]] || fail "lengthwise web does not print its address: ${line:-}"
kill -INT "$page"
wait "$page"
[ $? = 130 ] || fail "lengthwise web does not end with 130 after Ctrl-C"

# Commands that change an experiment come last.
try submit numbers.yaml --request_id again
try cancel numbers-2 --reason "not needed"
try retry numbers-2 --cancelled
try cancel numbers-2
try delete numbers-2 --yes

commands=$("$program" --help | sed -nE 's/^  ([a-z][a-z-]+)  +[A-Z].*/\1/p')
[ "$(wc -w <<<"$commands")" -gt 30 ] || fail "the help lists few commands: $commands"
for command in $commands; do
  [ -n "${ran[$command]:-}" ] || fail "lengthwise --help lists the command $command, which was not run"
done
echo "$count commands were run, $failures failed"
[ "$failures" = 0 ]
