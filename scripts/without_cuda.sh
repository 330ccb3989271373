#!/usr/bin/env bash
# Runs a command where no trace of CUDA can be seen, as on a machine that never had it. With a mount
# namespace of its own (root, or where users may make one) toolkit and driver are covered up; where
# none is to be had, compilers do not find them and the libraries stay, which is said.
# usage: scripts/without_cuda.sh COMMAND…
set -euo pipefail
(( $# )) || { echo "usage: scripts/without_cuda.sh COMMAND…" >&2; exit 2; }

real() { xargs -r realpath -q | sort -u; }
toolkits() { ls -d /usr/local/cuda* /opt/cuda* "${CUDA_HOME:-}" "${CUDA_PATH:-}" 2>/dev/null | real; }
programs() { type -ap nvcc | sort -u; }
libraries() {
  ldconfig -p | sed -n 's/^\s*lib\(cuda\|cudart\|cublas\|cublasLt\|cupti\)\.so.* => //p' | real
}
header_folders() { c++ -x c++ -E -v /dev/null 2>&1 | sed -n '/^#include </,/^End/s/^ //p'; }
headers() {
  local folder name
  while read -r folder; do
    for name in cuda.h cuda_runtime.h cublasLt.h cupti.h; do
      if [[ -e $folder/$name ]]; then echo "$folder/$name"; fi
    done
  done < <(header_folders)
}

# What lies over a program is not executable, over a library is none, over a header is an error.
cover() {
  local cloth path
  cloth=$(mktemp)
  echo '#error "CUDA is out of sight"' > "$cloth"
  for path in $(toolkits); do mount -t tmpfs -o size=4k none "$path"; done
  for path in $(programs) $(libraries) $(headers); do mount --bind "$cloth" "$path"; done
  rm "$cloth"
}

if [[ ${1:-} == --covered ]]; then
  shift
  cover
  exec "$@"
fi

if [[ -z $(toolkits)$(programs)$(libraries)$(headers) ]]; then exec "$@"; fi
for unshare in "unshare --mount" "unshare --mount --map-root-user"; do
  if $unshare true 2>/dev/null; then exec $unshare "$0" --covered "$@"; fi
done

echo "without_cuda.sh: no mount namespaces here: CUDA's libraries can still be opened" >&2
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
for name in cuda.h cuda_runtime.h cublasLt.h cupti.h; do
  echo '#error "CUDA is out of sight"' > "$folder/$name"
done
CUDACXX=/nowhere/nvcc CPLUS_INCLUDE_PATH=$folder "$@"
