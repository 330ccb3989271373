#!/usr/bin/env bash
# Fails on kernels that spill registers or keep arrays in local memory, which is device memory: every
# access costs as much as an operand. Reads what ptxas said when the objects were compiled.
#   local_memory.sh TABLE OBJECT…
# TABLE: the architectures that are judged; kernels that may, with bytes per thread and reason.
set -euo pipefail
table=$1
shift
[ $# -gt 0 ] || { echo "no object files of CUDA sources"; exit 1; }
reports=("${@/%/.resources}")
cat "${reports[@]}" | c++filt -p | sed 's/tidemark::cuda:://g; s/tidemark:://g; s/(anonymous namespace):://g' |
  awk -v table="$table" '
    BEGIN {
      while ((getline line < table) > 0) {
        if (line ~ /^#/ || line == "") continue
        split(line, part, "\t")
        if (part[1] == "architecture") { judged[part[2]] = 1; continue }
        allowed[part[1]] = part[2] + 0
        if (part[3] == "") { print "no reason in the table: " part[1]; bad = 1 }
      }
    }
    /Compiling entry function/ {
      kernel = $0
      sub(/.*Compiling entry function \x27/, "", kernel)
      architecture = kernel
      sub(/\x27 for .*/, "", kernel); sub(/.*\x27 for \x27/, "", architecture)
      sub(/\x27.*/, "", architecture)
      ++kernels[architecture]
    }
    /bytes stack frame/ && kernel != "" {
      if (($1 > 0 || $5 > 0) && !(architecture in judged)) ++others
      if (($1 > 0 || $5 > 0) && architecture in judged) {
        seen[kernel] = 1
        if (!(kernel in allowed) || $1 > allowed[kernel]) {
          printf "%s, %s: %d bytes of local memory per thread, %d of them spilled registers\n", \
            kernel, architecture, $1, $5
          bad = 1
        }
      }
      kernel = ""
    }
    END {
      for (one in kernels) {
        printf "%d kernels for %s\n", kernels[one], one
        any = 1
        if (one in judged) was_judged = 1
      }
      if (!any) { print "no report of ptxas was found"; exit 1 }
      if (others > 0) printf "%d of architectures that are not judged use local memory\n", others
      for (kernel in allowed)
        if (was_judged && !(kernel in seen)) {
          print "no longer needs its line in the table: " kernel
          bad = 1
        }
      exit bad
    }'
