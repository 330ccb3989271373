// Spread, noise limits and identity are computed right, and the page and the picture show them.
#include "examples/training/noise.h"

#include <gmock/gmock.h>

#include "examples/training/learning_curves.h"
#include "examples/training/page.h"

namespace tidemark::training::noise_test {
namespace {

Trained ended_at(std::string name, const std::vector<double>& held_out) {
  Trained trained{.strategy = std::move(name), .refusal = "", .runs = {}};
  for (const double loss : held_out)
    trained.runs.push_back(
        {.losses = {3, 2, loss}, .held_out_loss = loss, .accuracy = {}, .planned = {}});
  return trained;
}

TEST(Noise, SpreadIsThatOfASample) {
  const Spread of_three = spread(ended_at("vanilla", {1, 2, 3}), Measure::HeldOutLoss);
  EXPECT_EQ(of_three.mean, 2);
  EXPECT_EQ(of_three.deviation, 1);
  EXPECT_EQ(spread(ended_at("vanilla", {5}), Measure::HeldOutLoss).deviation, 0);
}

TEST(Noise, TheFinalLossIsTheMeanOfTheLastTenth) {
  TrainedRun run;
  for (int i = 0; i < 20; ++i) run.losses.push_back(i);
  EXPECT_EQ(measured(run, Measure::FinalLoss), 18.5);
  run.losses = {7};
  EXPECT_EQ(measured(run, Measure::FinalLoss), 7);
}

TEST(Noise, TwoDeviationsAreTheLimit) {
  const Trained vanilla = ended_at("vanilla", {1, 2, 3});
  EXPECT_TRUE(is_within_noise(ended_at("a", {3.9, 3.9}), vanilla, Measure::HeldOutLoss));
  EXPECT_FALSE(is_within_noise(ended_at("b", {4.1, 4.1}), vanilla, Measure::HeldOutLoss));
  EXPECT_FALSE(is_within_noise(ended_at("c", {-0.1, -0.1}), vanilla, Measure::HeldOutLoss));
  EXPECT_DOUBLE_EQ(in_deviations(ended_at("d", {1.5}), vanilla, Measure::HeldOutLoss), -0.5);
}

TEST(Noise, IdenticalMeansEveryLossOfEverySeed) {
  const Trained vanilla = ended_at("vanilla", {1, 2});
  EXPECT_TRUE(is_identical(ended_at("a", {1, 2}), vanilla));
  EXPECT_FALSE(is_identical(ended_at("b", {1, 2.0000001}), vanilla));
  EXPECT_TRUE(is_identical(ended_at("c", {1}), vanilla));  // of those that both have
  EXPECT_FALSE(is_identical(ended_at("d", {2}), vanilla));
  EXPECT_FALSE(is_identical(ended_at("refused", {}), vanilla));
}

TEST(TrainingPage, HasARowPerStrategyAndSaysWhatIsNotWithinNoise) {
  Trained refused{.strategy = "refused", .refusal = "no blocks", .runs = {}};
  const Outcome outcome{
      .task = text_task(corpus_of(std::string(8000, 'a'))),
      .seeds = 1,
      .strategies = {ended_at("vanilla", {1, 2, 3}), ended_at("same", {1, 2, 3}),
                     ended_at("near", {1, 2, 4}), ended_at("far", {7, 8, 9}), refused}};
  EXPECT_FALSE(all_within_noise(outcome));
  const std::string text = page(std::span(&outcome, 1), 300);
  EXPECT_THAT(text, testing::HasSubstr("1 seeds, 3 for vanilla."));
  EXPECT_THAT(text, testing::HasSubstr("| vanilla | 0 B | 2.000 ± 1.000 |  |"));
  EXPECT_THAT(text, testing::ContainsRegex("same \\|.*same bits as vanilla \\|"));
  EXPECT_THAT(text, testing::ContainsRegex("near \\|.*\\+0.3 σ \\|"));
  EXPECT_THAT(text, testing::ContainsRegex("far \\|.*\\+6.0 σ, \\*\\*not within noise\\*\\* \\|"));
  EXPECT_THAT(text, testing::HasSubstr("| refused | does not apply: no blocks |"));
}

TEST(TrainingPicture, ShowsEveryStrategyThatApplies) {
  Trained refused{.strategy = "refused", .refusal = "no blocks", .runs = {}};
  const std::vector<Trained> all = {ended_at("vanilla", {1, 2}), ended_at("other", {1, 2.5}),
                                    refused};
  const std::string svg = learning_curves("How it went", all);
  for (const std::string_view part : {"How it went", ">vanilla<", ">other<", "other: 2.5000"})
    EXPECT_THAT(svg, testing::HasSubstr(part));
  for (const std::string_view part : {"refused", "nan", "inf"})
    EXPECT_THAT(svg, testing::Not(testing::HasSubstr(part)));
}

}  // namespace
}  // namespace tidemark::training::noise_test
