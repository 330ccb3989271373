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
6 mouse 700 160
8 down left
10 up left
12 mouse 500 600
14 mouse 501 600' vit-b-16 --batch 64 --precision amp-bf16 --strategy pareprop

# In one minute (docs/gui.md): a step that does not fit, and what to do.
short=(gpt2 --batch 16 --device rtx-4090)
picture minute_1 "" "${short[@]}"

# The mouse over a lever.
picture minute_2 '1 mouse 420 640
5 mouse 421 640' "${short[@]}"

# Two that are collected with Ctrl.
picture minute_3 '1 mouse 420 602
3 press control
4 hold control
5 down left
6 up left
9 mouse 420 640
11 down left
12 up left
14 release control
16 mouse 620 300' "${short[@]}"

# One is applied: it fits, and the curve before it stays as a line.
picture minute_4 '1 mouse 420 602
3 down left
4 up left
9 mouse 620 300' "${short[@]}"

# Who is alive at the peak now, equal roles as one row.
picture minute_5 '1 mouse 382 527
2 down left
3 up left
9 mouse 620 300' "${short[@]}" --loss fused-linear

# Every tensor a band, without what is persistent; the mouse names one.
picture bands '1 press m
3 press m
5 press x
7 mouse 760 360
9 mouse 761 360' gpt2 --batch 8

# Two strategies phase by phase; the mouse over the backward says how much longer it takes.
picture phases '1 press l
4 mouse 900 102
7 mouse 901 102' vit-b-16 --batch 64 --strategies vanilla,checkpoint

# A pipeline: who needs most, and who waits.
picture ranks '1 mouse 378 534
2 down left
3 up left
6 mouse 700 790' gpt2 --batch 2 --mesh pp=4 --accumulate 8

# What is alive at the peak, by category, block and op.
picture icicle '1 mouse 438 527
2 down left
3 up left
6 mouse 700 650' swin-t --batch 128 --precision amp-fp16 --strategy checkpoint

# Two strategies in numbers.
picture compare '1 mouse 578 527
2 down left
3 up left
6 mouse 700 790' swin-t --batch 64 --strategies vanilla,pareprop

# The arena at the peak, in a narrow window.
picture narrow '1 mouse 262 508
2 down left
3 up left
6 mouse 300 100' vit-b-16 --batch 64 --strategy mesa --size 480x720
