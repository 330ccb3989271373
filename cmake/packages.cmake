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
tidemark_require(CLI11 libcli11-dev)
tidemark_require(OpenBLAS libopenblas-dev)
find_package(Threads REQUIRED)  # of the compiler's own
if(BUILD_TESTING AND NOT TIDEMARK_FUZZ)
  tidemark_require(GTest "libgtest-dev libgmock-dev")
endif()
if(TIDEMARK_BENCH)
  tidemark_require(benchmark libbenchmark-dev)
endif()

# zstd 1.5.6 gave its libraries one common name; Debian 12 has an older one.
if(TARGET zstd::libzstd)
  set(TIDEMARK_ZSTD zstd::libzstd)
elseif(TARGET zstd::libzstd_shared)
  set(TIDEMARK_ZSTD zstd::libzstd_shared)
else()
  set(TIDEMARK_ZSTD zstd::libzstd_static)
endif()

# OpenBLAS is loaded at run time (kernels/cpu/blas.h); here only its header is needed. Its package
# only sets variables; as system headers its warnings are its own.
if(NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS INTERFACE IMPORTED)
  target_include_directories(OpenBLAS::OpenBLAS SYSTEM INTERFACE ${OpenBLAS_INCLUDE_DIRS})
  target_link_libraries(OpenBLAS::OpenBLAS INTERFACE ${CMAKE_DL_LIBS})
endif()
