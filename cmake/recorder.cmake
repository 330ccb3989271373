# The library that `tidemark record` has loaded into other people's processes. It travels inside the
# program, so that one file is all that there is to install. Result: tidemark_recorder, and
# tidemark_embed_recorder(<target>), after which tidemark::cli::recorder_library() has its bytes.
file(GLOB recorder_sources CONFIGURE_DEPENDS recorder/*.cpp)
add_library(tidemark_recorder MODULE ${recorder_sources})
target_include_directories(tidemark_recorder PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(tidemark_recorder PRIVATE Threads::Threads ${CMAKE_DL_LIBS} tidemark_warnings)
# Nothing of it meets what the process has: two functions are exported, and its C++ library is its
# own, because the process may have an older one. It stays loaded: its thread runs in it.
set_target_properties(tidemark_recorder PROPERTIES CXX_VISIBILITY_PRESET hidden)
target_link_options(tidemark_recorder PRIVATE -Wl,-z,nodelete -Wl,--gc-sections
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/recorder.exports)
set_target_properties(tidemark_recorder PROPERTIES
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/recorder.exports)
if(NOT TIDEMARK_SANITIZE AND NOT TIDEMARK_FUZZ)
  target_link_options(tidemark_recorder PRIVATE -static-libstdc++ -static-libgcc -s
                                                -Wl,-z,defs)
endif()

function(tidemark_embed_recorder target)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/recorder_library.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "// Made by cmake/recorder.cmake: the bytes of a library.
#include <string_view>

asm(R\"(
  .section .rodata
  .balign 16
tidemark_recorder_begin:
  .incbin \"$<TARGET_FILE:tidemark_recorder>\"
tidemark_recorder_end:
  .previous
)\");
extern \"C\" __attribute__((visibility(\"hidden\"))) const char tidemark_recorder_begin[];
extern \"C\" __attribute__((visibility(\"hidden\"))) const char tidemark_recorder_end[];

namespace tidemark::cli {
std::string_view recorder_library();
std::string_view recorder_library() {
  return {tidemark_recorder_begin,
          static_cast<std::size_t>(tidemark_recorder_end - tidemark_recorder_begin)};
}
}  // namespace tidemark::cli
")
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES
    OBJECT_DEPENDS ${PROJECT_BINARY_DIR}/libtidemark_recorder.so
    SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  add_dependencies(${target} tidemark_recorder)
endfunction()
