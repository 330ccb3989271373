// Reading 100 MB of JSON: traces, most of them names, and columns of numbers as timelines have
// them.
#include <benchmark/benchmark.h>

#include "base/error.h"
#include "base/json_reader.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"
#include "traces/trace_json.h"

namespace tidemark {
namespace {

constexpr std::size_t size = 100'000'000;

std::string traces() {
  const std::string one = write_trace(build_trace(find_model("llama-7b"), {.batch = 1}));
  std::string text = "[" + one;
  while (text.size() < size) text.append(",").append(one);
  return text + "]";
}

// Of one to nine digits, in an order that no branch predictor knows.
std::string columns() {
  std::string text = "[[0";
  std::uint64_t number = 1, limit = 10;
  while (text.size() < size) {
    number = number * 6364136223846793005 + 1442695040888963407;
    limit = limit == 1'000'000'000 ? 10 : limit * 10;
    text.append(",").append(std::to_string((number >> 33) % limit));
  }
  return text + "]]";
}

void read(benchmark::State& state, const std::string& text) {
  for (auto _ : state) {
    const JsonDocument document(text, "bench");
    CHECK(!document.root().items().empty());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

void read_traces(benchmark::State& state) { read(state, traces()); }
void read_columns(benchmark::State& state) { read(state, columns()); }

BENCHMARK(read_traces)->Unit(benchmark::kMillisecond);
BENCHMARK(read_columns)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tidemark
