#!/usr/bin/env bash
# Runs every fuzzer of a build folder, starting from the checked-in corpus. New inputs are kept in
# the build folder; a crash stops the run and prints the file that repeats it.
# usage: scripts/run_fuzzers.sh BUILD_FOLDER SECONDS_EACH
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$1/tests/fuzz seconds=$2

shopt -s nullglob
fuzzers=("$folder"/fuzz_*)
(( ${#fuzzers[@]} )) || { echo "run_fuzzers.sh: no fuzzers in $folder" >&2; exit 1; }

for fuzzer in "${fuzzers[@]}"; do
  [[ -x "$fuzzer" && -f "$fuzzer" ]] || continue
  name=$(basename "$fuzzer")
  found=$folder/found/$name
  mkdir -p "$found"
  echo "== $name, $seconds s"
  "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$folder/" "$found" "tests/fuzz/corpus/${name#fuzz_}"
done
