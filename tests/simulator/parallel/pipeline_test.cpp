// Pipeline stages: what is in flight, who waits how long, and that each stage is a step like any
// other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "simulator/arena.h"
#include "simulator/graph/differentiate.h"
#include "simulator/judge/validate.h"
#include "simulator/parallel/pipeline_clock.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/place/place.h"
#include "tests/simulator/parallel/ranks.h"
#include "tests/support/all_strategies.h"
#include "traces/presets.h"

namespace tidemark::pipeline_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const PipelineSchedule one_each = {}, all_first = {PipelineSchedule::Kind::GPipe};

char letter_of(StageWork work) { return "FBW"[static_cast<std::size_t>(work)]; }

std::string text_of(const std::vector<StageAction>& actions) {
  std::string text;
  for (const StageAction& action : actions)
    text += fmt::format("{}{} ", letter_of(action.work), action.micro_batch);
  return text;
}

TEST(StageActions, AreThoseOfThePapers) {
  EXPECT_EQ(text_of(actions_of(one_each, 3, 0, 4)), "F0 F1 F2 B0 F3 B1 B2 B3 ");
  EXPECT_EQ(text_of(actions_of(one_each, 3, 1, 4)), "F0 F1 B0 F2 B1 F3 B2 B3 ");
  EXPECT_EQ(text_of(actions_of(one_each, 3, 2, 4)), "F0 B0 F1 B1 F2 B2 F3 B3 ");
  EXPECT_EQ(text_of(actions_of(all_first, 3, 1, 2)), "F0 F1 B0 B1 ");
}

std::string with_chunks(const std::vector<StageAction>& actions) {
  std::string text;
  for (const StageAction& action : actions)
    text += fmt::format("{}{}{} ", letter_of(action.work), action.micro_batch,
                        static_cast<char>('a' + action.chunk));
  return text;
}

// Two stages of two chunks, a and b: 2·(stages − stage − 1) + stages forwards ahead.
TEST(StageActions, InterleaveChunksInGroupsOfStages) {
  const PipelineSchedule two = parse_schedule("interleaved:v=2");
  EXPECT_EQ(with_chunks(actions_of(two, 2, 1, 4)),
            "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a ");
  EXPECT_EQ(with_chunks(actions_of(two, 2, 0, 2)), "F0a F1a F0b F1b B0b B1b B0a B1a ");
}

// Three micro-batches per group: 2·(stages − stage − 1) + 3 forwards ahead, and a last group of
// what is left.
TEST(StageActions, InterleaveChunksInGroupsAsAsked) {
  const PipelineSchedule three = parse_schedule("interleaved:v=2,group=3");
  EXPECT_EQ(to_text(three), "interleaved:v=2,group=3");
  EXPECT_EQ(with_chunks(actions_of(three, 2, 1, 5)),
            "F0a F1a F2a F0b B0b F1b B1b F2b B2b F3a B0a F4a B1a F3b B2a F4b B3b B4b B3a B4a ");
  for (const std::int64_t stage : {0, 1})
    EXPECT_EQ(actions_of(parse_schedule("interleaved:v=2,group=2"), 2, stage, 6),
              actions_of(parse_schedule("interleaved:v=2"), 2, stage, 6));
}

// With one chunk each stage's order is that of 1F1B, but for what is ahead.
TEST(StageActions, OfEachChunkComeInOrder) {
  for (const std::int64_t stage : {0, 1, 2}) {
    std::map<std::pair<StageWork, std::int64_t>, std::int64_t> next;
    for (const StageAction& action : actions_of(parse_schedule("interleaved:v=3"), 3, stage, 7)) {
      std::int64_t& expected = next[{action.work, action.chunk}];
      EXPECT_EQ(action.micro_batch, expected++) << stage;
    }
    EXPECT_EQ(next.size(), 6u);
    for (const auto& [chunk, done] : next) EXPECT_EQ(done, 7) << stage;
  }
}

