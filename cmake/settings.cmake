# How everything is compiled: language, build type, warnings, sanitizers.

option(BUILD_TESTING "Build the tests" ON)
option(TIDEMARK_BENCH "Build the benchmarks (needs Google Benchmark)" OFF)
option(TIDEMARK_FUZZ "Build tests/fuzz as libFuzzer programs instead of the tests (needs clang)" OFF)
option(TIDEMARK_UNITY "Compile folders of small files as one: a faster complete build" ON)
option(TIDEMARK_WERROR "Warnings are errors" ON)
set(TIDEMARK_SANITIZE "" CACHE STRING "Sanitizers, e.g. 'address,undefined' or 'thread'")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)  # -O3
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)  # for clang-tidy and editors

add_compile_options(
  # One input, one output, to the byte, on every compiler and processor: no silent fused
  # multiply-add in the cost model.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  # Messages name files as the repository does, wherever it was built.
  $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=>)
add_compile_definitions($<$<NOT:$<CONFIG:Release>>:_GLIBCXX_ASSERTIONS>)

add_library(tidemark_warnings INTERFACE)
target_compile_options(tidemark_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:\
-Wall;-Wextra;-Wconversion;-Wold-style-cast;-Woverloaded-virtual>")
if(NOT TIDEMARK_UNITY)
  target_compile_options(tidemark_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A local variable may be called as a function of another file that shares its source is.
  target_compile_options(tidemark_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wshadow=local>)
endif()
if(TIDEMARK_WERROR)
  target_compile_options(tidemark_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 at -O3 takes "text" + std::string(…) for an overflow (GCC bugs 105329 and 105651).
  # Real ones are left to clang and the sanitizers.
  target_compile_options(tidemark_warnings INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow>")
endif()

if(TIDEMARK_SANITIZE)
  add_compile_options(-fsanitize=${TIDEMARK_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TIDEMARK_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 loses track of initialisation through its own instrumentation and warns about
    # correct code; the uninstrumented builds keep the warning.
    target_compile_options(tidemark_warnings INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

if(TIDEMARK_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TIDEMARK_FUZZ needs clang: use 'cmake --preset fuzz'")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)  # coverage in every library; main() in the targets
endif()
