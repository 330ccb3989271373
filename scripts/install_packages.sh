#!/usr/bin/env bash
# Installs what is missing of the named groups of Debian packages; silent when nothing is.
# usage: scripts/install_packages.sh [build] [style] [fuzz]      (default: build)
set -euo pipefail

build=(
  g++ cmake ninja-build make pkg-config  # compiler and build
  libfmt-dev                             # text
  libcli11-dev                           # command-line options
  nlohmann-json3-dev                     # JSON
  libzstd-dev zstd                       # compressed traces; the tool makes test data
  zlib1g-dev                             # profiles of others that are .gz
  libsqlite3-dev                         # what Nsight Systems exports
  libopenblas-dev                        # matrix products of the CPU kernels
  libimgui-dev libglfw3-dev libgl-dev libstb-dev  # the window of tidemark view
  fonts-dejavu-core                      # its font
  libgtest-dev libgmock-dev              # tests
  libxml2-utils librsvg2-bin python3     # what tests read XML, pictures and SARIF with
  xvfb xauth libgl1-mesa-dri libglx-mesa0 libxtst6  # a display for the tests of the window, and hands
  libbenchmark-dev                       # benchmarks
)
style=(clang clang-format clang-tidy codespell mandoc)  # checks; their tests are skipped without
fuzz=(clang libclang-rt-14-dev llvm)                    # libFuzzer and its sanitizers

wanted=()
for group in "${@:-build}"; do
  case "$group" in
    build) wanted+=("${build[@]}") ;;
    style) wanted+=("${style[@]}") ;;
    fuzz) wanted+=("${fuzz[@]}") ;;
    *) echo "install_packages.sh: unknown group '$group' (known: build, style, fuzz)" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query >/dev/null; then
  echo "install_packages.sh: not a Debian system; needed are: ${wanted[*]}" >&2
  exit 0  # they may be here under other names; if not, the configuration says which is missing
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$status" == installed ]] || missing+=("$package")
done
(( ${#missing[@]} )) || exit 0

as_root=()
if (( EUID != 0 )); then
  if ! command -v sudo >/dev/null; then
    echo "install_packages.sh: missing packages, and neither root nor sudo to install them." >&2
    echo "  as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "installing: ${missing[*]}"
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@" </dev/null
}
apt update
apt install --yes --no-install-recommends "${missing[@]}"