// Of equal stages (p − 1)(F + B), whatever the schedule; each stage waits so long.
TEST(PipelineClock, HasTheBubbleOfTheFormula) {
  for (const std::int64_t p : {1, 2, 3, 5, 8})
    for (const std::int64_t m : {1, 2, 8, 13})
      for (const auto& schedule : {one_each, all_first}) {
        const std::vector<ChunkTimes> stages(static_cast<std::size_t>(p),
                                             {Nanoseconds{7}, Nanoseconds{15}});
        const PipelineTimes times = run_pipeline(schedule, stages, m);
        EXPECT_EQ(times.total.count(), (m + p - 1) * 22) << p << ' ' << m;
        for (const Nanoseconds wait : times.waits) EXPECT_EQ(wait.count(), (p - 1) * 22);
      }
}

// v chunks make the bubble v times smaller: (p − 1)(F + B)/v.
TEST(PipelineClock, HasTheBubbleOfTheFormulaInterleaved) {
  for (const std::int64_t v : {2, 3})
    for (const std::int64_t p : {2, 4}) {
      const std::vector<ChunkTimes> chunks(static_cast<std::size_t>(p * v),
                                           {Nanoseconds{6 / v * 7}, Nanoseconds{6 / v * 15}});
      const auto schedule = parse_schedule(fmt::format("interleaved:v={}", v));
      const PipelineTimes times = run_pipeline(schedule, chunks, 3 * p);
      EXPECT_EQ(times.total.count(), 6 * 22 * 3 * p + 6 * 22 * (p - 1) / v) << p << ' ' << v;
    }
}

// A chunk that takes longer than the others is waited for: two stages of two chunks, the last of
// which (with the head, say) takes 10 where others take 1. Both ways of it follow the first
// micro-batch's way through three chunks, and all of its work is done one after the other.
TEST(PipelineClock, KnowsHowLongEachChunkTakes) {
  const ChunkTimes usual{Nanoseconds{1}, Nanoseconds{1}}, last{Nanoseconds{10}, Nanoseconds{10}};
  const std::vector<ChunkTimes> chunks = {usual, usual, usual, last};
  const PipelineTimes times = run_pipeline(parse_schedule("interleaved:v=2"), chunks, 2);
  EXPECT_EQ(times.total.count(), 3 + 2 * 20 + 3);
  EXPECT_EQ(times.waits[1].count(), times.total.count() - 2 * (10 + 10 + 1 + 1));
}

// The slowest stage works all the time but for what fills and drains the pipeline.
TEST(PipelineClock, GoesAtThePaceOfTheSlowestStage) {
  const std::vector<ChunkTimes> stages = {{Nanoseconds{5}, Nanoseconds{10}},
                                          {Nanoseconds{8}, Nanoseconds{16}}};
  EXPECT_EQ(run_pipeline(one_each, stages, 10).total.count(), 5 + 10 * 24 + 10);
}

StepOptions of_stages(std::int64_t stages, std::int64_t micro_batches, std::int64_t stage = 0) {
  StepOptions options{.batch = 2, .accumulate = {micro_batches}, .precision = Precision::Bf16};
  options.mesh[Axis::Pipeline] = stages;
  options.rank = RankClass{stage};
  return options;
}

Bytes peak_of(const Model& model, const StepOptions& options) {
  return live_peak(lower(planned(build_rank_trace(model, options), "vanilla")));
}

// Each stage further in front keeps the activations of one micro-batch more; what they are is what
// one more micro-batch costs GPipe.
TEST(Stages, KeepAsManyMicroBatchesAsStagesFollow) {
  const auto gpipe = [](std::int64_t micro_batches) {
    StepOptions options = of_stages(4, micro_batches, 1);
    options.schedule = all_first;
    return peak_of(small_gpt2(8), options);
  };
  const Bytes one_more = gpipe(7) - gpipe(6);
  EXPECT_GT(one_more, Bytes{0});
  EXPECT_EQ(peak_of(small_gpt2(8), of_stages(4, 6, 1)) - peak_of(small_gpt2(8), of_stages(4, 6, 2)),
            one_more);
}

