# Every source says in its first line what lives in it: a newcomer reads that line before the name.
# Prints those that do not. Usage: cmake -D ROOT=<tree> -P first_lines.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)

tidemark_source_files(files *.h *.cpp *.cu *.cuh *.inc *.cmake *.py *.sh)
set(silent 0)
foreach(path IN LISTS files)
  file(READ ${ROOT}/${path} begin LIMIT 4)
  if(NOT begin MATCHES "^(// |# |#!|\"\"\")")
    message("${path}: begins without a word about what lives there")
    math(EXPR silent "${silent} + 1")
  endif()
endforeach()

if(silent)
  message(FATAL_ERROR "${silent} files say nothing at their head")
endif()
