# CUDA is optional: planner, CLI and GUI never need it. Result:
#   TIDEMARK_HAVE_CUDA   ON when CUDA sources exist and a toolkit can compile them
#   tidemark_cuda        then the target that CUDA code links: static runtime, warnings
# A machine without a toolkit is a normal machine and gets one line that says what is left out.

set(TIDEMARK_CUDA AUTO CACHE STRING "CUDA parts: AUTO (where a toolkit is found), ON, OFF")
set_property(CACHE TIDEMARK_CUDA PROPERTY STRINGS AUTO ON OFF)
set(TIDEMARK_HAVE_CUDA OFF)

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS kernels/*.cu profiler/*.cu)
if(NOT TIDEMARK_CUDA)
  message(STATUS "CUDA: off by TIDEMARK_CUDA; kernels on a GPU are left out")
  return()
endif()

# nvcc is often not on PATH, and then check_language alone would miss it.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(TIDEMARK_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
  if(TIDEMARK_NVCC)
    set(CMAKE_CUDA_COMPILER "${TIDEMARK_NVCC}" CACHE FILEPATH "CUDA compiler" FORCE)
  endif()
endif()

if(CMAKE_CUDA_COMPILER AND NOT cuda_sources)  # checking a compiler costs seconds
  message(STATUS "CUDA: toolkit found, not used: there are no CUDA sources yet")
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(TIDEMARK_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TIDEMARK_CUDA is ON, but no CUDA compiler works. "
                        "Install a CUDA toolkit or set CUDACXX to its nvcc.")
  endif()
  message(STATUS "CUDA: no toolkit found; kernels on a GPU are left out")
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)  # never 'native': that is an error on a machine without GPU
endif()
enable_language(CUDA)

# CMake 3.25 knows no C++20 flag for nvcc and silently compiles C++17.
if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)  # loads on a machine that has no CUDA libraries

find_package(CUDAToolkit REQUIRED)
add_library(tidemark_cuda INTERFACE)
target_link_libraries(tidemark_cuda INTERFACE CUDA::cudart_static)
target_compile_options(tidemark_cuda INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
set(TIDEMARK_HAVE_CUDA ON)
message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION} for architectures ${CMAKE_CUDA_ARCHITECTURES}")
