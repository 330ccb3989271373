#!/usr/bin/env bash
# Runs the fuzzers of a build folder one after the other, starting from the checked-in corpus, and
# prints how many inputs each tried and which share of its reader's lines the corpus reaches. New
# inputs are kept in the build folder; a crash stops the run and prints the file that repeats it.
# usage: scripts/run_fuzzers.sh BUILD_FOLDER SECONDS_EACH [READER…]     (default: all; 0 s: only lines)
# FUZZ_RUNS=5000000 in the environment ends each after so many inputs, or its seconds; FUZZ_TIMEOUT
# says after how many seconds an input is a finding (10).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$1/tests/fuzz seconds=$2
shift 2

shopt -s nullglob
fuzzers=()
for fuzzer in "$folder"/fuzz_*; do
  [[ -x "$fuzzer" && -f "$fuzzer" ]] && fuzzers+=("${fuzzer##*/fuzz_}")
done
(( $# )) && fuzzers=("$@")
(( ${#fuzzers[@]} )) || { echo "run_fuzzers.sh: no fuzzers in $folder" >&2; exit 1; }

# The texts in a reader's source are words of what it reads: keys, names, units.
dictionary() {
  mapfile -t sources < "$folder/$1.sources"
  grep -oh '"[A-Za-z0-9_.:%=|-]\{2,40\}"' "${sources[@]}" /dev/null | sort -u || true
}

fuzz() {
  local reader=$1 found=$folder/found/$1
  # Which input is tried next is not weighed (-entropic): that takes a third of the time of readers
  # as quick as these.
  local limits=(-max_total_time="$seconds" -runs="${FUZZ_RUNS:--1}"
                -timeout="${FUZZ_TIMEOUT:-10}" -rss_limit_mb=2048)
  mkdir -p "$found"
  dictionary "$reader" > "$folder/$reader.words"
  # libFuzzer refuses a dictionary without a word; some readers read bytes alone.
  [[ ! -s "$folder/$reader.words" ]] || limits+=(-dict="$folder/$reader.words")
  echo "== $reader, $seconds s" >&2
  # Nor is it noted from where each piece of memory was asked for, which takes another third: the
  # file of a crash repeats it with all that.
  ASAN_OPTIONS=malloc_context_size=2:${ASAN_OPTIONS:-} LLVM_PROFILE_FILE=/dev/null \
    "$folder/fuzz_$reader" "${limits[@]}" -print_final_stats=1 -entropic=0 \
    -artifact_prefix="$folder/" "$found" "$(< "$folder/$reader.corpus")" \
    >&2 2> >(tee "$folder/$reader.log" >&2)
  sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$reader.log"
}

# "98.21 %  385 of 392"; inputs of the corpus alone, each once.
covered_lines() {
  local reader=$1 raw=$folder/$1.profraw data=$folder/$1.profdata
  mapfile -t sources < "$folder/$reader.sources"
  [[ -n "${sources[0]}" ]] || { echo "not counted"; return; }
  LLVM_PROFILE_FILE=$raw "$folder/fuzz_$reader" -runs=0 "$(< "$folder/$reader.corpus")" 2> /dev/null
  llvm-profdata merge "$raw" -o "$data"
  llvm-cov export -summary-only "$folder/fuzz_$reader" -instr-profile="$data" "${sources[@]}" |
    python3 -c '
import json, sys
lines = json.load(sys.stdin)["data"][0]["totals"]["lines"]
print("%.2f %%  %d of %d" % (lines["percent"], lines["covered"], lines["count"]))'
}

report=$(printf '%-18s %12s  %s' reader executions "lines of the reader that the corpus reaches")
for reader in "${fuzzers[@]}"; do
  executions=0
  (( seconds == 0 )) || executions=$(fuzz "$reader")
  report+=$(printf '\n%-18s %12s  %s' "$reader" "$executions" "$(covered_lines "$reader")")
done
echo "$report"
