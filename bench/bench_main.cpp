// As the program runs: with its settings for freed memory.
#include <benchmark/benchmark.h>

#include "base/freed_memory.h"

int main(int argc, char** argv) {
  tidemark::keep_freed_memory();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
