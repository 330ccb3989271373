# Small rules on the text of every file that people write: no hard tabs, no trailing blanks, no
# paths of somebody's machine, no task marker without its issue.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)
tidemark_source_files(files *.h *.cpp *.cu *.cuh *.cmake CMakeLists.txt *.sh *.py *.md *.1)

string(CONCAT marker "TO" "DO")  # in two halves, because this file is checked, too
set(rules  # "what to say|pattern"; no ';' in a pattern
  "hard tab|\t"
  "blank at the end of the line|[ \t]$"
  "path of one machine|(^|[^A-Za-z0-9_.~-])/(home|root|work|Users|mnt)/[A-Za-z]"
  "${marker} without an issue: write ${marker}(#12)|${marker}($|[^A-Za-z(]|\\([^#])")

set(violations 0)

# Kinds are listed in full, so that the compiler names what a new one is missing in. These switch
# over letters, sizes and other programs' numbers.
set(over_numbers analysis/recording/recording_json_reader.cpp base/json_parser.cpp
    cli/reports/check_junit.cpp gui/panels/live_set.cpp importers/pickle.cpp
    kernels/cpu/strided_copy.cpp kernels/layout_transform/layout_transform.cu
    profiler/cupti_decode.cpp)

foreach(path IN LISTS files)
  if(path MATCHES "^[^t].*\\.(h|cpp|cu|cuh)$|^traces/" AND NOT path IN_LIST over_numbers)
    file(STRINGS ${ROOT}/${path} lines REGEX "^ *default:" LIMIT_COUNT 1 ENCODING UTF-8)
    if(NOT lines STREQUAL "")
      message("${path}: default: hides what a switch over kinds misses (list them)")
      math(EXPR violations "${violations} + 1")
    endif()
  endif()
  foreach(rule IN LISTS rules)
    string(REGEX MATCH "^([^|]*)\\|(.*)$" _ "${rule}")
    set(what "${CMAKE_MATCH_1}")
    file(STRINGS ${ROOT}/${path} lines REGEX "${CMAKE_MATCH_2}" LIMIT_COUNT 1 ENCODING UTF-8)
    if(NOT lines STREQUAL "")
      message("${path}: ${what}:\n  ${lines}")
      math(EXPR violations "${violations} + 1")
    endif()
  endforeach()
endforeach()

if(violations)
  message(FATAL_ERROR "${violations} text rules broken; the first line of each is shown")
endif()
