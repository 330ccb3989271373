#!/usr/bin/env bash
# The program where there is nothing but the C library: no shell, no C++ library, no display, no
# OpenBLAS, no fonts. What it links is checked everywhere; it runs in a root of its own where one may
# be made.      bare_root.sh PROGRAM SOURCE FOLDER      (a FOLDER that is made anew)
set -euo pipefail
program=$(realpath "$1") source=$(realpath "$2") root=$3
rm -rf "$root"
mkdir -p "$root/tmp"
failures=0

fail() { echo "FAILED: $1"; failures=$((failures + 1)); }

# Libraries of glibc alone.
mapfile -t needed < <(ldd "$program" | sed -n 's/^\s*\(\S*\) => .*/\1/p')
for library in "${needed[@]}"; do
  case "$library" in
    libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | linux-vdso.so.1) ;;
    *) fail "the program needs $library" ;;
  esac
done
(( failures )) && exit 1

for file in $(ldd "$program" | sed -n 's/^[^/]*\(\/\S*\) .*/\1/p') "$program"; do
  case "$file" in
    "$program") cp "$file" "$root/tidemark" ;;
    *) mkdir -p "$root/${file%/*}" && cp -L "$file" "$root/$file" ;;
  esac
done
cp -r "$source/examples" "$root/"

for unshare in "unshare" "unshare --map-root-user"; do
  if $unshare --root "$root" /tidemark --version >/dev/null 2>&1; then break; fi
  unshare=
done
if [[ -z $unshare ]]; then
  echo "SKIPPED: it links nothing but glibc, but no root of its own can be made here"
  exit 0
fi

# expect EXIT_CODE PATTERN ARGUMENT…: how it ends, and what it says
expect() {
  local code=$1 pattern=$2 ended=0 said
  shift 2
  said=$(env -i PATH="$PATH" $unshare --root "$root" /tidemark "$@" </dev/null 2>&1) || ended=$?
  if (( ended != code )); then fail "tidemark $*: exit code $ended, not $code: $said"; fi
  if ! grep -q -- "$pattern" <<< "$said"; then fail "tidemark $*: no '$pattern' in: $said"; fi
}

expect 0 '^tidemark [0-9]' --version
expect 0 '^vanilla ' compare /examples/vit-b-16/config.json --batch 64
expect 0 'Alive at the peak' explain gpt2
expect 0 'all as expected' check /examples/ci/tidemark.json
expect 0 'wrote /tmp/step.png' view vit-b-16 --screenshot /tmp/step.png
expect 0 '' replay vit-ti-16 --batch 1 --backend null
expect 5 'no window can be opened: libglfw.so.3.*apt-get install libglfw3.*--screenshot' view vit-b-16
expect 5 'no CUDA plugin' replay vit-ti-16 --backend cuda
expect 1 'libopenblas.so.0 is missing.*apt-get install libopenblas0' replay vit-ti-16 --backend cpu

(( failures == 0 )) && echo "everything as it should be"
