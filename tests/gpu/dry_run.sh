#!/usr/bin/env bash
# Runs run.sh with programs that only pretend, on a machine without a GPU: which parts run, what is
# written, what a failing part does to the others.      dry_run.sh FOLDER
set -euo pipefail
script=$(realpath "$(dirname "$0")/run.sh")
folder=$1
rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/build/packed/lib"
folder=$(realpath "$folder")

program() {  # FILE, its text from stdin
  { echo '#!/usr/bin/env bash'; cat; } > "$folder/$1"
  chmod +x "$folder/$1"
}
program bin/nvidia-smi << 'EOF'
[ -e "$NO_GPU" ] && { echo "No devices were found"; exit 6; }
case "$*" in *clocks.mem*) while echo "1980 MHz, 2619 MHz"; do sleep 0.1; done ;; esac
case "$*" in *compute_cap*) echo 9.0 ;; *name*) echo "NVIDIA H200" ;; *) echo "a, b" ;; esac
EOF
program bin/compute-sanitizer << 'EOF'
while [[ $1 != */tidemark_gpu_tests ]]; do shift; done
[ -z "${BROKEN:-}" ] || exit 3
"$@"; echo "========= ERROR SUMMARY: 0 errors"
EOF
program bin/python3 <<< 'exit 1'  # no PyTorch
program build/packed/tidemark << 'EOF'
case "$*" in
  *replay*swin-t*) [ -e "$FAIL" ] && { echo "error: no" >&2; exit 1; } ;;
  *calibrate*) while [[ $1 != -o ]]; do shift; done; echo '{}' > "$2" ;;
esac
echo -e '{"predicted": {"step_ns": 1000000},\n "measured": {"step_ns": 2000000}}'
EOF
program build/packed/tidemark_gpu_tests << 'EOF'
case "$*" in
  *list_tests*) printf 'Twins.\n  First\n  Second  # GetParam() = 1\n'; exit ;;
  *filter=Twins*) echo "[       OK ] ${1#*=} (1 ms)"; exit ;;
esac
if [ -e "$FAIL" ] && [ "${GTEST_SHARD_INDEX:-0}" = 1 ]; then
  echo "[  FAILED  ] Twins.Second (1 ms)"; exit 1  # but alone it passes
fi
[ "${GTEST_SHARD_INDEX:-0}" = 0 ] && echo "[       OK ] Twins.First (1 ms)"
[ "${GTEST_SHARD_INDEX:-0}" = 1 ] && echo "[       OK ] Twins.Second (1 ms)"
exit 0
EOF
program build/packed/tidemark_bench << 'EOF'
while [[ $1 != --benchmark_out=* ]]; do shift; done
printf '{\n  "benchmarks": [\n    {\n      "name": "gpu/gelu"\n    },\n    {\n      "na' > "${1#*=}"
[ -e "$FAIL" ] && sleep 60
printf 'me": "gpu/add"\n    }\n  ]\n}\n' >> "${1#*=}"
EOF
touch "$folder/build/packed/libtidemark_cuda.so"

export PATH=$folder/bin:$PATH BUILD=$folder/build NO_GPU=$folder/no_gpu FAIL=$folder/fail
run() {  # WANTED-CODE ARGUMENTS…; the output is in $folder/output
  local wanted=$1 code=0
  shift
  timeout 250 "$script" "$@" > "$folder/output" 2>&1 || code=$?
  if ((code != wanted)); then
    cat "$folder/output"
    echo "run.sh $*: exit code $code instead of $wanted" >&2
    exit 1
  fi
}
said() {
  grep -qF -- "$1" "$folder/output" && return
  cat "$folder/output"
  echo "not said: $1" >&2
  exit 1
}
lines() {  # COUNT FILE
  [ "$(wc -l < "$2")" = "$1" ] && return
  echo "$2 has $(wc -l < "$2") lines instead of $1" >&2
  exit 1
}
replays=$(grep -c '^[*-] ' "$(dirname "$script")/replays.txt")
observed=$(grep -c '^\* ' "$(dirname "$script")/replays.txt")

# Everything works.
run 0 "$folder/all"
lines "$replays" "$folder/all/replays.jsonl"
lines "$observed" "$folder/all/observed.jsonl"
for file in log.txt gpu_tests.txt kernels.json device.json clocks.csv; do [ -s "$folder/all/$file" ]; done
grep -q '^unobserved gpt2 mesa, 1980 MHz' "$folder/all/clocks.csv"
grep -q gpu/add "$folder/all/kernels.json"
[ "$(tar -tzf "$folder/all.tar.gz" | grep -c json)" = 4 ]
grep -o '^== [a-z]*, from' "$folder/output" | cut -d' ' -f2 | tr -d , | head -3 > "$folder/order"
[ "$(tr '\n' ' ' < "$folder/order")" = "machine torch tests " ]
said "2 of 2 tests passed"
said "1.00 ms predicted, 2.00 ms measured"
said "PyTorch is not installed: the comparison"
said "their steps are left out"
said "there is nothing to record"
said "memcheck: 2 of 2 tests ran without a fault"

# Some replays fail: the other parts run, and what the other replays wrote stays.
touch "$FAIL"
run 1 --parts tests,replays,calibrate "$folder/some"
said "1 of 2 tests passed"  # the other one passed alone, so the part did not fail
said "FAILED  replays: exit code 1"
[[ $(tail -1 "$folder/output") = "FAILED  replays: exit code 1" ]]
lines "$(grep '^[*-] ' "$(dirname "$script")/replays.txt" | grep -vc swin-t)" \
  "$folder/some/replays.jsonl"
[ -s "$folder/some/device.json" ]

# A part that hangs is stopped, and those behind it say that no time is left.
LIMIT=8 run 1 --parts kernels,calibrate "$folder/late"
said "FAILED  kernels: stopped after"
said "FAILED  calibrate: no time left"
said "cut at its last whole result"
[ "$(cat "$folder/late/kernels.json")" = \
  $'{\n  "benchmarks": [\n    {\n      "name": "gpu/gelu"\n    }\n  ]\n}' ]
rm "$FAIL"

# A sanitizer that ends otherwise than it should has found nothing and says so.
BROKEN=1 run 1 --parts memcheck "$folder/broken"
said "memcheck: 0 of 2 tests ran without a fault"
said "FAILED  memcheck: exit code 1"

# Parts are chosen, and results go where $OUT says.
OUT=$folder/out run 0 --parts calibrate
[ "$(ls "$folder/out")" = $'device.json\nlog.txt' ]
[ -s "$folder/out.tar.gz" ]

run 2 --parts everything
said "there is no part 'everything'"
run 2 --parts
touch "$NO_GPU"
run 5
said "no usable NVIDIA driver"
