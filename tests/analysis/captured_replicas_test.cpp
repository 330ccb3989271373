// Captured traces as steps of replicas, beside what PyTorch's own allocator said of the same steps
// under DistributedDataParallel and fully_shard (scripts/capture_models/measure_replicas.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "analysis/report.h"
#include "base/json_reader.h"
#include "simulator/parallel/rank_trace.h"
#include "tests/support/measured_steps.h"
#include "traces/trace_json.h"

namespace tidemark::captured_replicas_test {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 40;
const std::string folder = TIDEMARK_TESTS_DIR "/reference/captures/";

struct Replicated {
  std::string name, shard;
  std::int64_t ranks = 0;
  bool master_weights = false;
  std::int64_t peak = 0, update = 0;  ///< bytes allocated at most: in the step, in its update
  Report predicted;
};

StepOptions of_replicas(std::int64_t ranks, std::string_view shard) {
  StepOptions step;
  step.mesh[Axis::Data] = ranks;
  step.shard = parse_sharding(shard);
  return step;
}

Report report_of(const Replicated& step) {
  Trace recorded = load_trace(folder + step.name + ".trace.json.zst");
  recorded.step.master_weights = step.master_weights;
  const auto trace = std::make_shared<const Trace>(
      as_stated(std::move(recorded), of_replicas(step.ranks, step.shard)));
  return evaluate(trace, parse_strategy("vanilla"), find_device("a100-80gb"),
                  MemoryBudget{Bytes{most}})
      .report;
}

const std::vector<Replicated>& replicated_steps() {
  static const std::vector<Replicated> all = [] {
    const JsonDocument document = read_json(folder + "replicas.json", FileKind::TrainingData);
    std::vector<Replicated> steps;
    for (const JsonView view : document.root().at("steps").items()) {
      const JsonView allocated = view.at("allocated");
      Replicated step{.name = std::string(view.at("name").text()),
                      .shard = std::string(view.at("shard").text()),
                      .ranks = view.at("ranks").integer(1, most),
                      .master_weights = view.boolean_or("master_weights", false),
                      .peak = 0,
                      .update = allocated.at("optimizer").integer(0, most),
                      .predicted = {}};
      for (const std::string_view phase : {"forward", "backward", "optimizer"})
        step.peak = std::max(step.peak, allocated.at(phase).integer(0, most));
      step.predicted = report_of(step);
      steps.push_back(std::move(step));
    }
    return steps;
  }();
  return all;
}

std::string title(const Replicated& step) {
  return step.name + ", " + step.shard + " of " + std::to_string(step.ranks) +
         (step.master_weights ? ", master weights" : "");
}

TEST(CapturedReplicas, AreEachModelShardedInEachWay) {
  EXPECT_EQ(replicated_steps().size(), 4u * 6u * 2u + 4u * 2u);
}

// Off as the same steps of one GPU are (captured_steps_test.cpp): by what blocks that are not split
// have beyond what was asked for.
TEST(CapturedReplicas, AllocateWhatPyTorchDoes) {
  for (const Replicated& step : replicated_steps())
    EXPECT_LE(std::abs(percent_off(step.predicted.allocated_peak.count, step.peak)), 1.6)
        << title(step);
}

// Parameters, gradients, states and what the update takes beside them. Buckets are large blocks,
// which are not split, and so are flat parameters and what is fp32 of half a model; shards of
// fully_shard are small enough to be told to the byte, but for a rounding of 512 bytes of single
// numbers.
TEST(CapturedReplicas, KeepWhatPyTorchKeeps) {
  constexpr std::int64_t single_numbers = 8 * 512;
  for (const Replicated& step : replicated_steps()) {
    const std::int64_t kept = step.predicted.allocated_at_rest.count;
    if (step.shard.starts_with("fsdp2") && !step.master_weights) {
      EXPECT_LE(std::abs(kept - step.update), single_numbers) << title(step);
    } else {
      EXPECT_LE(std::abs(percent_off(kept, step.update)), 2.7) << title(step);
    }
  }
}

// A capture of a wrapped model says its ranks itself; other ranks may be asked about all the same.
TEST(CapturedReplicas, MayBeOfOtherRanksThanTheirs) {
  Trace trace = load_trace(folder + "llama-bf16.trace.json.zst");
  const Trace asked = as_stated(trace, of_replicas(8, "fsdp2"));
  trace.step.mesh[Axis::Data] = 2;
  trace.step.shard = parse_sharding("ddp");
  EXPECT_EQ(as_stated(trace, of_replicas(8, "fsdp2")), asked);
  EXPECT_EQ(as_stated(trace, StepOptions()).step.mesh[Axis::Data], 2);
}

}  // namespace
}  // namespace tidemark::captured_replicas_test
