# Everything from outside. No downloads: a package that is not installed is named, with its remedy.

macro(tidemark_require package debian_package)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found. On Debian: 'apt install ${debian_package}', "
                        "or 'scripts/install_packages.sh' for everything that is missing.")
  endif()
endmacro()

tidemark_require(fmt libfmt-dev)
tidemark_require(nlohmann_json nlohmann-json3-dev)
tidemark_require(zstd libzstd-dev)
set(ZLIB_USE_STATIC_LIBS ON)  # where there is one, as below
find_package(ZLIB QUIET)
set(ZLIB_USE_STATIC_LIBS ${ZLIB_FOUND})
tidemark_require(ZLIB zlib1g-dev)
tidemark_require(SQLite3 libsqlite3-dev)
tidemark_require(CLI11 libcli11-dev)
tidemark_require(OpenBLAS libopenblas-dev)
find_package(Threads REQUIRED)  # of the compiler's own
if(BUILD_TESTING AND NOT TIDEMARK_FUZZ)
  tidemark_require(GTest "libgtest-dev libgmock-dev")
endif()
if(TIDEMARK_BENCH)
  tidemark_require(benchmark libbenchmark-dev)
endif()

# The program needs nothing but the C library where it runs. What it links is static where that can
# be had; what it opens at run time (OpenBLAS, GLFW, CUDA) costs one line where it is missing.
if(TARGET zstd::libzstd_static)
  set(TIDEMARK_ZSTD zstd::libzstd_static)
else()
  set(TIDEMARK_ZSTD zstd::libzstd)
endif()

# SQLite's module for CMake finds the shared library first.
find_library(TIDEMARK_SQLITE_STATIC ${CMAKE_STATIC_LIBRARY_PREFIX}sqlite3${CMAKE_STATIC_LIBRARY_SUFFIX})
set(TIDEMARK_SQLITE SQLite::SQLite3)
if(TIDEMARK_SQLITE_STATIC)
  add_library(tidemark_sqlite INTERFACE)
  target_include_directories(tidemark_sqlite SYSTEM INTERFACE ${SQLite3_INCLUDE_DIRS})
  target_link_libraries(tidemark_sqlite INTERFACE ${TIDEMARK_SQLITE_STATIC} ${CMAKE_DL_LIBS} m)
  set(TIDEMARK_SQLITE tidemark_sqlite)
endif()

# fmt 9, the one of Debian 12 and Ubuntu 24.04, is made static here; of others nobody knows yet
# what they instantiate.
set(TIDEMARK_FMT fmt::fmt)
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  set(TIDEMARK_FMT tidemark_fmt)
  add_library(tidemark_fmt STATIC cmake/fmt_library.cpp)
  foreach(property IN ITEMS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES)
    set_property(TARGET tidemark_fmt PROPERTY INTERFACE_${property}
      $<TARGET_PROPERTY:fmt::fmt,INTERFACE_${property}>)
  endforeach()
  set_target_properties(tidemark_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)  # for the CUDA plugin
endif()

# OpenBLAS is loaded at run time (kernels/cpu/blas.h); here only its header is needed. Its package
# only sets variables; as system headers its warnings are its own.
if(NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS INTERFACE IMPORTED)
  target_include_directories(OpenBLAS::OpenBLAS SYSTEM INTERFACE ${OpenBLAS_INCLUDE_DIRS})
  target_link_libraries(OpenBLAS::OpenBLAS INTERFACE ${CMAKE_DL_LIBS})
endif()
