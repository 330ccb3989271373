// Bounds of plans whose tensors wait in the host's memory: below whatever such a plan may be, on
// slow links and on fast ones, and not far below.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/graph/offloaded_values.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/step_facts.h"
#include "traces/presets.h"

namespace tidemark::offload_bound_test {
namespace {

using testing::IsEmpty;

constexpr std::int64_t unlimited = std::int64_t{1} << 50;

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

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.model << " " << to_string(c.precision) << " × " << c.accumulate << " at "
             << c.gb_per_second << " GB/s tp=" << c.ranks << " dp=" << c.replicas;
}

std::shared_ptr<const Trace> trace_of(const Case& c) {
  StepOptions step{.batch = 8, .precision = c.precision, .tuning = parse_tuning(c.tuning)};
  step.accumulate.count = c.accumulate;
  step.mesh[Axis::Tensor] = c.ranks;
  step.mesh[Axis::Data] = c.replicas;
  if (c.replicas > 1) step.shard = parse_sharding("fsdp2");
  return std::make_shared<const Trace>(build_rank_trace(find_model(c.model), step));
}

Device device_of(const Case& c) {
  Device device = find_device("a100-80gb");
  device.host_link_bytes_per_second = c.gb_per_second * 1e9;
  return device;
}

// Some of what local plans keep waits in the host's memory, from any moment to any other.
void offload_some(const Planner& planner, Dice& dice, Plan& plan) {
  const Trace& trace = planner.trace();
  const auto ops = trace.ops.size();
  plan.left_by.resize(plan.decisions.size(), no_op);
  plan.fetched_at.resize(plan.decisions.size(), no_op);
  for (const Stage& stage : planner.stages().all)
    for (std::size_t d = 0; d < stage.decided.size(); ++d) {
      const TensorId storage = stage.decided[d];
      const bool is_kept = plan.decisions[index(storage)].action == Action::Keep;
      if (!is_kept || stage.held[d] || dice.one_in(3)) continue;
      decide(plan, storage, Action::Offload, "by chance");
      if (dice.one_in(8)) continue;  // its copies stand on the compute lane
      const std::size_t last = index(last_forward_use(planner.needs(), storage));
      plan.left_by[index(storage)] =
          static_cast<OpId>(std::min(last + 1 + dice.below(ops - last), ops - 1));
      plan.fetched_at[index(storage)] = static_cast<OpId>(last + dice.below(ops - last));
    }
}

Plan mixed(const Planner& planner, Dice& dice) {
  std::vector<const LocalPlan*> locals;
  for (const Stage& stage : planner.stages().all)
    locals.push_back(&dice.pick(planner.menu(stage.kind)).plan);
  Plan plan = assembled(planner.trace(), planner.stages(), locals);
  if (dice.one_in(2)) offload_some(planner, dice, plan);
  return plan;
}

TEST(OffloadBound, IsBelowWhateverIsOffloaded) {
  std::size_t offloading = 0, bounding = 0;
  for (const Case& c : cases) {
    const auto trace = trace_of(c);
    const Device device = device_of(c);
    const double link = device.host_link_bytes_per_second * 1e-9;
    const Planner exact(trace, device, {}, {.overlaps = true});
    const Planner planner(exact, 1);
    Dice dice(7);
    for (int i = 0; i < 30; ++i) {
      Plan plan = mixed(planner, dice);
      if (dice.one_in(3)) recover_beside_gradients(plan);
      ASSERT_THAT(check(*trace, plan), IsEmpty()) << c;
      const Schedule schedule = lower(*trace, plan);
      ASSERT_THAT(validate(*trace, schedule), IsEmpty()) << c;
      const std::int64_t bytes = rounded_live_peak(schedule);
      const auto time = simulate(*trace, schedule, device).duration.count();
      ASSERT_LE(exact.lower_bound_of_streams(bytes, link), time) << c << " " << i;
      if (plan.overlap) continue;
      ASSERT_LE(exact.lower_bound(bytes, link), time) << c << " " << i;
      offloading += offloads(plan);
      bounding += exact.lower_bound(bytes, link) > exact.lower_bound(unlimited, link);
    }
  }
  EXPECT_GT(offloading, 100u);
  EXPECT_GT(bounding, 50u);
}

// The nearest that plans come to it: those that fill the link.
TEST(OffloadBound, IsBelowPlansThatAreMadeForIt) {
  for (const Case& c : cases) {
    const auto trace = trace_of(c);
    const Device device = device_of(c);
    const double link = device.host_link_bytes_per_second * 1e-9;
    const Planner exact(trace, device, {});
    for (const double share : {1.0, 0.25, 0.0}) {
      const Planner planner(exact, share);
      for (std::size_t i = 0; i <= 8; ++i) {
        const Plan plan = planner.plan_at(i * (planner.size() - 1) / 8);
        const Schedule schedule = lower(*trace, plan);
        const std::int64_t bytes = rounded_live_peak(schedule);
        const std::int64_t bound = exact.lower_bound_of_joined(bytes, link);
        const auto time = simulate(*trace, schedule, device).duration.count();
        ASSERT_LE(bound, time) << c << " " << share << " " << i;
        ASSERT_LE(bound, exact.lower_bound(bytes)) << c << " " << share << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::offload_bound_test
