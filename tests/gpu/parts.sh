# shellcheck shell=bash
# The parts of run.sh, each a function; what they read is run.sh's.
: "${build:=}" "${packed:=}" "${device:=}" "${capability:=}" "${results:=}"

machine() {
  echo "device: $device, capability $capability; $(nproc) cores"
  nvidia-smi --query-gpu=driver_version,memory.total,clocks.max.sm,power.limit --format=csv
  nvcc --version | tail -2
  grep -m1 'model name' /proc/cpuinfo
  git log -1 --format='commit %h of %cs'
  date -u
} 2>&1 || true

# Toolkits are often installed without their programs on PATH.
find_tools() {
  local folder
  for folder in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda /usr/local/cuda-* /opt/cuda; do
    [ -d "$folder/bin" ] && PATH+=:$folder/bin
    [ -d "$folder/compute-sanitizer" ] && PATH+=:$folder/compute-sanitizer
  done
  export PATH
}

# --- programs

unpack() {
  if [ ! -d "$packed" ] && [ -f "$packed.tar.gz" ]; then
    tar -C "$(dirname "$packed")" -xzf "$packed.tar.gz"
  fi
}

# True if the packed programs start on this machine.
runs_here() {
  LD_LIBRARY_PATH=$packed/lib "$packed/tidemark" --version >/dev/null 2>&1 &&
    [ -f "$packed/libtidemark_cuda.so" ]
}

build_all() {
  scripts/install_packages.sh build </dev/null || echo "packages were not installed; trying without"
  local benchmark=OFF targets=(tidemark tidemark_cuda tidemark_gpu_tests)
  find /usr/include /usr/local/include -name benchmark.h -path '*benchmark/*' 2>/dev/null |
    grep -q . && benchmark=ON && targets+=(tidemark_bench)
  # Machine code for this device alone, and no window: less to build, less to carry.
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTIDEMARK_CUDA=ON -DTIDEMARK_GUI=OFF \
    -DTIDEMARK_BENCH=$benchmark -DCMAKE_CUDA_ARCHITECTURES="$capability-real" &&
    cmake --build "$build" -j "${JOBS:-$(nproc)}" --target "${targets[@]}" && pack
}

# What a program loads, but for the system's own libraries and CUDA's.
loaded_by() {
  ldd "$@" | awk '/=> \// {print $3}' | sort -u |
    grep -vE '/(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so|libcu|libnvidia)'
}

