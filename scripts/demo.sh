#!/usr/bin/env bash
# The main job on two real models: which strategies fit, what do they save, what do they cost?
# usage: scripts/demo.sh      (after `make build`; `make demo` does both)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

show() {
  printf '\n$ %s\n' "${*/#build\//}"
  "$@"
}

show build/tidemark compare examples/vit-b-16/config.json --batch 64 --precision amp-fp16
show build/tidemark compare examples/llama-7b/config.json --device rtx-4090 --batch 4 --sequence 2048 \
  --precision bf16 --tuning lora:r=8,targets=q,v
