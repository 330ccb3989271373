# tidemark_embed(<target> <function> <text files>…)
#
# Puts the files into <target>, so that the program needs none beside it. They are reached through
#   std::span<const EmbeddedFile> <function>();   // in the order given here
# which the user declares. <function> is named in full, as tidemark::cli::embedded_report. The source
# is written by this same file, run as a script at build time: whoever edits a data file only builds
# again, and nothing but CMake is needed.
function(tidemark_embed target function)
  string(REGEX REPLACE ".*::" "" name ${function})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  set(files)
  foreach(file IN LISTS ARGN)
    get_filename_component(file ${file} ABSOLUTE)
    list(APPEND files ${file})
  endforeach()
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -D FUNCTION=${function} -D OUTPUT=${source} "-DFILES=${files}"
            -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    DEPENDS ${files} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    COMMENT "Embedding the files of ${name}()"
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  return()  # included: only the function is wanted
endif()

# The script. One raw string literal per line keeps each far below the length that compilers
# promise to accept (65 536 bytes), whatever the size of the file.
set(rows "")
foreach(file IN LISTS FILES)
  file(READ ${file} text)
  if(text MATCHES "\\)embed\"|\r")
    message(FATAL_ERROR "${file}: a carriage return or ')embed\"' cannot be embedded")
  endif()
  string(REPLACE "\n" ")embed\" \"\\n\"\n        R\"embed(" text "${text}")
  get_filename_component(name ${file} NAME)
  string(APPEND rows "    {\"${name}\",\n        R\"embed(${text})embed\"sv},\n")
endforeach()
list(LENGTH FILES count)
string(REGEX MATCH "^(.*)::([^:]*)$" _ "${FUNCTION}")
set(namespace "${CMAKE_MATCH_1}")
set(name "${CMAKE_MATCH_2}")
file(WRITE ${OUTPUT} "// Made by cmake/embed_text.cmake at build time: edit the data files instead.
#include <array>
#include <span>

#include \"base/embedded_file.h\"

namespace ${namespace} {

std::span<const EmbeddedFile> ${name}();
std::span<const EmbeddedFile> ${name}() {
  using namespace std::string_view_literals;
  static constexpr std::array<EmbeddedFile, ${count}> files{{
${rows}  }};
  return files;
}

}  // namespace ${namespace}
")
