# Every C++ file is as clang-format leaves it (`make format` does it). Versions of clang-format
# disagree in details, so only the one of Debian 12 judges.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)

find_program(CLANG_FORMAT NAMES clang-format-14 clang-format)
if(NOT CLANG_FORMAT)
  message("SKIPPED: clang-format is not installed")
  return()
endif()
execute_process(COMMAND ${CLANG_FORMAT} --version OUTPUT_VARIABLE version)
if(NOT version MATCHES "version 14\\.")
  message("SKIPPED: needs clang-format 14, found ${version}")
  return()
endif()

tidemark_source_files(files *.h *.cpp *.cu *.cuh)
execute_process(COMMAND ${CLANG_FORMAT} --dry-run --Werror ${files}
                WORKING_DIRECTORY ${ROOT} RESULT_VARIABLE result ERROR_VARIABLE errors)
if(result)
  string(REGEX MATCHALL "[a-z][^\n :]*\\.[a-z]+:[0-9]+:[0-9]+: error" places "${errors}")
  list(TRANSFORM places REPLACE ":.*" "")
  list(REMOVE_DUPLICATES places)
  list(JOIN places "\n  " places)
  message(FATAL_ERROR "not formatted; run 'make format':\n  ${places}")
endif()
