#!/usr/bin/env bash
# Everything that needs a GPU, in at most ten minutes on a machine with 16 cores:
#   tests/gpu/run.sh [FOLDER]
# builds with the CUDA plugin, runs the gpu-labelled tests and compute-sanitizer, replays models,
# calibrates, measures kernels and compares with PyTorch where that is installed. Results go to
# FOLDER, else $OUT, else bench/results/<card>/<day>. A part that fails or finds no time is told at
# the end, and the exit code is 1; the other parts run all the same.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

LIMIT=${LIMIT:-580}  # seconds for all parts
SECONDS=0
build=build-gpu
failures=()

command -v nvidia-smi >/dev/null || { echo "no NVIDIA driver here: nvidia-smi is missing" >&2; exit 5; }
card=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
name=$(echo "$card" | tr '[:upper:] ' '[:lower:]-')
results=${1:-${OUT:-bench/results/$name/$(date +%F)}}
mkdir -p "$results"
exec > >(tee "$results/log.txt") 2>&1

# part NAME SECONDS COMMAND…: one part, stopped after that time or when the whole time is over.
part() {
  local name=$1 limit=$2 left=$((LIMIT - SECONDS)) begin=$SECONDS
  shift 2
  if ((left < 5)); then
    failures+=("$name: no time left")
    return 1
  fi
  echo "== $name"
  timeout -k 5 $((limit < left ? limit : left)) bash -c '"$@"' part "$@"  # functions too
  local code=$?
  echo "== $name: $((SECONDS - begin)) s, exit code $code"
  ((code == 0)) || failures+=("$name: exit code $code")
  return $code
}

build_all() {
  scripts/install_packages.sh build bench || echo "packages were not installed; trying without"
  cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTIDEMARK_CUDA=ON \
        -DTIDEMARK_BENCH="$have_benchmark" -DCMAKE_CUDA_ARCHITECTURES="$capability" &&
    cmake --build $build -j "$(nproc)" --target tidemark tidemark_cuda tidemark_gpu_tests \
          $([ "$have_benchmark" = ON ] && echo tidemark_bench)
}

machine() {
  echo "card: $card, capability $capability"
  nvidia-smi --query-gpu=driver_version,memory.total,clocks.max.sm,power.limit --format=csv
  nvcc --version | tail -2
  grep -m1 'model name' /proc/cpuinfo
  git log -1 --format='commit %h of %cs' 2>/dev/null
  date -u
}

sanitize() {  # TOOL: over the kernels' own tests; the sanitizers are 10 to 100 times slower
  compute-sanitizer --tool "$1" --error-exitcode 9 $build/tests/tidemark_gpu_tests \
    --gtest_filter='*Twins.*-*Long*:*Many*' --gtest_brief=1 | tail -20
}

replays() {
  local code=0
  : > "$results/replays.jsonl"
  while read -r model strategy options; do
    # shellcheck disable=SC2086
    $build/tidemark replay "$model" --strategy "$strategy" $options --backend cuda \
      --format json -q | tr -d '\n' >> "$results/replays.jsonl" || code=1
    echo >> "$results/replays.jsonl"
    echo "replayed $model $strategy $options"
  done < tests/gpu/replays.txt
  return $code
}

have_benchmark=OFF
find /usr/include /usr/local/include -name benchmark.h -path '*benchmark/*' 2>/dev/null |
  grep -q . && have_benchmark=ON

export build card capability results have_benchmark
export -f machine build_all sanitize replays
part machine 20 machine
if part build 300 build_all; then
  part tests 90 ctest --test-dir $build -L '^gpu$' -j 4 --output-on-failure \
    --output-junit "$PWD/$build/gpu_tests.xml"
  cp $build/gpu_tests.xml "$results/" 2>/dev/null
  if command -v compute-sanitizer >/dev/null; then
    part memcheck 60 sanitize memcheck
    part racecheck 60 sanitize racecheck
  else
    echo "compute-sanitizer is not installed: memcheck and racecheck are left out"
  fi
  part replays 150 replays
  [ "$have_benchmark" = ON ] &&
    part kernels 60 $build/bench/tidemark_bench --benchmark_filter='^gpu/' \
      --benchmark_out="$results/kernels.json" --benchmark_out_format=json
  if python3 -c 'import torch' 2>/dev/null; then
    part torch 90 python3 tests/gpu/torch_step.py "$results/torch.json"
  else
    echo "PyTorch is not installed: the comparison with it is left out"
  fi
  part calibrate 200 $build/tidemark calibrate --backend cuda -q -o "$results/device.json"
fi

echo "== all parts: $SECONDS s; results in $results"
if ((${#failures[@]})); then
  printf 'FAILED  %s\n' "${failures[@]}"
  exit 1
fi