TEST(Stages, KeepNoMoreOfMoreMicroBatches) {
  EXPECT_EQ(peak_of(small_llama(4), of_stages(2, 8)), peak_of(small_llama(4), of_stages(2, 4)));
}

TEST(Stages, HaveTheModelAmongThem) {
  std::int64_t together = 0;
  for (std::int64_t stage = 0; stage < 3; ++stage)
    together += parameters_of(build_rank_trace(small_llama(3), of_stages(3, 1, stage)));
  EXPECT_EQ(together, parameters_of(build_trace(small_llama(3), {})));
}

TEST(Stages, OfOneChangeNothing) {
  const StepOptions alone{.batch = 2};
  EXPECT_EQ(build_rank_trace(small_gpt2(), alone), build_trace(small_gpt2(), alone));
}

std::string refusal(const Model& model, const StepOptions& options) {
  try {
    build_rank_trace(model, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Stages, AreRefusedWithTheNearestMesh) {
  EXPECT_THAT(
      refusal(small_gpt2(6), of_stages(4, 2)),
      HasSubstr("6 blocks cannot be dealt out evenly over 4 stages (nearest: --mesh pp=3;"));
  EXPECT_THAT(refusal(small_gpt2(4), of_stages(2, 2, 2)), HasSubstr("the last is pp1"));
  EXPECT_THAT(
      refusal(small_t5(), of_stages(2, 2)),
      HasSubstr("--mesh: pp: all blocks of a decoder read what its encoder makes, which stages do "
                "not send on (take pp=1)"));
  EXPECT_THAT(refusal(find_model("deberta-v3-base"), of_stages(2, 2)),
              HasSubstr("--mesh: pp: blocks read relative positions, which another stage makes and "
                        "does not send on (take pp=1)"));
}

void expect_sound(const Model& model, const StepOptions& options, const char* strategy) {
  const auto trace = std::make_shared<const Trace>(build_rank_trace(model, options));
  const std::string what = fmt::format("{} {} {} {}", model.name, strategy, to_text(options.mesh),
                                       to_text(*options.rank));
  ASSERT_THAT(check(*trace), IsEmpty()) << what;
  const PlannedStep step = plan_step(trace, parse_strategy(strategy));
  const JointGraph graph = differentiate(*step.trace, step.plan);
  ASSERT_THAT(validate(graph), IsEmpty()) << what;
  const Schedule schedule = place(graph, placement_of(*step.trace, step.plan));
  ASSERT_THAT(validate(*step.trace, schedule), IsEmpty()) << what;
  EXPECT_THAT(validate(schedule, plan_arena(schedule)), IsEmpty()) << what;
}

TEST(Stages, WithEveryStrategyAreSound) {
  for (const Model& model : {small_gpt2(4), small_llama(4), small_bert(4)})
    for (const char* strategy : all_strategies)
      for (const std::int64_t stage : {0, 1, 3}) {
        StepOptions options = of_stages(4, 3, stage);
        options.mesh[Axis::Data] = 2;
        options.mesh[Axis::Tensor] = 2;
        options.sequence_parallel = stage == 1;
        expect_sound(model, options, strategy);
        if (testing::Test::HasFatalFailure()) return;
      }
}

StepOptions interleaved(std::int64_t stages, std::string_view schedule, std::int64_t stage) {
  StepOptions options = of_stages(stages, 4, stage);
  options.schedule = parse_schedule(schedule);
  return options;
}

// Megatron-LM's rule, and enough: the clock of any other comes to its end.
TEST(Chunks, ComeInGroupsOfAtLeastAsManyAsThereAreStages) {
  StepOptions options = interleaved(2, "interleaved:v=2", 0);
  options.accumulate = {5};
  EXPECT_THAT(
      refusal(small_llama(4), options),
      HasSubstr("5 micro-batches in groups of 2 leave 1 for the last, where 2 stages need as "
                "many (take --accumulate 4, or interleaved:v=2,group=5)"));
  options.schedule = parse_schedule("interleaved:v=2,group=5");
  EXPECT_EQ(refusal(small_llama(4), options), "");
  options.schedule = parse_schedule("interleaved:v=2,group=1");
  EXPECT_THAT(refusal(small_llama(4), options),
              HasSubstr("group=1: 2 stages take groups of 2 micro-batches or more"));
  const std::vector<ChunkTimes> chunks(12, ChunkTimes{Nanoseconds{1}, Nanoseconds{2}});
  for (std::int64_t group = 4; group < 9; ++group)
    for (std::int64_t m = 1; m < 20; ++m) {
      if (m > group && m % group != 0 && m % group < 4) continue;
      const auto schedule = parse_schedule(fmt::format("interleaved:v=3,group={}", group));
      EXPECT_GE(run_pipeline(schedule, chunks, m).total, Nanoseconds{9 * m}) << group << " " << m;
    }
}

TEST(Chunks, HaveTheModelAmongThem) {
  std::int64_t together = 0;
  for (std::int64_t stage = 0; stage < 2; ++stage)
    together +=
        parameters_of(build_rank_trace(small_llama(4), interleaved(2, "interleaved:v=2", stage)));
  EXPECT_EQ(together, parameters_of(build_trace(small_llama(4), {})));
}

TEST(Chunks, WithEveryStrategyAreSound) {
  for (const Model& model : {small_gpt2(4), small_llama(4)})
    for (const char* strategy : all_strategies)
      for (const char* schedule :
           {"interleaved:v=2", "interleaved:v=2,blocks=0-2-2-0", "interleaved:v=2,group=4"})
        for (const std::int64_t stage : {0, 1}) {
          expect_sound(model, interleaved(2, schedule, stage), strategy);
          if (testing::Test::HasFatalFailure()) return;
        }
}

TEST(Stages, MayHaveAsManyBlocksAsIsSaid) {
  const auto parameters = [](const char* schedule, std::int64_t stage) {
    return parameters_of(build_rank_trace(small_llama(4), interleaved(2, schedule, stage)));
  };
  const std::int64_t block = parameters("1f1b:blocks=3-1", 0) - parameters("1f1b:blocks=2-2", 0);
  EXPECT_GT(block, 0);
  EXPECT_EQ(parameters("1f1b:blocks=2-2", 1) - parameters("1f1b:blocks=3-1", 1), block);
  EXPECT_EQ(parameters("1f1b", 0), parameters("1f1b:blocks=2-2", 0));
  EXPECT_THAT(refusal(small_llama(4), interleaved(2, "1f1b:blocks=3-2", 0)),
              HasSubstr("the step has 4 blocks and 2 chunks"));
}

// The first stage of interleaved ones keeps 2(p − 1) + (v − 1)p + 1 chunks, in whole: more than
// 1F1B's p micro-batches of v chunks.
TEST(Chunks, OfTheFirstStageKeepMoreThanStagesDo) {
  EXPECT_GT(peak_of(small_gpt2(8), interleaved(2, "interleaved:v=4", 0)),
            peak_of(small_gpt2(8), interleaved(2, "1f1b", 0)));
}

// The judge is judged: no run of a stage may be left out.
TEST(Stages, WithoutOneOfTheirRunsAreNoticed) {
  const Trace trace = build_rank_trace(small_llama(2), of_stages(2, 3));
  const Schedule sound = lower(planned(trace, "vanilla"));
  ASSERT_THAT(validate(trace, sound), IsEmpty());
  for (std::size_t i = 0; i < sound.steps.size(); ++i) {
    if (!std::holds_alternative<tidemark::Run>(sound.steps[i])) continue;
    Schedule damaged = sound;
    damaged.steps.erase(damaged.steps.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(validate(trace, damaged).empty()) << i;
  }
}

}  // namespace
}  // namespace tidemark::pipeline_test
