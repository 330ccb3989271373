#!/bin/sh
# Runs a test of the Python package. Exit code 77 means skipped; the reason is the last line.
if ! command -v python3 > /dev/null; then
  echo "SKIPPED: no python3"
  exit 77
fi
test=$1; shift
exec python3 "$(dirname "$0")/$test" "$@"
