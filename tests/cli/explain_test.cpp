// Explanations list who makes the peak, draw its curve, and give reasons and facts about items.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/explanation.h"
#include "analysis/item_facts.h"
#include "analysis/recording/predicted_recording.h"
#include "tests/cli/program.h"
#include "traces/presets.h"

namespace tidemark::cli::explain_test {
namespace {

using Json = nlohmann::ordered_json;

Scenario scenario_about(std::string_view model, std::string_view strategy) {
  Scenario scenario;
  scenario.model = find_model(model);
  scenario.step.batch = 4;
  scenario.device = find_device("a100-80gb");
  scenario.strategies = {parse_strategy(strategy)};
  return scenario;
}

/// What the largest buffer of the category that is of several weights holds.
std::string shared_on_ranks(std::string_view shard, std::string_view framework, Category category) {
  Scenario scenario = scenario_about("gpt2", "vanilla");
  scenario.step.precision = Precision::Bf16;
  scenario.step.master_weights = true;
  scenario.step.framework = framework;
  scenario.step.mesh[Axis::Data] = 2;
  scenario.step.shard = parse_sharding(shard);
  const Explanation explanation = explain(scenario);
  for (const AliveBuffer& buffer : explanation.alive)
    if (buffer.category == category && !buffer.shared.empty()) return buffer.shared;
  return "";
}

// The name of one weight stands for what is of all of them; a dummy is of its weight alone.
TEST(ExplainedRanks, TellBuffersOfManyWeightsFromThoseOfOne) {
  EXPECT_EQ(shared_on_ranks("megatron", "megatron", Category::Gradient), "main gradients");
  EXPECT_EQ(shared_on_ranks("zero3", "transformers-4.57", Category::Gradient), "gradients");
  EXPECT_EQ(shared_on_ranks("zero3", "transformers-4.57", Category::Communication), "a buffer");
  EXPECT_EQ(shared_on_ranks("ddp", "transformers-4.57", Category::Communication), "a buffer");
  EXPECT_EQ(shared_on_ranks("ddp", "transformers-4.57", Category::Gradient), "");
}

class Explanations : public testing::TestWithParam<const char*> {};

TEST_P(Explanations, ListExactlyWhoMakesThePeak) {
  for (const char* model : {"vit-ti-16", "swin-t", "gpt2"}) {
    const Explanation explanation = explain(scenario_about(model, GetParam()));
    ASSERT_TRUE(explanation.report().applies) << model;
    Bytes sum;
    for (const AliveBuffer& buffer : explanation.alive) sum += buffer.size;
    EXPECT_EQ(sum, explanation.report().live_peak) << model;
  }
}

TEST_P(Explanations, DrawACurveWhoseTopIsThePeak) {
  const Explanation explanation = explain(scenario_about("vit-ti-16", GetParam()));
  for (const std::size_t columns : {1U, 7U, 72U}) {
    const auto curve =
        live_curve(explanation.evaluation.schedule, explanation.evaluation.timeline, columns);
    EXPECT_EQ(curve.size(), columns);
    EXPECT_EQ(*std::ranges::max_element(curve), explanation.report().live_peak);
  }
}

TEST_P(Explanations, GiveAReasonForEachDecision) {
  const Explanation explanation = explain(scenario_about("vit-ti-16", GetParam()));
  EXPECT_FALSE(explanation.decisions.empty());
  for (const DecisionGroup& group : explanation.decisions) {
    EXPECT_FALSE(group.reason.empty());
    EXPECT_GT(group.tensors, 0);
    EXPECT_GT(group.bytes, Bytes{0});
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Explanations,
                         testing::Values("vanilla", "checkpoint", "mesa", "lowmemorybp"));

// While it waits for the other stage nothing runs, in the step's time and in the picture's.
TEST(ExplanationOfAStage, IsOnTheClockOfItsPipeline) {
  Scenario scenario = scenario_about("gpt2", "vanilla");
  scenario.step.mesh = parse_mesh("pp=2");
  scenario.step.accumulate = {2};
  scenario.step.rank = RankClass{0};
  const Explanation explanation = explain(scenario);
  const Timeline& timeline = explanation.evaluation.timeline;
  EXPECT_EQ(timeline.duration, explanation.report().step);
  Nanoseconds pauses{}, end{};
  for (const TimedRun& run : timeline.runs) {
    pauses += std::max(Nanoseconds{}, run.begin - end);
    end = std::max(end, run.end);
  }
  EXPECT_GT(explanation.report().bubble, timeline.duration / 5);
  EXPECT_GE(pauses, explanation.report().bubble);
  const std::vector<Recording> pages = recordings_of(explanation.comparison);
  ASSERT_EQ(pages.size(), 1u);
  EXPECT_EQ(pages.front().timeline.duration, explanation.report().step);
}

// Two buffers of 3 and 5 bytes beside 10 persistent ones; the step lasts 100 ns:
//   [0, 60) the first lives, [20, 100) the second
TEST(LiveCurve, ShowsTheMostOfEachPart) {
  Schedule schedule;
  schedule.buffers = {{.size = {10}, .persistent = true}, {.size = {3}}, {.size = {5}}};
  Timeline timeline;
  timeline.duration = Nanoseconds(100);
  timeline.baseline[0] = {10};
  timeline.memory = {{Nanoseconds(0), BufferId{1}, true},
                     {Nanoseconds(20), BufferId{2}, true},
                     {Nanoseconds(60), BufferId{1}, false},
                     {Nanoseconds(100), BufferId{2}, false}};
  const std::vector<Bytes> curve = live_curve(schedule, timeline, 5);
  EXPECT_EQ(curve, (std::vector<Bytes>{{13}, {18}, {18}, {18}, {15}}));
  EXPECT_EQ(live_curve(schedule, timeline, 1), (std::vector<Bytes>{{18}}));
}

TEST(LiveCurve, OfAStepWithoutEventsIsFlat) {
  Timeline timeline;
  timeline.baseline[0] = {7};
  EXPECT_EQ(live_curve(Schedule(), timeline, 3), (std::vector<Bytes>{{7}, {7}, {7}}));
}

TEST(ItemFacts, OfACheckpointedTensorTellItsTwoLives) {
  const Scenario scenario = scenario_about("vit-ti-16", "checkpoint");
  const Explanation explanation = explain(scenario);
  const ItemFacts facts = find_item(explanation.evaluation, scenario.device, "blocks.3.mlp.gelu");
  ASSERT_TRUE(facts.op && facts.tensor);
  EXPECT_EQ(facts.op->kind, OpKind::Gelu);
  ASSERT_EQ(facts.op->runs.size(), 3u);  // forward, again, backward
  EXPECT_EQ(facts.op->runs[1].task, Task::Recompute);
  EXPECT_EQ(facts.tensor->action, Action::Recompute);
  EXPECT_EQ(facts.tensor->recovery, "blocks.3.norm1 to blocks.3.add2");
  ASSERT_EQ(facts.tensor->holders.size(), 1u);
  EXPECT_EQ(facts.tensor->holders[0].op, "blocks.3.mlp.fc2");
  std::size_t values = 0;
  for (const Life& life : facts.tensor->lives) {
    EXPECT_LT(life.begin, life.end);
    values += life.role == Role::Value ? 1 : 0;
  }
  EXPECT_EQ(values, 2u);
}

TEST(ItemFacts, OfAParameterSayThatItIsAlwaysThere) {
  const Scenario scenario = scenario_about("vit-ti-16", "vanilla");
  const ItemFacts facts =
      find_item(explain(scenario).evaluation, scenario.device, "blocks.3.mlp.fc1.weight");
  EXPECT_FALSE(facts.op);
  ASSERT_TRUE(facts.tensor);
  EXPECT_EQ(facts.tensor->producer, "");
  EXPECT_TRUE(facts.tensor->lives.at(0).persistent);
}

TEST(ItemFacts, OfAViewNameTheMemoryItIsPartOf) {
  const Scenario scenario = scenario_about("vit-ti-16", "vanilla");
  const ItemFacts facts =
      find_item(explain(scenario).evaluation, scenario.device, "blocks.3.attn.merge");
  ASSERT_TRUE(facts.tensor);
  EXPECT_EQ(facts.tensor->storage, "blocks.3.attn.flash");
}

TEST(Explain, AnswersAboutItemsInJson) {
  const Outcome outcome =
      tidemark("explain vit-ti-16 --strategy checkpoint blocks.3.mlp.gelu --format json");
  const Json json = Json::parse(outcome.output);
  EXPECT_EQ(json["tensor"]["action"], "recompute");
  EXPECT_EQ(json["op"]["kind"], "gelu");
  EXPECT_EQ(json["op"]["runs"].size(), 3u);
}

TEST(Explain, SaysWhichItemsAStrategyThatDoesNotApplyHas) {
  const Outcome outcome = tidemark("explain vit-ti-16 --strategy reversible+mesa loss");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("reversible+mesa does not apply"), std::string::npos);
}

TEST(Explain, AnnouncesWhatItDoesNotList) {
  EXPECT_NE(tidemark("explain vit-ti-16 --top 3").output.find("… and "), std::string::npos);
  EXPECT_EQ(tidemark("explain vit-ti-16 --top 100000").output.find("… and "), std::string::npos);
}

// reference/torchvision_saved_fp32.json: what PyTorch 1.13.1 keeps for one image.
TEST(Explain, SumsTheSavedTensorsOfTorchvision) {
  const Outcome outcome =
      tidemark("explain vit-b-16 --framework torch-1.13 --attention math --saved");
  EXPECT_NE(outcome.output.find("140405300 B when each storage counts once"), std::string::npos)
      << outcome.output;
}

}  // namespace
}  // namespace tidemark::cli::explain_test
