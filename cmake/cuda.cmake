# CUDA is optional: planner, CLI and GUI never need it. Result:
#   TIDEMARK_HAVE_CUDA   ON when a toolkit can compile the plugin
#   tidemark_cuda        then the plugin: libtidemark_cuda.so beside the program, loaded on demand
# A machine without a toolkit is a normal machine and gets one line that says what is left out.

set(TIDEMARK_CUDA AUTO CACHE STRING "CUDA parts: AUTO (where a toolkit is found), ON, OFF")
set_property(CACHE TIDEMARK_CUDA PROPERTY STRINGS AUTO ON OFF)
set(TIDEMARK_HAVE_CUDA OFF)

if(NOT TIDEMARK_CUDA)
  message(STATUS "CUDA: off by TIDEMARK_CUDA; kernels on a GPU are left out")
  return()
endif()
if(TIDEMARK_SANITIZE OR TIDEMARK_FUZZ)
  # nvcc knows no sanitizers; the kernels run under them in the tests' emulation.
  message(STATUS "CUDA: left out of builds with sanitizers")
  return()
endif()

# nvcc is often not on PATH, and then check_language alone would miss it.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(TIDEMARK_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
  if(TIDEMARK_NVCC)
    set(CMAKE_CUDA_COMPILER "${TIDEMARK_NVCC}" CACHE FILEPATH "CUDA compiler" FORCE)
  endif()
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
  # One, for short builds; the presets for users have all. Never 'native': an error without a GPU.
  set(CMAKE_CUDA_ARCHITECTURES 90)
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
# The level of the host's half, which only launches: -O3 takes it twice as long to compile. Kernels
# are always fully optimized.
set(CMAKE_CUDA_FLAGS_RELEASE "-O1 -DNDEBUG")

find_package(CUDAToolkit REQUIRED)
# The plugin brings its own copy of the few sources of lower layers that it needs, because theirs
# are not position-independent.
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS kernels/*.cu)
# Before it has read a line of ours, nvcc is at work for three seconds: on the headers that all sources
# share, several times over. Those that take not much longer themselves are therefore compiled as one,
# in three parts, with what that asks of file-local names.
set(long_to_compile activation attention_backward elementwise norm softmax)
if(TIDEMARK_UNITY)
  foreach(source IN LISTS cuda_sources)
    cmake_path(GET source STEM name)
    if(name IN_LIST long_to_compile)
      continue()
    endif()
    list(REMOVE_ITEM cuda_sources ${source})
    if(source MATCHES "/kernels/cuda/")
      set(part backend)
    elseif(name MATCHES "^[a-d]")
      set(part kernels_a_to_d)
    else()
      set(part kernels_e_to_z)
    endif()
    string(APPEND text_of_${part} "#include \"${source}\"\n")
  endforeach()
  foreach(part IN ITEMS backend kernels_a_to_d kernels_e_to_z)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/cuda/${part}.cu)
    file(CONFIGURE OUTPUT ${source} CONTENT "${text_of_${part}}" @ONLY)
    list(APPEND cuda_sources ${source})
  endforeach()
endif()
add_library(tidemark_cuda MODULE ${cuda_sources}
  base/error.cpp traces/layouts.cpp traces/layout_transform.cpp base/quoted.cpp traces/tensor.cpp
  traces/trace.cpp base/units.cpp)
target_include_directories(tidemark_cuda PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(tidemark_cuda PRIVATE CUDA::cudart_static CUDA::cublasLt ${TIDEMARK_FMT}
                                            tidemark_warnings)
target_compile_options(tidemark_cuda PRIVATE
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
# Registers, spills and local memory of every kernel are kept beside its object file for the tests.
set_property(TARGET tidemark_cuda PROPERTY CUDA_COMPILER_LAUNCHER
  ${PROJECT_SOURCE_DIR}/cmake/keep_ptxas_report.sh ${CMAKE_CUDA_COMPILER_LAUNCHER})
# A missing symbol is an error here and not on the user's machine; no other symbols are exported,
# so none of the program's are taken over.
target_link_options(tidemark_cuda PRIVATE -Wl,-z,defs -Wl,-z,nodelete -Wl,--exclude-libs,ALL)
set_target_properties(tidemark_cuda PROPERTIES
  CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
  # CMake gives CUDA targets no RUNPATH of its own for the toolkit's folder.
  BUILD_RPATH "${CUDAToolkit_LIBRARY_DIR}" INSTALL_RPATH "${CUDAToolkit_LIBRARY_DIR}")
install(TARGETS tidemark_cuda LIBRARY DESTINATION lib/tidemark COMPONENT cuda OPTIONAL)
set(TIDEMARK_HAVE_CUDA ON)
message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION} for architectures ${CMAKE_CUDA_ARCHITECTURES}")
