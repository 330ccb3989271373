// Bytes as a trace file that is run: a sound trace is refused in one line or computes a step, with
// every kernel inside of its arrays (see tests/support/fence.h). Values are of no interest here.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "kernels/cpu/cpu_backend.h"
#include "profiler/initial_values.h"
#include "profiler/numbers.h"
#include "profiler/replay.h"
#include "tests/support/fence.h"
#include "traces/trace_json.h"

namespace {

using namespace tidemark;

/// Small enough for hundreds of steps a second.
bool is_small(const Trace& trace) {
  std::int64_t elements = 0;
  for (const Tensor& tensor : trace.tensors) {
    const std::int64_t most = 1 << 14;
    if (numel(tensor.shape) > most) return false;
    elements += numel(tensor.shape);
    if (elements > most) return false;
  }
  return trace.ops.size() <= 256;
}

void load(profiler::Replay& replay) {
  const Trace& trace = replay.trace();
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (trace[id].storage != id) continue;
    if (trace[id].category == Category::Parameter)
      replay.write(
          id,
          profiler::bytes_of(profiler::initial_parameter(trace, id, 1), trace[id].dtype).data());
    if (trace[id].category == Category::Input)
      replay.write(
          id, profiler::bytes_of(profiler::synthetic_input(trace, id, 1), trace[id].dtype).data());
  }
}

void run(const Trace& trace, std::string_view strategy) {
  const PlannedStep planned =
      plan_step(std::make_shared<const Trace>(trace), parse_strategy(strategy));
  if (!planned.refusal.empty()) return;
  fence::forget();
  const auto backend = make_cpu_backend({.run = fence::run_from_step_one});
  profiler::Replay replay(planned, *backend);
  load(replay);
  for (const std::int64_t number : {0, 1}) replay.step({.number = number});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  Trace trace;
  try {
    trace = read_trace(json, "fuzz");
  } catch (const InputError&) {
    return 0;
  }
  if (!is_small(trace)) return 0;
  for (const char* strategy : {"vanilla", "checkpoint", "mesa", "lowmemorybp", "reversible"}) {
    try {
      run(trace, strategy);
    } catch (const InputError& error) {
      if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
    }
  }
  return 0;
}
