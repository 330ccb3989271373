// Plans for ranks that share the tokens of a sequence: keys and values of all tokens are gathered
// inside of blocks.
#include <gtest/gtest.h>

#include "simulator/lower.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/planner/planner.h"
#include "tests/simulator/step_facts.h"
#include "traces/presets.h"

namespace tidemark::context_ranks_test {
namespace {

struct Case {
  const char* model;
  Precision precision;
  const char* mesh;
  const char* shard = "ddp";
};

constexpr std::array cases = {Case{"gpt2", Precision::AmpBf16, "cp=2"},
                              Case{"gpt2", Precision::Bf16, "cp=4", "megatron"},
                              Case{"gpt2", Precision::Fp32, "dp=2,cp=2", "fsdp2"},
                              Case{"llama-3.2-1b", Precision::Bf16, "cp=2,tp=2"}};

std::shared_ptr<const Trace> trace_of(const Case& c) {
  StepOptions step{.batch = 4, .precision = c.precision};
  step.mesh = parse_mesh(c.mesh);
  step.shard = parse_sharding(c.shard);
  return std::make_shared<const Trace>(build_rank_trace(find_model(c.model), step));
}

/// Sums are at most so much too large.
void expect_kept(const Case& c, const Planner& planner, std::optional<std::int64_t> most) {
  for (std::size_t i = 0; i <= 24; ++i) {
    const std::size_t point = i * (planner.size() - 1) / 24;
    const std::int64_t peak = rounded_live_peak(lower(planner.trace(), planner.plan_at(point)));
    ASSERT_LE(peak, planner[point].bytes) << c.model << " " << c.mesh << " point " << point;
    if (!most) continue;
    ASSERT_GE(peak, planner[point].bytes - *most) << c.model << " " << c.mesh << " " << point;
  }
}

// Where autocast's copies are held beyond a block, 144 KiB of biases may be counted once more than
// they are there.
TEST(ContextRanks, SumsAreKept) {
  for (const Case& c : cases)
    expect_kept(c, Planner(trace_of(c), find_device("a100-80gb"), {}), 147456);
}

TEST(ContextRanks, SumsAreKeptWithOffload) {
  for (const Case& c : cases) {
    const Planner planner(trace_of(c), find_device("a100-80gb"), {});
    for (const double share : {0.0, 0.25, 1.0}) expect_kept(c, Planner(planner, share), {});
  }
}

}  // namespace
}  // namespace tidemark::context_ranks_test
