// Which tensors leave where the link is filled, when their copies run, and that nobody waits for
// them.
#include "simulator/planner/filled_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/host_copies.h"
#include "simulator/graph/offloaded_values.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/simulator/chain.h"
#include "tests/simulator/planned.h"
#include "tests/simulator/step_facts.h"
#include "traces/presets.h"

namespace tidemark::filled_link_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Bytes tensor{64 << 20}, unlimited{std::int64_t{1} << 50};

PlannedStep wide_chain(std::int64_t layers, std::string_view strategy = "vanilla") {
  Trace trace = chain(layers, 2);
  for (Tensor& each : trace.tensors) each.shape = {1 << 24};
  PlannedStep step = planned(std::move(trace), strategy);
  step.derived = derived_of(step);
  return step;
}

std::vector<TensorId> all_made(const Trace& trace) {
  std::vector<TensorId> made;
  for (const Op& op : trace.ops)
    for (const TensorId output : trace.outputs(op)) made.push_back(output);
  return made;
}

/// A copy of the chain's tensors takes as long as so many of its ops.
Device device_where_a_copy_takes(double ops, const PlannedStep& step) {
  Device device = find_device("a100-80gb");
  const Timeline timeline = simulate(*step.trace, lower(step), device);
  const auto ns = static_cast<double>((timeline.runs[1].begin - timeline.runs[0].begin).count());
  device.host_link_bytes_per_second = static_cast<double>(tensor.count) / (ops * ns) * 1e9;
  return device;
}

struct Left {
  std::string name;
  std::uint32_t left_by, fetched_at;
  bool operator==(const Left&) const = default;
};

void PrintTo(const Left& left, std::ostream* out) {
  *out << left.name << " by " << left.left_by << ", fetched at " << left.fetched_at;
}

std::vector<Left> left_in(const Trace& trace, const Plan& plan) {
  std::vector<Left> left;
  for (std::size_t t = 0; t < plan.decisions.size(); ++t)
    if (plan.decisions[t].action == Action::Offload)
      left.push_back({trace.tensors[t].name, static_cast<std::uint32_t>(plan.left_by[t]),
                      static_cast<std::uint32_t>(plan.fetched_at[t])});
  return left;
}

// x1 is read last by op 1, and its copy ends with op 3; x2 is an argument of the block that ends
// with op 3, and its copy ends with op 5; that of x3 would with op 7. Gradients take half as long
// again: x1, needed by those of op 1, comes while those of ops 3 and 2 are computed, and x2 before.
TEST(FilledLink, TakesWhatLeavesUntilTheForwardEnds) {
  const PlannedStep step = wide_chain(8);
  const Device device = device_where_a_copy_takes(1.99, step);
  const auto left = [&](Bytes most) {
    return left_in(*step.trace, fill_link(step, all_made(*step.trace), device, most));
  };
  EXPECT_THAT(left(unlimited), ElementsAre(Left{"x1", 4, 3}, Left{"x2", 6, 4}));
  EXPECT_THAT(left(tensor), ElementsAre(Left{"x1", 4, 3}));
  EXPECT_THAT(left({tensor.count - 1}), IsEmpty());
}

// What is not asked about stays, and leaves the link to others.
TEST(FilledLink, TakesWhatMayLeave) {
  const PlannedStep step = wide_chain(8);
  const Device device = device_where_a_copy_takes(1.9, step);
  const Plan plan = fill_link(step, {TensorId{1}, TensorId{3}}, device, unlimited);
  EXPECT_THAT(left_in(*step.trace, plan), ElementsAre(Left{"x1", 4, 3}, Left{"x3", 6, 5}));
}

// The last segment is made again from its input as soon as the backward begins.
TEST(FilledLink, LeavesWhatIsNeededAtOnce) {
  const PlannedStep step = wide_chain(8, "checkpoint:every=2");
  const Device device = device_where_a_copy_takes(0.5, step);
  EXPECT_THAT(left_in(*step.trace, fill_link(step, all_made(*step.trace), device, unlimited)),
              IsEmpty());
  const PlannedStep three = wide_chain(12, "checkpoint:every=2");
  EXPECT_THAT(left_in(*three.trace, fill_link(three, all_made(*three.trace), device, unlimited)),
              ElementsAre(Left{"x4", 7, 8}));
}

struct Case {
  const char* model;
  Precision precision;
  double gb_per_second;  ///< of the link
  const char* tuning = "full";
  std::int64_t accumulate = 1, ranks = 1, replicas = 1;
};

constexpr std::array cases = {
    Case{"gpt2", Precision::Fp32, 26},
    Case{"gpt2", Precision::AmpBf16, 450},
    Case{"gpt2", Precision::Bf16, 26, "full", 3},
    Case{"bert-base", Precision::Bf16, 4},
    Case{"swin-t", Precision::Fp32, 26},
    Case{"t5-base", Precision::Fp32, 60},
    Case{"llama-7b", Precision::Bf16, 26, "lora:r=8,targets=q,v"},
    Case{"gpt2", Precision::Bf16, 26, "full", 1, 4},
    Case{"gpt2", Precision::Bf16, 26, "full", 1, 1, 8},
};

// Where the host is behind, launching the copies takes it some time; where ranks exchange something
// on streams of their own, what runs beside what is another question.
TEST(FilledLink, NobodyWaits) {
  for (const Case& c : cases) {
    StepOptions options{.batch = 8, .precision = c.precision, .tuning = parse_tuning(c.tuning)};
    options.accumulate.count = c.accumulate;
    options.mesh[Axis::Tensor] = c.ranks;
    options.mesh[Axis::Data] = c.replicas;
    if (c.replicas > 1) options.shard = parse_sharding("fsdp2");
    const auto trace =
        std::make_shared<const Trace>(build_rank_trace(find_model(c.model), options));
    Device device = find_device("a100-80gb");
    device.host_link_bytes_per_second = c.gb_per_second * 1e9;
    const Planner planner(trace, device, {});
    std::size_t offloading = 0;
    for (std::size_t i = 0; i <= 8; ++i) {
      const std::size_t point = i * (planner.size() - 1) / 8;
      const PlannedStep kept = planner.step_at(point);
      std::vector<TensorId> may_leave;
      for (const Planner::Part& part : planner.parts_at(point))
        for (const TensorId storage : that_may_leave(*trace, *part.stage, part.entry->plan))
          may_leave.push_back(storage);
      constexpr Bytes host{std::int64_t{1} << 30};
      for (const Bytes most : {unlimited, host}) {
        PlannedStep filled = kept;
        filled.plan = fill_link(kept, may_leave, device, most);
        ASSERT_THAT(check(*trace, filled.plan), IsEmpty()) << c.model << " " << i;
        const Schedule schedule = lower(filled);
        ASSERT_THAT(validate(*trace, schedule), IsEmpty()) << c.model << " " << i;
        ASSERT_LE(host_copies_peak(schedule), most) << c.model << " " << i;
        ASSERT_LE(rounded_live_peak(schedule), rounded_live_peak(lower(kept)));
        offloading += offloads(filled.plan);
        if (!options.mesh.is_one()) continue;
        const auto alone = simulate(*trace, lower(kept), device).duration.count();
        const auto beside = simulate(*trace, schedule, device).duration.count();
        const std::int64_t copies = count_steps<CopyOut>(schedule) + count_steps<CopyIn>(schedule);
        ASSERT_LE(beside, alone + copies * device.host_launch.count()) << c.model << " " << i;
      }
    }
    EXPECT_GT(offloading, 8u) << c.model;
  }
}

}  // namespace
}  // namespace tidemark::filled_link_test
