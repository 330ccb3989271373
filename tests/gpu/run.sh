#!/usr/bin/env bash
# Everything that needs a GPU, in at most ten minutes on a machine with 16 cores:
#
#   tests/gpu/run.sh [--parts LIST] [FOLDER]
#
# Results go to FOLDER, else $OUT, else bench/results/<device>/<day>, and all together to
# FOLDER.tar.gz. LIST names parts in the order in which they run, separated by commas; the usual order
# begins with the bar, and then with what is worth most:
#
#   build      the programs, with the CUDA plugin, into build-gpu/packed (left out if they are there)
#   torch      a ViT-B step in PyTorch: what the replays are measured against   torch.json
#   tests      every kernel on the GPU against its CPU twin                     gpu_tests.txt
#   calibrate  a device file, and how well it predicts                          device.json
#   replays    training steps of tests/gpu/replays.txt, predicted by that file  replays.jsonl
#              with clocks and power while each ran, and the products' algorithms
#                                                                clocks.csv, products.txt
#   kernels    bandwidth and FLOP/s of single kernels                           kernels.json
#   steps      steps of Hugging Face's models in PyTorch: memory and time       torch_steps.json
#   record     a recording of PyTorch's step, and what recording costs it        recorded.timeline
#   observed   some of the replays, watched by CUPTI                            observed.jsonl
#   memcheck   the tests under compute-sanitizer
#   racecheck  the tests under compute-sanitizer
#
# `--parts build` needs no GPU and also leaves build-gpu/packed.tar.gz, the programs and the
# libraries that they load: unpacked, or carried as it is, to the same place on a machine that lacks
# compiler and packages, it saves that machine the build. A part that fails or finds no time is told
# at the end, and the exit code is 1; the other parts run all the same, and what was measured stays.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
source tests/gpu/parts.sh

usual=build,torch,tests,calibrate,replays,kernels,steps,record,observed,memcheck,racecheck
parts=$usual
if [ "${1:-}" = --parts ]; then
  parts=${2:-}
  shift 2 || parts=
fi
IFS=, read -r -a chosen <<< "$parts"
for name in "${chosen[@]:-}"; do
  case ",$usual," in
    *,"$name",*) ;;
    *) echo "run.sh: there is no part '$name' (known: $usual)" >&2; exit 2 ;;
  esac
done

LIMIT=${LIMIT:-580}  # seconds for all parts; a build alone may take its time
[ "$parts" = build ] && LIMIT=100000
SECONDS=0
find_tools
build=${BUILD:-build-gpu} packed=$(realpath -m "${BUILD:-build-gpu}/packed")
failures=()

if command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name --format=csv,noheader >/dev/null
then
  device=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
elif [ "$parts" = build ]; then
  device=none capability=${CAPABILITY:-90}
else
  echo "run.sh: no usable NVIDIA driver: nvidia-smi is missing or sees no GPU" >&2
  exit 5
fi
name=$(echo "$device" | tr '[:upper:] ' '[:lower:]-')
results=${1:-${OUT:-bench/results/$name/$(date +%F)}}
if [ "$parts" != build ]; then
  mkdir -p "$results" && results=$(cd "$results" && pwd) || exit 1
  exec > >(tee "$results/log.txt") 2>&1
fi

# part NAME SECONDS COMMAND…: one part, stopped after that time or when the whole time is over.
part() {
  local name=$1 limit=$2 left=$((LIMIT - SECONDS)) begin=$SECONDS
  shift 2
  if ((left < 5)); then
    failures+=("$name: no time left")
    return 1
  fi
  echo "== $name, from second $begin"
  # A shell of its own, so that it can be stopped; it knows the functions of parts.sh.
  timeout -k 5 $((limit < left ? limit : left)) bash -uo pipefail -c \
    'source tests/gpu/parts.sh; "$@"' part "$@"
  local code=$?
  echo "== $name: $((SECONDS - begin)) s, exit code $code"
  case $code in
    0) ;;
    124 | 137) failures+=("$name: stopped after $((SECONDS - begin)) s") ;;
    *) failures+=("$name: exit code $code") ;;
  esac
  return $code
}

export build packed device capability results
part machine 20 machine
unpack
# Programs that were built here are brought up to date; those that came from elsewhere are taken.
builds=
[[ ",$parts," = *,build,* && -f $build/build.ninja ]] && builds=yes
if [ "$parts" = build ] || [ -n "$builds" ] || ! runs_here; then
  [ "$parts" = build ] && limit=$LIMIT || limit=300
  part build "$limit" build_all || chosen=()
fi
find_libraries
for name in "${chosen[@]:-}"; do
  case $name in
    tests) part tests 120 run_tests ;;
    replays) part replays 200 run_replays unobserved "$results/replays.jsonl" ;;
    kernels)
      part kernels 150 run_kernels
      close_json "$results/kernels.json"
      ;;
    torch) part torch 150 run_torch ;;
    steps) part steps 240 run_steps ;;  # 15 seconds for each
    record) part record 60 run_record ;;
    observed) part observed 80 run_replays observed "$results/observed.jsonl" ;;
    memcheck) part memcheck 120 sanitize memcheck 110 ;;
    racecheck) part racecheck 120 sanitize racecheck 110 ;;
    # Of the precision that the replays have: 25 seconds on an H200.
    calibrate) part calibrate 120 env TIDEMARK_CUPTI=off "$packed/tidemark" calibrate \
      --backend cuda --precision bf16 -o "$results/device.json" ;;
  esac
done

echo "== all parts: $SECONDS s; results in $results"
# The log, too, as far as it is written by now.
[ "$parts" = build ] || tar -C "$(dirname "$results")" -czf "$results.tar.gz" "$(basename "$results")"
if ((${#failures[@]})); then
  printf 'FAILED  %s\n' "${failures[@]}"
  exit 1
fi
