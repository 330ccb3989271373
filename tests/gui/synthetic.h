// Recordings of any size: a forward half that makes a buffer per run, and a backward half that
// frees them in reverse, on two streams. Every number about them can be computed in the head.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "analysis/recording/recording.h"
#include "traces/trace_builder.h"

namespace tidemark::gui {

inline std::shared_ptr<const Trace> chain_of_gelus(std::size_t ops) {
  TraceBuilder b("synthetic", "toy", {.precision = Precision::Fp32, .optimizer = Optimizer::Sgd});
  TensorId x = b.input("x", {256}, DType::Float32);
  for (std::size_t i = 0; i < ops; ++i) {
    if (i % 20 == 0) b.begin_block(fmt::format("block{}", i / 20), x, -1);
    x = b.gelu(fmt::format("block{}.gelu{}", i / 20, i % 20), x);
    if (i % 20 == 19 || i + 1 == ops) b.end_block();
  }
  return std::make_shared<const Trace>(b.finish(x));
}

/// 2 · `pairs` runs of 900 ns, one per microsecond, and 2 · `pairs` memory events of 1 KiB each.
/// The peak is `pairs` KiB, when the forward half ends.
inline Recording synthetic(std::size_t pairs) {
  Recording r;
  r.strategy = "synthetic";
  r.device = "a100-80gb";
  r.trace = chain_of_gelus(std::min<std::size_t>(pairs, 10'000));
  r.schedule.streams = 2;
  const std::size_t ops = r.trace->ops.size();
  r.planned = Bytes{static_cast<std::int64_t>(pairs) << 10};
  const auto add_run = [&](std::size_t i, bool is_forward) {
    const std::size_t of = is_forward ? i : 2 * pairs - 1 - i;
    const auto buffer = static_cast<BufferId>(of);
    const StreamId stream{static_cast<std::uint8_t>(is_forward ? 0 : i % 2)};
    const Nanoseconds begin{static_cast<std::int64_t>(i) * 1000}, end = begin + Nanoseconds{900};
    const auto operand = static_cast<std::uint32_t>(r.schedule.operands.size());
    r.schedule.operands.push_back(buffer);
    if (is_forward) {
      r.schedule.buffers.push_back(
          {.size = {1024}, .tensor = r.trace->outputs(r.trace->ops[of % ops])[0]});
      r.offsets.push_back(static_cast<std::int64_t>(of) << 10);
      r.schedule.steps.emplace_back(Allocate{buffer});
      r.timeline.memory.push_back({begin, buffer, true});
    }
    const auto step = static_cast<std::uint32_t>(r.schedule.steps.size());
    r.schedule.steps.emplace_back(Run{is_forward ? Task::Forward : Task::Backward, stream,
                                      static_cast<OpId>(of % ops), operand, is_forward ? 0U : 1U,
                                      is_forward ? 1U : 0U});
    r.timeline.runs.push_back({step, stream, begin, end});
    if (is_forward) return;
    r.schedule.steps.emplace_back(Free{buffer, stream});
    r.timeline.memory.push_back({end, buffer, false});
  };
  for (std::size_t i = 0; i < 2 * pairs; ++i) add_run(i, i < pairs);
  r.timeline.duration = Nanoseconds{static_cast<std::int64_t>(2 * pairs) * 1000};
  return r;
}

/// Runs of 100 ns of these tasks, one after the other on one stream; no memory.
inline Recording of_tasks(const std::vector<Task>& tasks) {
  Recording recording;
  recording.trace = std::make_shared<const Trace>();
  for (const Task task : tasks) {
    const auto i = static_cast<std::uint32_t>(recording.timeline.runs.size());
    recording.schedule.steps.emplace_back(Run{task, StreamId::Compute, no_op, 0, 0, 0});
    recording.timeline.runs.push_back(
        {i, StreamId::Compute, Nanoseconds{100 * i}, Nanoseconds{100 * i + 100}});
  }
  recording.timeline.duration = Nanoseconds{static_cast<std::int64_t>(100 * tasks.size())};
  return recording;
}

}  // namespace tidemark::gui
