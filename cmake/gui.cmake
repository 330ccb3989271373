# The window of `tidemark view` is optional. Result:
#   TIDEMARK_HAVE_GUI   ON when all packages are there
#   tidemark_imgui      then the target that the GUI links: Dear ImGui and stb, both static. GLFW and
#                       OpenGL are only headers here: gui/glfw_library.cpp opens them at run time.
# Without one of them the program is built without windows and says so when asked for one.

set(TIDEMARK_GUI AUTO CACHE STRING "The window: AUTO (where its packages are found), ON, OFF")
set_property(CACHE TIDEMARK_GUI PROPERTY STRINGS AUTO ON OFF)
set(TIDEMARK_HAVE_GUI OFF)
if(NOT TIDEMARK_GUI)
  message(STATUS "GUI: off by TIDEMARK_GUI; tidemark view is left out")
  return()
endif()

find_package(glfw3 3.3 QUIET)
find_path(TIDEMARK_OPENGL GL/gl.h)
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  # From 1.87 on keys are named and input is queued; this is written for what Debian 12 has.
  pkg_check_modules(imgui QUIET "imgui>=1.86" "imgui<1.87")
endif()
find_library(TIDEMARK_LIBIMGUI libimgui.a)
find_library(TIDEMARK_LIBSTB libstb.a)  # static: no stb is needed where the program runs
find_path(TIDEMARK_STB stb_image_write.h PATH_SUFFIXES stb)

set(missing)
foreach(need IN ITEMS "glfw3_FOUND|libglfw3-dev" "TIDEMARK_OPENGL|libgl-dev"
        "imgui_FOUND|libimgui-dev 1.86 and pkg-config" "TIDEMARK_LIBIMGUI|libimgui-dev"
        "TIDEMARK_LIBSTB|libstb-dev" "TIDEMARK_STB|libstb-dev")
  string(REGEX MATCH "^([^|]*)\\|(.*)$" _ "${need}")
  if(NOT ${CMAKE_MATCH_1})
    list(APPEND missing "${CMAKE_MATCH_2}")
  endif()
endforeach()
if(missing)
  list(REMOVE_DUPLICATES missing)
  list(JOIN missing ", " missing)
  if(TIDEMARK_GUI STREQUAL "ON")
    message(FATAL_ERROR "TIDEMARK_GUI is ON, but these packages are missing: ${missing}")
  endif()
  message(STATUS "GUI: without ${missing}; tidemark view is left out")
  return()
endif()

add_library(tidemark_imgui INTERFACE)
target_include_directories(tidemark_imgui SYSTEM INTERFACE
  ${imgui_INCLUDE_DIRS} ${TIDEMARK_STB})
target_link_libraries(tidemark_imgui INTERFACE
  ${TIDEMARK_LIBIMGUI} ${TIDEMARK_LIBSTB} ${CMAKE_DL_LIBS})
set(TIDEMARK_HAVE_GUI ON)
message(STATUS "GUI: Dear ImGui ${imgui_imgui_VERSION}, GLFW ${glfw3_VERSION}")
