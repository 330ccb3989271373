# Known misspellings in sources and documents.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)

find_program(CODESPELL codespell)
if(NOT CODESPELL)
  message("SKIPPED: codespell is not installed")
  return()
endif()

set(escapes "\\\\[nt]")  # in "\nThe" the word is The

tidemark_source_files(files *.h *.cpp *.cu *.cuh *.cmake CMakeLists.txt *.sh *.py *.md *.1)
execute_process(COMMAND ${CODESPELL} --ignore-regex ${escapes} ${files}
                WORKING_DIRECTORY ${ROOT} RESULT_VARIABLE result)
if(result)
  message(FATAL_ERROR "misspelled; a word that is meant goes into --ignore-words-list here")
endif()
