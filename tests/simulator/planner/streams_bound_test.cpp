// Plans whose recovery runs on a second stream: their bytes, and bounds below whatever such a plan
// may be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/planner/planner.h"
#include "simulator/simulate.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/step_facts.h"
#include "traces/presets.h"

namespace tidemark::streams_bound_test {
namespace {

using testing::IsEmpty;

struct Case {
  const char* model;
  Precision precision;
  const char* tuning = "full";
  std::int64_t accumulate = 1, replicas = 1;
  bool update_in_backward = false;
};

constexpr std::array cases = {Case{"gpt2", Precision::Fp32},
                              Case{"gpt2", Precision::AmpBf16, "full", 3},
                              Case{"bert-base", Precision::Bf16},
                              Case{"vit-b-16", Precision::AmpFp16},
                              Case{"swin-t", Precision::Fp32},
                              Case{"llama-7b", Precision::Bf16, "lora:r=8,targets=q,v"},
                              Case{"gpt2", Precision::Bf16, "full", 1, 1, true},
                              Case{"gpt2", Precision::Bf16, "full", 1, 4}};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.model << " " << to_string(c.precision) << " × " << c.accumulate
             << " dp=" << c.replicas;
}

std::shared_ptr<const Trace> trace_of(const Case& c) {
  StepOptions step{.batch = 4, .precision = c.precision, .tuning = parse_tuning(c.tuning)};
  step.accumulate.count = c.accumulate;
  step.update_in_backward = c.update_in_backward;
  step.mesh[Axis::Data] = c.replicas;
  if (c.replicas > 1) step.shard = parse_sharding("ddp");
  return std::make_shared<const Trace>(build_rank_trace(find_model(c.model), step));
}

const Device& device() {
  static const Device found = find_device("a100-80gb");
  return found;
}

std::int64_t simulated(const Trace& trace, const Schedule& schedule) {
  return simulate(trace, schedule, device()).duration.count();
}

// In issue order a second stream changes nothing but when memory that both know is free again.
TEST(StreamsBound, BytesAreThoseOfOneStream) {
  for (const Case& c : cases) {
    const auto trace = trace_of(c);
    const Planner planner(trace, device(), {});
    for (std::size_t i = 0; i <= 12; ++i) {
      const std::size_t point = i * (planner.size() - 1) / 12;
      Plan plan = planner.plan_at(point);
      recover_beside_gradients(plan);
      ASSERT_THAT(check(*trace, plan), IsEmpty()) << c;
      const Schedule schedule = lower(*trace, plan);
      ASSERT_THAT(validate(*trace, schedule), IsEmpty()) << c;
      ASSERT_GE(rounded_live_peak(schedule), planner[point].bytes) << c << " " << point;
    }
  }
}

TEST(StreamsBound, IsBelowMixturesOfLocalPlans) {
  std::int64_t faster = 0;  // where the device does not wait for the host
  for (const Case& c : cases) {
    const auto trace = trace_of(c);
    const Planner planner(trace, device(), {}, {.overlaps = true});
    Dice dice(5);
    for (int i = 0; i < 30; ++i) {
      std::vector<const LocalPlan*> locals;
      for (const Stage& stage : planner.stages().all)
        locals.push_back(&dice.pick(planner.menu(stage.kind)).plan);
      Plan plan = assembled(*trace, planner.stages(), locals);
      const std::int64_t alone = simulated(*trace, lower(*trace, plan));
      recover_beside_gradients(plan);
      const Schedule schedule = lower(*trace, plan);
      const std::int64_t bound = planner.lower_bound_of_streams(rounded_live_peak(schedule));
      ASSERT_LE(bound, simulated(*trace, schedule)) << c;
      ASSERT_GT(bound, 0) << c;
      faster += simulated(*trace, schedule) < alone;
    }
  }
  EXPECT_GT(faster, 100);
}

TEST(StreamsBound, IsBelowStrategiesOnTwoStreams) {
  for (const Case& c : cases) {
    const auto trace = trace_of(c);
    const Planner planner(trace, device(), {});
    for (const char* text :
         {"vanilla", "checkpoint:blocks", "checkpoint:blocks+overlap", "checkpoint:every=2+overlap",
          "checkpoint:every=4+overlap", "checkpoint:selective+overlap"}) {
      const PlannedStep step = plan_step(trace, parse_strategy(text));
      if (!step.refusal.empty()) continue;
      const Schedule schedule = lower(step);
      const std::int64_t bytes = rounded_live_peak(schedule);
      const std::int64_t joined = planner.lower_bound_of_streams(bytes, 0, true);
      ASSERT_LE(joined, simulated(*trace, schedule)) << c << " " << text;
      ASSERT_LE(joined, planner.lower_bound_of_joined(bytes)) << c << " " << text;
      if (std::string_view(text).find("every") == std::string_view::npos) {
        ASSERT_LE(planner.lower_bound_of_streams(bytes), simulated(*trace, schedule))
            << c << " " << text;
      }
    }
  }
}

// In each resource a point's sum is no more than its plan takes on two streams.
TEST(StreamsBound, SumsOfSharesAreBelowTwoStreams) {
  for (const Case& c : cases) {
    const auto trace = trace_of(c);
    const Planner plain(trace, device(), {}, {.overlaps = true});
    for (const Resource resource : shared_resources) {
      const Planner planner(plain, resource);
      for (std::size_t i = 0; i <= 8; ++i) {
        const std::size_t point = i * (planner.size() - 1) / 8;
        Plan plan = planner.plan_at(point);
        recover_beside_gradients(plan);
        ASSERT_LE(planner[point].time, simulated(*trace, lower(*trace, plan))) << c << " " << point;
      }
    }
  }
}

TEST(StreamsBound, CodesAndOffloadAreWithinIt) {
  const auto trace = trace_of(cases[0]);
  const double link = device().host_link_bytes_per_second * 1e-9;
  const Planner planner(trace, device(), {}, {.bits = {8, 4}, .overlaps = true});
  for (const char* text : {"mesa+checkpoint+overlap", "mesa", "mesa:bits=4",
                           "checkpoint+offload:prefetch=2+overlap", "offload"}) {
    const Schedule schedule = lower(plan_step(trace, parse_strategy(text)));
    const std::int64_t bytes = rounded_live_peak(schedule);
    ASSERT_LE(planner.lower_bound_of_streams(bytes, link), simulated(*trace, schedule)) << text;
  }
}

// Which run is beside which matters: with shares alone the bound is 8.6 % below this plan, where
// products are recovered beside products.
TEST(StreamsBound, KnowsWhatRunsSaveBesideEachOther) {
  const auto trace = trace_of({"llama-7b", Precision::Bf16, "lora:r=8,targets=q,v"});
  const Planner planner(trace, device(), {}, {.overlaps = true});
  const Planner proposing(planner, Resource::Sms);
  const std::int64_t bytes = std::int64_t{26} << 30;
  Plan plan = proposing.plan_at(*proposing.within(bytes));
  recover_beside_gradients(plan);
  const auto time = static_cast<double>(simulated(*trace, lower(*trace, plan)));
  EXPECT_LT(time, 1.065 * static_cast<double>(planner.lower_bound_of_streams(bytes)));
}

}  // namespace
}  // namespace tidemark::streams_bound_test
