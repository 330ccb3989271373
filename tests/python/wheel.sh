#!/bin/sh
# wheel.sh PROGRAM [FOLDER]: packs the program into a wheel (and leaves it in FOLDER), installs that in a
# fresh virtual environment and runs the package's tests there. Exit code 77 means skipped; the
# reason is the last line.
set -eu
program=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
  echo "SKIPPED: $1"
  exit 77
}
command -v python3 > /dev/null || skip "no python3"
python3 -m venv "$work/venv" > /dev/null 2>&1 || skip "this python3 makes no virtual environments"
pip="$work/venv/bin/python -m pip --quiet --disable-pip-version-check --retries 1 --timeout 15"
$pip download --no-deps -d "$work/reached" scikit-build-core > "$work/why" 2>&1 ||
  skip "no package registry reached: $(tail -1 "$work/why")"
$pip install pytest

# By the option's long name: Debian 12's pip, 23.0, has no other.
$pip wheel --no-deps -w "$work/wheels" --config-settings build-dir="$work/build" \
  --config-settings cmake.define.TIDEMARK_PREBUILT="$program" "$source"
$pip install "$work"/wheels/tidemark-*.whl
for name in package pytest_plugin sweep tables; do cp "$source/tests/python/test_$name.py" "$work"; done
cd "$work" && unset TIDEMARK_PROGRAM PYTHONPATH || true
env PATH="$work/venv/bin:/usr/bin:/bin" "$work/venv/bin/tidemark" --version
TIDEMARK_REFERENCE=$source/tests/reference "$work/venv/bin/python" -m pytest -q -p no:cacheprovider test_package.py \
  test_pytest_plugin.py test_sweep.py test_tables.py
if [ $# -gt 1 ]; then
  cd "$source" && mkdir -p "$2" && cp "$work"/wheels/tidemark-*.whl "$2" && ls -l "$2"
fi
