#!/usr/bin/env bash
# Rewrites docs/accuracy.md: published numbers beside what the program predicts now.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build --preset release --target tidemark_accuracy
build/tests/accuracy/tidemark_accuracy tests/reference tests/golden/allocator > docs/accuracy.md.new
mv docs/accuracy.md.new docs/accuracy.md
