# Which namespace a folder's sources open, so that no name means two things in one program: reads
# each source and prints those that open another one. Usage: cmake -D ROOT=<tree> -P namespaces.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)

# "folder|what may be opened in it", the longest folder first. The vocabulary, and what stands on it,
# is tidemark itself; the names of other folders are said in full everywhere else.
set(table
  "analysis/beside|tidemark::beside"
  "analysis/check|tidemark::regression"
  "analysis/diff|tidemark::diff"
  "analysis/export/palette|tidemark"  # colours of everything that draws
  "analysis/export|tidemark::exports"
  "simulator/allocator|tidemark::allocator"
  "simulator/judge|tidemark(::judge)?"  # validate() is everybody's
  "importers|tidemark::importers"
  "analysis|tidemark"
  "simulator|tidemark"
  "base|tidemark"
  "kernels|tidemark(::cpu|::cuda|::emulation)?"
  "profiler|tidemark::profiler(::cupti)?"
  "recorder|tidemark::recorder(::nvtx)?"
  "traces|tidemark(::config|::fill|::step_values)?"
  "gui|tidemark::gui"
  "cli|tidemark::cli"
  "examples/training|tidemark::training")

tidemark_source_files(files *.h *.cpp *.cu *.cuh)
set(violations 0)
foreach(path IN LISTS files)
  set(allowed "")
  foreach(row IN LISTS table)
    string(REGEX MATCH "^([^|]*)\\|(.*)$" _ "${row}")
    if(path MATCHES "^${CMAKE_MATCH_1}[/.]")
      string(REGEX MATCH "^([^|]*)\\|(.*)$" _ "${row}")
      set(allowed "${CMAKE_MATCH_2}")
      break()
    endif()
  endforeach()
  # Tests and benchmarks stand in the namespace of what they test. A test with names of its own has
  # one more of its file's name: a folder's tests are compiled as one source.
  file(STRINGS ${ROOT}/${path} opened REGEX "^namespace (tidemark.*)?{" ENCODING UTF-8)
  if(path MATCHES "^tests/.*/([a-z0-9_]+_test)\\.cpp$" AND "namespace {" IN_LIST opened)
    set(allowed "[a-z:]*::${CMAKE_MATCH_1}")
  elseif(allowed STREQUAL "")
    continue()
  endif()
  list(FILTER opened INCLUDE REGEX "^namespace tidemark")
  foreach(line IN LISTS opened)
    if(NOT line MATCHES "^namespace ${allowed} ({|=)")
      message("${path}: '${line}' where ${allowed} belongs")
      math(EXPR violations "${violations} + 1")
    endif()
  endforeach()
endforeach()

if(violations)
  message(FATAL_ERROR "${violations} namespaces in the wrong folder")
endif()
