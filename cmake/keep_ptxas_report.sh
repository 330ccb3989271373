#!/bin/sh
# Launcher of nvcc: what ptxas says of each kernel's registers, spills and local memory goes to
# OBJECT.resources, where the tests read it; everything else is printed as ever.
#   keep_ptxas_report.sh COMPILER ARGUMENTS…
object=
previous=
for argument; do
  [ "$previous" = -o ] && object=$argument
  previous=$argument
done
"$@" -Xptxas=-v 2> "$object.said"
code=$?
of_ptxas='^ptxas info|bytes stack frame|^ +Function properties'
grep -E "$of_ptxas" "$object.said" > "$object.resources"
grep -vE "$of_ptxas" "$object.said" >&2
rm -f "$object.said"
exit $code
