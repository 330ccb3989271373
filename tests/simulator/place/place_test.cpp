// A graph placed with its regions on the compute stream is the plan's own step on one stream: what
// `hidden` compares with is the same for predictions, which place, and replays, which plan anew.
#include "simulator/place/place.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/recovery_time.h"
#include "simulator/graph/differentiate.h"
#include "simulator/lower.h"
#include "simulator/simulate.h"
#include "simulator/strategies/strategy.h"
#include "tests/support/small_models.h"

namespace tidemark::place_test {
namespace {

// Steps without their streams' numbers, of which there is one.
std::vector<std::string> texts_of(const Schedule& schedule) {
  std::vector<std::string> texts;
  const auto add = [&](std::string_view what, auto id) {
    texts.push_back(fmt::format("{} {}", what, static_cast<std::size_t>(id)));
  };
  for (const Step& step : schedule.steps)
    std::visit(Overload{[&](const Allocate& s) { add("allocate", s.buffer); },
                        [&](const Free& s) { add("free", s.buffer); },
                        [&](const Run& s) { add(to_string(s.task), s.op); },
                        [&](const CopyOut& s) { add("copy out", s.buffer); },
                        [&](const CopyIn& s) { add("copy in", s.buffer); },
                        [&](const Record& s) { add("record", s.event); },
                        [&](const Wait& s) { add("wait", s.event); },
                        [&](const Synchronize& s) { add("synchronize", s.event); }},
               step);
  return texts;
}

struct OneStream {
  PlannedStep step;
  Schedule planned, placed;
};

// Of each family that the strategy applies to.
std::vector<OneStream> on_one_stream_by_both(std::string_view strategy) {
  std::vector<OneStream> found;
  for (const Model& model : small_models()) {
    const auto trace = std::make_shared<const Trace>(build_trace(model, {.batch = 2}));
    const PlannedStep step = plan_step(trace, parse_strategy(strategy));
    if (!step.refusal.empty()) continue;
    found.push_back({step, lower(*step.trace, on_one_stream(step.plan)),
                     place(differentiate(*step.trace, step.plan), {.regions_on_compute = true})});
  }
  EXPECT_GE(found.size(), 3u) << strategy;
  return found;
}

TEST(Place, RegionsOnTheComputeStreamAreTheStepWithoutOverlap) {
  for (const char* strategy :
       {"checkpoint+overlap", "pareprop", "pareprop:released", "mesa+checkpoint+overlap"})
    for (const auto& [step, planned, placed] : on_one_stream_by_both(strategy)) {
      SCOPED_TRACE(step.trace->model + " " + strategy);
      EXPECT_EQ(placed.streams, 1u);
      EXPECT_EQ(placed.buffers, planned.buffers);
      EXPECT_EQ(placed.operands, planned.operands);
      EXPECT_EQ(texts_of(placed), texts_of(planned));
    }
}

// Who reads what was fetched waits for that copy, and not for those that were begun since.
TEST(Place, AFetchIsWaitedForByItself) {
  const Model model = small_models().front();
  const auto trace = std::make_shared<const Trace>(build_trace(model, {.batch = 2}));
  const Schedule schedule = lower(plan_step(trace, parse_strategy("offload")));
  std::size_t fetches = 0;
  for (std::size_t i = 0; i + 1 < schedule.steps.size(); ++i) {
    const auto* copy = std::get_if<CopyIn>(&schedule.steps[i]);
    if (!copy) continue;
    ++fetches;
    const auto* record = std::get_if<Record>(&schedule.steps[i + 1]);
    ASSERT_TRUE(record) << i;
    EXPECT_EQ(record->stream, copy->stream) << i;
  }
  EXPECT_GT(fetches, 0u);
}

// The runs of a step on two streams, one after the other, are those of the step on one.
TEST(Place, AStepTimedAloneIsTheStepOnOneStream) {
  const Device device = find_device("a100-80gb");
  for (const char* strategy : {"checkpoint+overlap", "pareprop", "pareprop:released"})
    for (const auto& [step, planned, placed] : on_one_stream_by_both(strategy)) {
      SCOPED_TRACE(step.trace->model + " " + strategy);
      const CostModel costs(*step.trace, step.derived->needs, device);
      const Schedule overlapped = lower(step);
      const Timeline alone = simulate_alone(costs, overlapped), one = simulate(costs, planned);
      EXPECT_EQ(alone.duration, one.duration);
      EXPECT_EQ(alone.overlap, Nanoseconds{});
      EXPECT_EQ(recovery_time(overlapped, alone), recovery_time(planned, one));
    }
}

// Hoisted recovery comes before the gradients between two stages, which it hides behind: the same
// runs in another order.
TEST(Place, HoistedRegionsOnTheComputeStreamTakeTheSameTime) {
  const Device device = find_device("a100-80gb");
  for (const auto& [step, planned, placed] : on_one_stream_by_both("pareprop:hoist")) {
    SCOPED_TRACE(step.trace->model);
    const Timeline a = simulate(*step.trace, planned, device);
    const Timeline b = simulate(*step.trace, placed, device);
    EXPECT_EQ(a.duration, b.duration);
    EXPECT_EQ(recovery_time(planned, a), recovery_time(placed, b));
  }
}

}  // namespace
}  // namespace tidemark::place_test
