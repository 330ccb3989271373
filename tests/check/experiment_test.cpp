// The lists of a check file expand into experiments with defaults, and mistakes name their place.
#include "analysis/check/experiment.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/check/check_example.h"

namespace tidemark::regression::experiment_test {
namespace {

using Texts = std::vector<std::string>;

Texts ids(const std::string& experiments, const std::string& more = "") {
  Texts result;
  for (const Experiment& experiment : check_file(experiments, more).experiments)
    result.push_back(experiment.id);
  return result;
}

/// The defect of one of them, or what is wrong with all.
std::string problem_of(const std::string& experiments) {
  try {
    for (const Experiment& experiment : check_file(experiments).experiments)
      if (!experiment.defect.empty()) return experiment.defect;
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

Experiment only(const std::string& experiment, const std::string& more = "") {
  return check_file(experiment, more).experiments.at(0);
}

TEST(Experiments, AreTheProductOfTheirLists) {
  EXPECT_EQ(ids(R"({"model": "vit-b-16", "batch": [32, 64], "strategies": ["vanilla", "mesa"]})"),
            (Texts{"vit-b-16/b32/vanilla", "vit-b-16/b32/mesa", "vit-b-16/b64/vanilla",
                   "vit-b-16/b64/mesa"}));
}

TEST(Experiments, SweepOverEveryKindOfField) {
  const Texts all = ids(R"({"id": "x", "models": ["gpt2", "bert-base"], "batch": [1, 2],
      "sequence": [64, 128], "precision": ["fp32", "bf16"], "attention": ["math", "flash"],
      "optimizer": ["sgd", "adamw"], "dropout": [0, 0.5], "framework": ["transformers-4.47", "paper"]},
      {"id": "y", "model": "gpt2",
      "ema": [true, false], "ddp": [true, false], "devices": ["t4", "l4"],
      "tuning": ["full", "lora:r=4,targets=q,v"], "alloc_conf": ["", "expandable_segments:True"],
      "budget": ["device", "2GiB"], "strategies": ["vanilla", "checkpoint"]})");
  EXPECT_EQ(all.size(), std::size_t{256 + 128});
  EXPECT_EQ(all.front(), "x/gpt2/b1/s64/fp32/math/sgd/dropout=0/transformers-4.47");
  EXPECT_EQ(all.back(),
            "y/lora:r=4,targets=q,v/ema=false/ddp=false/l4/expandable_segments:True/"
            "2GiB/checkpoint");
}

// A list of `count` numbers from one.
std::string numbers(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += (i == 1 ? "[" : ", ") + std::to_string(i);
  return text + "]";
}

TEST(Experiments, AreAtMostTenThousand) {
  const std::string hundred = numbers(100);
  const std::string entry = R"({"model": "gpt2", "batch": )" + hundred;
  EXPECT_EQ(ids(entry + R"(, "sequence": )" + hundred + "}").size(), 10'000u);
}

TEST(Experiments, OfTooManyCombinationsAreRefusedBeforeTheyAreMade) {
  // 64 million of them: made first, they would fill the memory.
  const std::string list = numbers(400);
  EXPECT_EQ(problem_of(R"({"model": "gpt2", "batch": )" + list + R"(, "sequence": )" + list +
                       R"(, "image": )" + list + "}"),
            "tidemark.json: /experiments/0: makes more than 10000 experiments (400 batch × 400 "
            "sequence × 400 image); list fewer, or split the file");
  EXPECT_EQ(problem_of(R"({"model": "gpt2", "batch": )" + numbers(10'000) +
                       R"(}, {"model": "vit-b-16"})"),
            "tidemark.json: /experiments/1: is one too many: a file has at most 10000 experiments; "
            "split it");
}

TEST(Experiments, WithANameOfTheirOwnShowOnlyWhatTheySweepOver) {
  EXPECT_EQ(ids(R"({"id": "nightly", "model": "vit-b-16", "batch": 8, "strategy": "mesa"})"),
            Texts{"nightly"});
  EXPECT_EQ(ids(R"({"id": "nightly", "model": "vit-b-16", "batch": [8, 16]})"),
            (Texts{"nightly/b8", "nightly/b16"}));
}

TEST(Experiments, AreNamedAfterTheFolderOfTheirConfig) {
  EXPECT_EQ(ids(R"({"model": "models/gpt2/config.json"})"), Texts{"models/gpt2"});
  EXPECT_EQ(ids(R"({"model": "captured/step.trace.json.zst"})"), Texts{"captured/step"});
}

TEST(Experiments, TakeTheDefaultsThatTheyDoNotState) {
  const std::string defaults =
      R"("defaults": {"batch": 8, "precision": "bf16", "device": "t4", "tolerance": {"live": 5}},)";
  const Experiment plain = only(R"({"model": "gpt2"})", defaults);
  EXPECT_EQ(plain.id, "gpt2");  // defaults are no part of the name
  EXPECT_EQ(plain.step.batch, 8);
  EXPECT_EQ(plain.step.precision, Precision::Bf16);
  EXPECT_EQ(plain.device, "t4");
  EXPECT_EQ(plain.tolerances[index(Metric::Live)], (Tolerance{5, 0}));
  const Experiment own =
      only(R"({"model": "gpt2", "batch": 2, "tolerance": {"step": "1%"}})", defaults);
  EXPECT_EQ(own.id, "gpt2/b2");
  EXPECT_EQ(own.step.batch, 2);
  EXPECT_EQ(own.tolerances[index(Metric::Live)], (Tolerance{5, 0}));
  EXPECT_EQ(own.tolerances[index(Metric::Step)], (Tolerance{0, 10'000}));
}

// Either takes the place of the other where the defaults name that.
TEST(Experiments, MayHaveAPlanInPlaceOfAStrategy) {
  const Experiment planned = only(R"({"model": "gpt2", "plan": "plans/mine.plan.json"})",
                                  R"("defaults": {"strategy": "mesa"},)");
  EXPECT_EQ(planned.id, "gpt2/plan:mine");
  EXPECT_EQ(planned.plan, "plans/mine.plan.json");
  EXPECT_EQ(planned.strategy.text, "plan:mine");
  const Experiment named = only(R"({"model": "gpt2", "strategy": "mesa"})",
                                R"("defaults": {"plan": "mine.plan.json"},)");
  EXPECT_EQ(named.id, "gpt2/mesa");
  EXPECT_EQ(named.plan, "");
  EXPECT_EQ(ids(R"({"model": "gpt2", "plans": ["a.plan.json", "b.plan.json.zst"]})"),
            (Texts{"gpt2/plan:a", "gpt2/plan:b"}));
}

TEST(Experiments, CompareEverythingExactlyUnlessTold) {
  const Experiment usual = only(R"({"model": "gpt2"})");
  EXPECT_EQ(usual.checked, (PerMetric<bool>{true, true, true, true, true}));
  EXPECT_EQ(usual.tolerances, PerMetric<Tolerance>{});
  EXPECT_FALSE(usual.must_fit);
  EXPECT_EQ(usual.strategy.text, "vanilla");
  const Experiment some = only(R"({"model": "gpt2", "metrics": ["allocated", "step"],
                                   "tolerance": {"allocated": "1 MiB", "step": 1000}})");
  EXPECT_EQ(some.checked, (PerMetric<bool>{false, false, true, false, true}));
  EXPECT_EQ(some.tolerances[index(Metric::Allocated)], (Tolerance{1 << 20, 0}));
  EXPECT_EQ(some.tolerances[index(Metric::Step)], (Tolerance{1000, 0}));
}

TEST(Experiments, MayCallTheToleranceByItsFormerName) {
  const Experiment former = only(R"({"model": "gpt2", "margin": {"step": 1000}})");
  EXPECT_EQ(former.tolerances[index(Metric::Step)], (Tolerance{1000, 0}));
}

TEST(Experiments, MayHaveABudgetAndAReserve) {
  const Experiment stated = only(R"({"model": "gpt2", "budget": "24GiB", "reserve": "5%"})");
  EXPECT_TRUE(stated.must_fit);
  EXPECT_EQ(stated.budget, (Bytes{std::int64_t{24} << 30}));
  EXPECT_EQ(stated.reserve, (Tolerance{0, 50'000}));
  const Experiment card = only(R"({"model": "gpt2", "budget": "device", "reserve": "1GiB"})");
  EXPECT_TRUE(card.must_fit);
  EXPECT_EQ(card.budget, std::nullopt);
  EXPECT_EQ(card.reserve, (Tolerance{1 << 30, 0}));
}

// The step of a trace file is its own; what the other experiments share does not apply to it.
TEST(Experiments, OfTraceFilesIgnoreTheStepOfTheDefaults) {
  const Experiment traced =
      only(R"({"model": "a.trace.json"})", R"("defaults": {"batch": 8, "device": "t4"},)");
  EXPECT_EQ(traced.step, StepOptions{});
  EXPECT_EQ(traced.device, "t4");
}

TEST(MeasuredExperiments, CompareTheTimeOnlyWithATolerance) {
  EXPECT_FALSE(only(R"({"id": "a", "measured": "r.json"})").checked[index(Metric::Step)]);
  EXPECT_TRUE(only(R"({"id": "a", "measured": "r.json", "tolerance": {"step": "5%"}})")
                  .checked[index(Metric::Step)]);
}

TEST(Experiments, ThatCannotBeReadLeaveTheOthers) {
  const CheckFile file = check_file(
      R"({"model": "gpt2"}, {"id": "two", "model": "gpt2", "batch": 0}, 7, {"model": "bert-base"})");
  ASSERT_EQ(file.experiments.size(), 4u);
  EXPECT_EQ(file.experiments[0].defect, "");
  EXPECT_EQ(file.experiments[1].id, "two");
  EXPECT_NE(file.experiments[1].defect, "");
  EXPECT_EQ(file.experiments[2].id, "/experiments/2");
  EXPECT_NE(file.experiments[2].defect, "");
  EXPECT_EQ(file.experiments[3].id, "bert-base");
}

struct Mistake {
  const char* experiments;
  const char* message;
};

class ExperimentMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(ExperimentMistakes, AreToldWithTheirPlace) {
  const std::string what = problem_of(GetParam().experiments);
  EXPECT_TRUE(what.starts_with("tidemark.json: /experiments")) << what;
  EXPECT_NE(what.find(GetParam().message), std::string::npos) << what;
  EXPECT_EQ(what.find('\n'), std::string::npos) << what;
}

INSTANTIATE_TEST_SUITE_P(
    All, ExperimentMistakes,
    testing::Values(
        Mistake{"", "found no experiments"},
        Mistake{"7", "/experiments/0: found 7; need an object"},
        Mistake{"{}", "/experiments/0: found no 'model'"},
        Mistake{R"({"model_": "gpt2"})", "did you mean 'model'?"},
        Mistake{R"({"model": "gpt2", "batch": 0})", "/experiments/0/batch: found 0; need a whole"},
        Mistake{R"({"model": "gpt2", "batch": "8"})", "found text '8'; need a whole number"},
        Mistake{R"({"model": "gpt2", "batch": []})", "/batch: found an empty list"},
        Mistake{R"({"model": "gpt2", "batch": [8, 8.5]})", "/batch/1: found 8.5"},
        Mistake{R"({"model": "gpt2", "batch": [8, 16, 8]})",
                "/experiments/0/batch/2: found 8 a second time in this list; keep one of them"},
        Mistake{R"({"model": "gpt2", "batch": [8, 8.0]})", "/batch/1: found 8 a second time"},
        Mistake{R"({"model": "gpt2", "strategies": ["mesa", "mesa"]})",
                "/strategies/1: found 'mesa' a second time"},
        Mistake{R"({"model": "gpt2", "ema": [true, false, true]})", "found true a second time"},
        Mistake{R"({"model": "gpt2", "ema": [null, null]})", "/ema/0: found null; need true"},
        Mistake{R"({"model": "gpt2", "precision": "fp61"})",
                "/precision: unknown precision 'fp61'"},
        Mistake{R"({"model": "gpt2", "dropout": 1})", "need a probability below 1"},
        Mistake{R"({"model": "gpt2", "framework": "torch1.13"})", "did you mean 'torch-1.13'?"},
        Mistake{R"({"model": "gpt2", "strategies": ["vanila"]})",
                "/strategies/0: unknown strategy"},
        Mistake{R"({"model": "gpt2", "strategy": "mesa", "strategies": ["mesa"]})",
                "found both 'strategy' and 'strategies'"},
        Mistake{R"({"model": "gpt2", "strategy": "mesa", "plan": "a.plan.json"})",
                "/plan: a plan takes the place of a strategy; keep one of them"},
        Mistake{R"({"model": "gpt2", "plan": ""})", "/plan: found no path"},
        Mistake{R"({"model": "gpt2", "alloc_conf": "max_split:1"})", "/alloc_conf: "},
        Mistake{R"({"model": "gpt2", "budget": "12x"})", "/budget: budget: '12x' is not a size"},
        Mistake{R"({"model": "gpt2", "budget": "24"})", "/budget: budget: '24' has no unit"},
        Mistake{R"({"model": "gpt2", "tolerance": {"live": "24"}})", "tolerance: '24' has no unit"},
        Mistake{R"({"model": "gpt2", "budget": "0"})", "nothing fits in 0 bytes"},
        Mistake{R"({"model": "gpt2", "metrics": ["peak"]})", "/metrics/0: unknown metric 'peak'"},
        Mistake{R"({"model": "gpt2", "tolerance": {"live": "5 %%"}})", "is not a share"},
        Mistake{R"({"model": "gpt2", "tolerance": {"live": -1}})", "/tolerance/live: found -1"},
        Mistake{R"({"model": "gpt2", "tolerance": {"step": "1 ms"}})", "need nanoseconds"},
        Mistake{R"({"model": "gpt2", "margin": {}, "tolerance": {}})",
                "/margin: is the former name of 'tolerance'"},
        Mistake{R"({"model": "gpt2", "id": ""})", "/id: found an empty id"},
        Mistake{R"({"model": "a.trace.json", "batch": 8})", "leave out 'batch'"},
        Mistake{R"({"model": "gpt2", "reserve": "5%"})", "/reserve: is a part of a budget"},
        Mistake{R"({"measured": "r.json"})", "found no 'id'"},
        Mistake{R"({"id": "a", "measured": ""})", "/measured: found no path"},
        Mistake{R"({"id": "a", "measured": "r.json", "batch": [1, 2]})", "leave out the lists"},
        Mistake{R"({"id": "a", "measured": "r.json", "metrics": ["step"]})",
                "never takes the same time twice"},
        Mistake{R"({"model": "gpt2"}, {"model": "gpt2"})",
                "the id 'gpt2' belongs to both /experiments/0 and /experiments/1"}));

TEST(Paths, AreRelativeToTheCheckFile) {
  EXPECT_EQ(resolved("tidemark.json", "models/a.json"), "models/a.json");
  EXPECT_EQ(resolved("ci/tidemark.json", "a.json"), "ci/a.json");
  EXPECT_EQ(resolved("ci/tidemark.json", "../models/gpt2"), "models/gpt2");
  EXPECT_EQ(resolved("ci/tidemark.json", "/abs/a.json"), "/abs/a.json");
  EXPECT_EQ(resolved("ci/tidemark.json", "vit-b-16"), "vit-b-16");  // a name, no path
}

}  // namespace
}  // namespace tidemark::regression::experiment_test
