# A guard that never objects guards nothing: builds a small tree with known sins and expects
# include_rules.cmake to name exactly these, by file and line.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${SCRATCH})
file(WRITE ${SCRATCH}/base/units.h "#pragma once\n#include <string>\n")
file(WRITE ${SCRATCH}/traces/upwards.h "#pragma once\n\n#include \"simulator/plan.h\"\n")
file(WRITE ${SCRATCH}/simulator/plan.h "#pragma once\n#include \"base/units.h\"\n")
file(WRITE ${SCRATCH}/simulator/sideways.cpp "#include \"kernels/gelu.h\"\n")
file(WRITE ${SCRATCH}/simulator/relative.cpp "#include \"plan.h\"\n#include \"../base/units.h\"\n")
file(WRITE ${SCRATCH}/simulator/downwards.cpp "#include \"analysis/report.h\"\n")
file(WRITE ${SCRATCH}/gui/timeline.cpp "#include <imgui.h>\n#include \"simulator/plan.h\"\n")
file(WRITE ${SCRATCH}/cli/picture.cpp "#include <CLI/CLI.hpp>\n#  include <imgui.h>\n")
file(WRITE ${SCRATCH}/cli/borrowed.cpp "#include \"tests/support/chain.h\"\n")
file(WRITE ${SCRATCH}/simulator/judge/validate.cpp
     "#include \"simulator/graph/joint_graph.h\"\n#include \"simulator/strategies/mesa.h\"\n"
     "#include \"simulator/lower.h\"\n#include \"simulator/graph/recovery.h\"\n")
file(WRITE ${SCRATCH}/simulator/strategies/mesa.cpp "#include \"simulator/place/place.h\"\n")
set(expected
  "cli/borrowed.cpp:1" "cli/picture.cpp:2" "simulator/downwards.cpp:1" "simulator/judge/validate.cpp:2"
  "simulator/judge/validate.cpp:3" "simulator/judge/validate.cpp:4" "simulator/relative.cpp:1" "simulator/relative.cpp:2"
  "simulator/sideways.cpp:1" "traces/upwards.h:3")

execute_process(
  COMMAND ${CMAKE_COMMAND} -D ROOT=${SCRATCH} -P ${CMAKE_CURRENT_LIST_DIR}/include_rules.cmake
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(REGEX MATCHALL "[a-z/]+\\.(h|cpp):[0-9]+" found "${output}")
list(SORT found)

if(result EQUAL 0 OR NOT found STREQUAL expected)
  message(FATAL_ERROR "expected: ${expected}\nfound: ${found}\nresult: ${result}\n${output}")
endif()
