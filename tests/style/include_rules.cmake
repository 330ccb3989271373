# Who may include whom. Reads every #include under ROOT and prints file:line for each one that
# breaks a rule. Usage: cmake -D ROOT=<tree> -P include_rules.cmake
cmake_minimum_required(VERSION 3.25)

# The layers (docs/how_it_works.md has the picture): a folder may include itself and these.
set(base_may_use)
set(traces_may_use base)
set(simulator_may_use base traces)
set(importers_may_use base traces simulator)
set(analysis_may_use base traces simulator)
set(kernels_may_use base traces)
# Of others only numbers: it is a library of its own, loaded into the processes that are recorded.
set(recorder_may_use importers profiler)
set(profiler_may_use base traces simulator analysis kernels)
set(gui_may_use base traces simulator analysis)
set(cli_may_use base traces simulator importers analysis kernels profiler gui)
set(examples_may_use base traces simulator analysis kernels profiler)
set(bench_may_use base traces simulator importers analysis kernels profiler gui cli)
set(tests_may_use base traces simulator importers analysis kernels profiler recorder gui cli
    examples)
set(folders base traces simulator importers analysis kernels profiler recorder gui cli bench examples tests)

# Rooms that share nothing but what both stand on: "pattern of files|pattern of what they may not
# include". The judge must not repeat the mistakes of those whom it judges; of the graph it knows
# what it is (joint_graph.h), not how it is made.
set(strangers
  "^simulator/judge/|^simulator/(strategies/|place/|lower\\.h|graph/[^j])")

# Libraries that end in one folder: "pattern|folders that may include it".
set(fenced_libraries
  "^CLI/|cli"
  "^(imgui|backends/imgui|GLFW/)|gui,tests"
  "^cupti|profiler,tests"
  "^(cuda|cublas|cudnn)|kernels,profiler,tests"
  "^(gtest|gmock)/|tests"
  "^benchmark/|bench")

set(violations 0)

# Prints "file:line: what is wrong". The line is searched only now, when one is wanted.
function(report path include why)
  file(READ ${ROOT}/${path} text)
  string(FIND "${text}" "${include}" position)
  string(SUBSTRING "${text}" 0 ${position} before)
  string(REGEX REPLACE "[^\n]" "" newlines "${before}")
  string(LENGTH "${newlines}" line)
  math(EXPR line "${line} + 1")
  message("${path}:${line}: ${why}")
  math(EXPR violations "${violations} + 1")
  set(violations ${violations} PARENT_SCOPE)
endfunction()

foreach(folder IN LISTS folders)
  file(GLOB_RECURSE paths RELATIVE ${ROOT}
       ${ROOT}/${folder}/*.h ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.cu ${ROOT}/${folder}/*.cuh)
  foreach(path IN LISTS paths)
    file(STRINGS ${ROOT}/${path} includes ENCODING UTF-8
         REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
    foreach(include IN LISTS includes)
      string(REGEX REPLACE "^[^<\"]*[<\"]([^>\"]*).*" "\\1" target "${include}")

      if(include MATCHES "include[ \t]*\"")
        string(REGEX REPLACE "/.*" "" used "${target}")
        if(NOT used IN_LIST folders OR NOT target MATCHES "/")
          report(${path} "${include}" "\"${target}\" must be named from the root: \"folder/file.h\"")
        elseif(NOT used STREQUAL folder AND NOT used IN_LIST ${folder}_may_use)
          report(${path} "${include}" "${folder} may not include ${used} (\"${target}\")")
        endif()
      endif()

      foreach(pair IN LISTS strangers)
        string(REGEX MATCH "^([^|]*)\\|(.*)$" _ "${pair}")
        set(files "${CMAKE_MATCH_1}")
        set(forbidden "${CMAKE_MATCH_2}")
        if(path MATCHES "${files}" AND target MATCHES "${forbidden}")
          report(${path} "${include}" "${path} may not include \"${target}\"")
        endif()
      endforeach()

      foreach(fence IN LISTS fenced_libraries)
        string(REGEX MATCH "^(.*)\\|([a-z,]*)$" _ "${fence}")
        set(pattern "${CMAKE_MATCH_1}")
        string(REPLACE "," ";" allowed "${CMAKE_MATCH_2}")
        if(target MATCHES "${pattern}" AND NOT folder IN_LIST allowed)
          report(${path} "${include}" "${folder} may not include <${target}>")
        endif()
      endforeach()
    endforeach()
  endforeach()
endforeach()

if(violations)
  message(FATAL_ERROR "${violations} includes break the rules")
endif()
