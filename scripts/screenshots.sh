#!/usr/bin/env bash
# Draws the pictures of docs/gui.md and the README anew, without a display. Look at them before they
# are committed.
# usage: scripts/screenshots.sh [PROGRAM]     (default: build/tidemark)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=$(realpath "${1:-build/tidemark}")
folder=docs/pictures
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$folder"

# picture NAME SCRIPT ARGUMENTS…: SCRIPT is input to play first (docs/gui.md), or "".
picture() {
  local name=$1 script=$2
  shift 2
  local play=()
  if [ -n "$script" ]; then
    printf '%s\n' "$script" > "$scratch/script"
    play=(--script "$scratch/script")
  fi
  "$program" view "$@" "${play[@]}" --screenshot "$folder/$name.png"
}

# Two streams: the reconstruction of a block beside the gradients of the one before.
picture view "" vit-b-16 --batch 64 --precision amp-bf16 --strategies pareprop,vanilla

# Zoomed in, with a run selected: arrows go to where its results are used last.
picture zoom '1 mouse 1000 150
2 wheel 6
4 wheel 6
6 mouse 700 104
8 down left
10 up left
12 mouse 500 600
14 mouse 501 600' vit-b-16 --batch 64 --precision amp-bf16 --strategy pareprop

# What is alive at the peak, by category, block and op.
picture icicle '1 mouse 381 520
2 down left
3 up left
6 mouse 700 650' swin-t --batch 128 --precision amp-fp16 --strategy checkpoint

# Two strategies in numbers.
picture compare '1 mouse 521 520
2 down left
3 up left
6 mouse 700 790' swin-t --batch 64 --strategies vanilla,pareprop

# The arena at the peak, in a narrow window.
picture narrow '1 mouse 155 482
2 down left
3 up left
6 mouse 300 100' vit-b-16 --batch 64 --strategy mesa --size 480x720
