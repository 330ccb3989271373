# tidemark_library(<folder> LINKS <targets>…)
#
# The static library of one folder: tidemark_<folder> (tidemark_cli_lib for cli, whose main.cpp is
# the program's). A folder without sources is skipped, and so are links to skipped folders.
#
# Sources are found, not listed: every .cpp of a folder belongs to its library, so a list would be
# a second copy of `ls`. CONFIGURE_DEPENDS makes each build look again, so no file is missed.
function(tidemark_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/cli/main\\.cpp$")
  if(NOT sources)
    return()
  endif()

  set(library tidemark_${folder})
  if(folder STREQUAL "cli")
    set(library tidemark_cli_lib)  # 'tidemark' is the program
  endif()
  add_library(${library} STATIC ${sources})
  tidemark_compile_as_one(${library} ${sources})
  target_include_directories(${library} PUBLIC ${PROJECT_SOURCE_DIR})  # "folder/file.h"
  target_link_libraries(${library} PRIVATE tidemark_warnings)
  if(folder STREQUAL "cli")
    # It is nine tenths formatting, which -O3 makes half as long again to compile and no faster.
    target_compile_options(${library} PRIVATE $<$<CONFIG:Release>:-O1>)
  elseif(NOT folder STREQUAL "kernels")
    # Loops over numbers are in kernels; all else -O3 takes a quarter longer to compile.
    target_compile_options(${library} PRIVATE $<$<CONFIG:Release>:-O2>)
  endif()
  foreach(link IN LISTS arg_LINKS)
    if(TARGET ${link})
      target_link_libraries(${library} PUBLIC ${link})
    endif()
  endforeach()

  # The headers that nearly every source includes, compiled once, by the lowest layer. Sources
  # still include what they use: the clang preset builds without precompiled headers.
  if(folder STREQUAL "base")
    target_precompile_headers(${library} PRIVATE
      <algorithm> <fmt/format.h> <functional> <map> <optional> <string> <unordered_map> <vector>)
  elseif(TARGET tidemark_base)
    target_precompile_headers(${library} REUSE_FROM tidemark_base)
  endif()
endfunction()

# Each folder becomes one source: most of what small files take to compile is the headers that they
# share. File-local names of a folder must therefore differ (tests stand in a namespace of their file
# for that), while a local variable may be called as another file's function is. The clang preset
# compiles every file alone.
function(tidemark_compile_as_one target)
  if(NOT TIDEMARK_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER ${folder} group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
endfunction()
