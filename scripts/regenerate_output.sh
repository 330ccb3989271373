#!/usr/bin/env bash
# Rewrites the output of every console block that begins with "$ tidemark" in the documents, so that
# what they show is what the program prints.
# usage: scripts/regenerate_output.sh [--check] [PROGRAM]     (default: build/tidemark)
#   --check  change nothing, fail if a document is out of date
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

check=false
if [ "${1:-}" = --check ]; then check=true; shift; fi
program=$(realpath "${1:-build/tidemark}")
documents=(README.md docs/how_it_works.md docs/parallel.md docs/plan_format.md docs/planning.md)

# Everything of the document but the output of its commands, and that anew.
with_output() {
  local inside=false line
  while IFS= read -r line; do
    if $inside && [ "$line" != '```' ]; then continue; fi
    inside=false
    printf '%s\n' "$line"
    if [[ $line == '$ tidemark '* ]]; then
      inside=true
      NO_COLOR=1 LC_ALL=C.UTF-8 bash -c "tidemark() { '$program' \"\$@\"; }; ${line#\$ }" 2>&1 || true
    fi
  done < "$1"
}

status=0
for document in "${documents[@]}"; do
  with_output "$document" > "$document.new"
  if cmp -s "$document" "$document.new"; then
    rm "$document.new"
  elif $check; then
    diff -u "$document" "$document.new" | head -40 || true
    rm "$document.new"
    echo "$document is out of date: run scripts/regenerate_output.sh and review the change"
    status=1
  else
    mv "$document.new" "$document"
    echo "$document rewritten"
  fi
done
exit $status