pack() {
  rm -rf "$packed" "$packed.tar.gz"
  mkdir -p "$packed/lib"
  local blas programs=("$build/tidemark" "$build/libtidemark_cuda.so" \
    "$build/tests/tidemark_gpu_tests")
  [ -x "$build/bench/tidemark_bench" ] && programs+=("$build/bench/tidemark_bench")
  cp "${programs[@]}" "$packed/" || return 1
  strip "$packed"/* 2>/dev/null
  # OpenBLAS is opened at run time, so that no program names it.
  blas=$(ldconfig -p | awk '/libopenblas.so.0 / {print $NF; exit}')
  local libraries=("${programs[@]}" ${blas:+"$blas"})
  # shellcheck disable=SC2046
  cp -L $(loaded_by "${libraries[@]}") ${blas:+"$blas"} "$packed/lib/"
  tar -C "$(dirname "$packed")" -czf "$packed.tar.gz" packed
  du -sh "$packed" "$packed.tar.gz"
}

# Sets LD_LIBRARY_PATH so that the packed programs find their libraries: those that came with them,
# and CUDA's, wherever this machine has them.
find_libraries() {
  export LD_LIBRARY_PATH=$packed/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export TIDEMARK_CUDA_PLUGIN=$packed/libtidemark_cuda.so
  local name file
  for name in $(ldd "$TIDEMARK_CUDA_PLUGIN" 2>/dev/null | awk '/not found/ {print $1}' | sort -u) \
    libcupti.so.13; do
    ldconfig -p | grep -q "$name" && continue
    file=$(find /usr/local /opt /usr/lib -name "$name" -not -path '*/stubs/*' 2>/dev/null | head -1)
    [ -n "$file" ] && LD_LIBRARY_PATH+=:$(dirname "$file")
  done
}

# --- measurements

# One test in a process of its own, where a fault of the GPU cannot spoil others.
run_alone() {
  timeout 60 "$packed/tidemark_gpu_tests" --gtest_filter="$1" > "$2/$1.txt" 2>&1
  local code=$?
  grep -q '^\[       OK \]' "$2/$1.txt" && ((code == 0)) && return 0
  echo "---- $1 (exit code $code)"
  tail -15 "$2/$1.txt"
  return 1
}
export -f run_alone

run_tests() {
  local program=$packed/tidemark_gpu_tests scratch shard total=4 code=0
  scratch=$(mktemp -d)
  for ((shard = 0; shard < total; ++shard)); do
    GTEST_TOTAL_SHARDS=$total GTEST_SHARD_INDEX=$shard TEST_TMPDIR=$scratch/ "$program" \
      > "$scratch/shard$shard" 2>&1 &
  done
  wait
  cat "$scratch"/shard* > "$results/gpu_tests.txt"
  grep -oP '^\[       OK \] \K\S+' "$results/gpu_tests.txt" | sort > "$scratch/passed"
  "$program" --gtest_list_tests | awk '/^[^ ]/ {suite = $1} /^ / {print suite $1}' |
    sort > "$scratch/all"
  echo "$(wc -l < "$scratch/passed") of $(wc -l < "$scratch/all") tests passed"
  # After a fault every test of the same process fails: each that did not pass once more, alone.
  comm -13 "$scratch/passed" "$scratch/all" > "$scratch/again"
  if [ -s "$scratch/again" ]; then
    mkdir "$scratch/alone"
    # shellcheck disable=SC2016
    xargs -P 4 -I{} bash -c 'run_alone "$1" "$2"' run_alone {} "$scratch/alone" < "$scratch/again" |
      tee -a "$results/gpu_tests.txt" || code=1
  fi
  [ -s "$scratch/all" ] || code=1
  rm -rf "$scratch"
  return $code
}

# Ends a function in the background with what it started.
stop_children_of() {  # PID
  local child
  for child in $(pgrep -P "$1"); do kill "$child" 2>/dev/null; done
  kill "$1" 2>/dev/null
  wait "$1" 2>/dev/null
  return 0
}

# What a time means depends on the clock that it was taken at: one line every 200 ms.
watch_clocks() {  # NAME
  nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu \
    --format=csv,noheader -lms 200 2>/dev/null | sed -u "s/^/$1, /" >> "$results/clocks.csv"
}

# run_replays observed|unobserved FILE: CUPTI costs time on every launch, so the times are taken
# without it; lines of replays.txt that begin with '*' are also run with it.
run_replays() {
  local code=0 mark model strategy options begin answer watch device=
  [ -s "$results/device.json" ] && device="--device $results/device.json"
  [ "$1" = observed ] || export TIDEMARK_CUPTI=off TIDEMARK_PRODUCTS=$results/products.txt
  : > "$2"
  while read -r mark model strategy options; do
    [[ $mark = '#' || -z $mark ]] && continue
    [[ $1 = observed && $mark != '*' ]] && continue
    begin=$SECONDS
    watch_clocks "$1 $model $strategy" &
    watch=$!
    # shellcheck disable=SC2086
    if answer=$(timeout 60 "$packed/tidemark" replay "$model" --strategy "$strategy" $options \
      $device --backend cuda --format json -q </dev/null); then
      tr -d '\n' <<< "$answer" >> "$2"
      echo >> "$2"
      echo "$model $strategy $options: $(grep -oP '"step_ns": *\K\d+' <<< "$answer" |
        awk '{ printf (NR == 1 ? "%.2f ms predicted, " : "%.2f ms measured"), $1 / 1e6 }');" \
        "took $((SECONDS - begin)) s"
    else
      echo "FAILED: $model $strategy $options"
      code=1
    fi
    stop_children_of "$watch"
  done < tests/gpu/replays.txt
  return $code
}

# A program that writes its results one by one, and was stopped in the middle of one, leaves no
# valid JSON: up to the last whole one it is.
close_json() {  # FILE of Google Benchmark
  [ -s "$1" ] && [ "$(tail -c 2 "$1")" != "}" ] || return 0
  local whole
  whole=$(grep -n '^    }' "$1" | tail -1 | cut -d: -f1)
  if [ -z "$whole" ]; then
    rm "$1"
    return
  fi
  head -n $((whole - 1)) "$1" > "$1.whole"
  printf '    }\n  ]\n}\n' >> "$1.whole"
  mv "$1.whole" "$1"
  echo "$1 was cut at its last whole result"
}

run_kernels() {
  if [ ! -x "$packed/tidemark_bench" ]; then
    echo "Google Benchmark was not there when this was built: the kernels are left out"
    return 0
  fi
  TIDEMARK_CUPTI=off "$packed/tidemark_bench" --benchmark_filter='^gpu/' \
    --benchmark_out="$results/kernels.json" --benchmark_out_format=json
  grep -q '"gpu/' "$results/kernels.json"  # none at all: no GPU was found
}

run_torch() {
  if python3 -c 'import torch' 2>/dev/null; then
    # The compiler of torch brings libraries of its own.
    LD_LIBRARY_PATH='' python3 tests/gpu/torch_step.py "$results/torch.json"
  else
    echo "PyTorch is not installed: the comparison with it is left out"
  fi
}

run_steps() {
  if ! python3 -c 'import torch, transformers, peft' 2>/dev/null; then
    echo "PyTorch, transformers and peft are not installed: their steps are left out"
    return 0
  fi
  LD_LIBRARY_PATH='' python3 scripts/capture_steps/capture.py --on-gpu \
    --cases scripts/capture_steps/gpu_cases.py > "$results/torch_steps.json"
}

run_record() {
  if ! python3 -c 'import torch' 2>/dev/null; then
    echo "PyTorch is not installed: there is nothing to record"
    return 0
  fi
  local recording=$results/recorded.timeline
  "$packed/tidemark" record -o "$recording" -- \
    env LD_LIBRARY_PATH= python3 tests/gpu/torch_step.py "$results/torch_recorded.json" --eager &&
    "$packed/tidemark" explain "$recording"
}

# The sanitizers are 10 to 100 times slower, so the long tests are left out, and each part of the
# others is stopped in time to say how far it came.
sanitize() {  # TOOL [SECONDS]
  local tool=$1 limit=${2:-65} program=$packed/tidemark_gpu_tests scratch shard total=7 code=0
  local tests='*Twins.*-*Long*:*Many*' pids=() pid ended
  if ! command -v compute-sanitizer >/dev/null; then
    echo "compute-sanitizer is not installed: $tool is left out"
    return 0
  fi
  scratch=$(mktemp -d)
  compute-sanitizer --tool "$tool" --error-exitcode 9 "$program" \
    --gtest_filter=CudaBackend.SaysWhatItIs > "$scratch/probe" 2>&1
  if grep -qi 'not supported' "$scratch/probe"; then
    grep -i 'not supported' "$scratch/probe" | head -1
    echo "compute-sanitizer does not work on this machine: $tool is left out"
    return 0
  fi
  for ((shard = 0; shard < total; ++shard)); do
    GTEST_TOTAL_SHARDS=$total GTEST_SHARD_INDEX=$shard timeout "$limit" compute-sanitizer \
      --tool "$tool" --error-exitcode 9 "$program" --gtest_filter="$tests" \
      > "$scratch/$shard" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid"
    ended=$?
    ((ended == 0 || ended == 124)) || code=1  # 124: stopped in time
  done
  cat "$scratch"/[0-9]* > "$results/$tool.txt"
  grep -hE '^=========' "$results/$tool.txt" | grep -vE 'COMPUTE-SANITIZER|SUMMARY: 0|\(0 errors' |
    head -40 | grep . && code=1
  grep -qE '^\[  FAILED  \]' "$results/$tool.txt" && code=1
  echo "$tool: $(grep -cE '^\[       OK' "$results/$tool.txt") of" \
    "$("$program" --gtest_list_tests --gtest_filter="$tests" | grep -c '^ ') tests ran without a fault"
  rm -rf "$scratch"
  return $code
}
