// Whatever is decided about tensors, and however ranks share parameters: the judges accept it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/arena.h"
#include "simulator/graph/differentiate.h"
#include "simulator/judge/validate.h"
#include "simulator/place/place.h"
#include "tests/simulator/parallel/ranks.h"
#include "tests/simulator/random_step.h"
#include "tests/support/all_strategies.h"

namespace tidemark::any_sharding_property_test {
namespace {

using testing::IsEmpty;

constexpr std::array shardings = {"ddp",
                                  "ddp:bucket-view",
                                  "fsdp2",
                                  "fsdp2:no-reshard",
                                  "megatron",
                                  "megatron:whole-states,overlap",
                                  "megatron:narrow-gradients",
                                  "megatron:overlap,no-fusion",
                                  "fsdp1",
                                  "fsdp1:no-reshard",
                                  "zero1:reduce-bucket=2000",
                                  "zero1:overlap",
                                  "zero2",
                                  "zero2:overlap,reduce-bucket=2000",
                                  "zero3:persistence=50,reduce-bucket=2000,prefetch=1000",
                                  "zero3:no-overlap,persistence=0,reuse=500"};

void expect_sound(const Trace& trace, const Plan& plan, const std::string& what) {
  const JointGraph graph = differentiate(trace, plan);
  ASSERT_THAT(validate(graph), IsEmpty()) << what;
  const Schedule schedule = place(graph, placement_of(trace, plan));
  ASSERT_THAT(validate(trace, schedule), IsEmpty()) << what;
  EXPECT_THAT(validate(schedule, plan_arena(schedule)), IsEmpty()) << what;
}

TEST(AnySharding, WithEveryStrategyIsSound) {
  for (const Model& model : {small_gpt2(), small_llama(), small_swin(), small_bert()})
    for (const char* sharding : shardings)
      for (const char* strategy : all_strategies) {
        StepOptions options = of_ranks(3, sharding);
        options.precision = Precision::AmpBf16;
        const PlannedStep step = plan_step(
            std::make_shared<const Trace>(build_trace(model, options)), parse_strategy(strategy));
        expect_sound(*step.trace, step.plan,
                     fmt::format("{} {} {}", model.name, sharding, strategy));
      }
}

TEST(AnySharding, WhereProductsAddGradientsIsSoundWithEveryStrategy) {
  for (const Model& model : {small_gpt2(), small_llama(), small_bert()})
    for (const char* strategy : all_strategies) {
      StepOptions options = of_bf16(3, "megatron:overlap", 2);
      options.framework = "megatron";
      const PlannedStep step = plan_step(std::make_shared<const Trace>(build_trace(model, options)),
                                         parse_strategy(strategy));
      expect_sound(*step.trace, step.plan, fmt::format("{} {}", model.name, strategy));
    }
}

TEST(AnySharding, OfRandomStepsIsSound) {
  int accepted = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    Trace trace = random_trace(dice);
    trace.step.mesh[Axis::Data] = 2 + static_cast<std::int64_t>(dice.below(4));
    trace.step.shard = parse_sharding(shardings[dice.below(shardings.size())]);
    trace.step.accumulate = {1 + static_cast<std::int64_t>(dice.below(3))};
    trace.step.ddp = false;
    if (dice.below(2) == 0) trace.step.framework = "megatron";
    const Plan plan = random_plan(trace, dice);
    if (!sharing_defect(trace.step).empty() || !check(trace, plan).empty()) continue;
    ++accepted;
    const std::string shard = to_text(*trace.step.shard);
    expect_sound(trace, plan, fmt::format("seed {} {}", seed, shard));
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(accepted, 75);
}

bool adds_to_main(const Schedule& schedule, const tidemark::Run& run) {
  return run.task == Task::Accumulate && schedule[schedule.writes(run)[0]].role == Role::Temporary;
}

// The judge is judged: no exchange may be left out.
TEST(AnySharding, WithoutOneOfItsExchangesIsNoticed) {
  for (const char* sharding : shardings) {
    const StepOptions options = of_ranks(3, sharding, {.accumulate = {2}});
    const Schedule sound = schedule_of(options);
    for (std::size_t i = 0; i < sound.steps.size(); ++i) {
      const auto* run = std::get_if<tidemark::Run>(&sound.steps[i]);
      if (!run ||
          (run->task != Task::Pack && !is_collective(run->task) && !adds_to_main(sound, *run)))
        continue;
      Schedule damaged = sound;
      damaged.steps.erase(damaged.steps.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(validate(trace_of(options), damaged).empty())
          << sharding << " without " << to_string(run->task) << " at " << i;
    }
  }
}

}  // namespace
}  // namespace tidemark::any_sharding_property_test
