// Synthetic ids, masks and tables are what their models mean, and parameters follow key and seed.
#include "profiler/initial_values.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>
#include <set>

#include "base/error.h"
#include "profiler/meant_values.h"
#include "tests/support/small_models.h"

namespace tidemark::profiler::initial_values_test {
namespace {

using testing::ElementsAre;

TensorId find(const Trace& trace, std::string_view name) {
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (trace.tensors[t].name == name) return static_cast<TensorId>(t);
  ADD_FAILURE() << "no tensor " << name;
  return TensorId{0};
}

std::vector<double> input(const Model& model, std::string_view name, StepOptions step = {}) {
  step.batch = 2;
  const Trace trace = build_trace(model, step);
  return synthetic_input(trace, find(trace, name), 1);
}

TEST(SyntheticInput, IdsAndTargetsAreInRange) {
  const auto ids = input(small_gpt2(), "input_ids"), targets = input(small_vit(), "targets");
  EXPECT_THAT(ids, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(61))));
  EXPECT_THAT(targets, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(10))));
  EXPECT_GT(std::set(ids.begin(), ids.end()).size(), 10u);
}

TEST(SyntheticInput, PositionsCountFromWhereTheTableBegins) {
  EXPECT_EQ(input(small_gpt2(), "position_ids", {.sequence = 3}), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(input(small_roberta(), "position_ids", {.sequence = 3}),
            (std::vector<double>{2, 3, 4, 2, 3, 4}));
}

// Where the framework's rules do not say that models make their masks.
StepOptions with_given_mask(std::int64_t tokens) {
  return {.sequence = tokens, .attention = Attention::Math, .framework = "torch-1.13"};
}

TEST(SyntheticInput, ASquareMaskHidesTheFuture) {
  const auto mask = input(small_llama(), "attention_mask", with_given_mask(3));
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(mask[i]<-1e30, i % 3> i / 3) << i;
}

// Two learned keys stand before those of three tokens, which all see both.
TEST(SyntheticInput, AWideMaskHidesTheFutureBehindAPrefix) {
  StepOptions step = with_given_mask(3);
  step.tuning = parse_tuning("prefix:tokens=2");
  const auto mask = input(small_llama(), "attention_mask", step);
  ASSERT_EQ(mask.size(), 15u);
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(mask[i]<-1e30, i % 5> i / 5 + 2) << i;
  EXPECT_EQ(input(small_gpt2(), "position_ids", step), (std::vector<double>{2, 3, 4}));
}

TEST(SyntheticInput, RotaryTablesTurnPairsByTheirFrequency) {
  const auto cosine = input(small_llama(), "rope.cos"), sine = input(small_llama(), "rope.sin");
  EXPECT_EQ(cosine[0], 1);
  EXPECT_NEAR(cosine[8], std::cos(1.0), 1e-12);                          // token 1, pair 0
  EXPECT_NEAR(sine[8 + 5], std::sin(std::pow(10000, -2.0 / 8)), 1e-12);  // its second half
}

// Cohere's tables hold each number twice, beside each other; those that layers spread, and gpt-oss'
// once.
TEST(SyntheticInput, RotaryTablesLieInColumnsAsTheModelReadsThem) {
  constexpr std::int64_t width = 8;
  Trace trace = build_trace(small_llama(), {.batch = 1, .sequence = 3});
  const auto values = [&](fill::WaveColumns columns, std::int64_t count) {
    const TensorId id = find(trace, "rope.cos");
    Tensor& table = trace.tensors[index(id)];
    table.shape = {3, count};
    std::get<fill::RotaryTable>(trace.fills[index(table.fill)]).columns = columns;
    return synthetic_input(trace, id, 1);
  };
  const double slow = std::cos(std::pow(10000, -2.0 / width));  // token 1, pair 1
  EXPECT_NEAR(values(fill::WaveColumns::Neighbours, width)[width + 2], slow, 1e-12);
  EXPECT_NEAR(values(fill::WaveColumns::Neighbours, width)[width + 3], slow, 1e-12);
  EXPECT_NEAR(values(fill::WaveColumns::Once, width / 2)[width / 2 + 1], slow, 1e-12);
}

// A window of 2 × 2: (query, key) differ by −1 to 1 in both directions, 3 × 3 table rows.
TEST(SyntheticInput, WindowPlacesShareATableRowIfTheyDifferAlike) {
  const Model model = small_model(
      "swin",
      SwinConfig{.image = 8, .patch = 2, .width = 8, .depths = {2}, .heads = {1}, .window = 2});
  const auto index = input(model, "stages.0.blocks.0.attn.relative_position_index");
  EXPECT_THAT(index, ElementsAre(4, 3, 1, 0, 5, 4, 2, 1, 7, 6, 4, 3, 8, 7, 5, 4));
}

// Windows of 2 × 2 on a grid of 4 × 4, shifted by one: the first sees no seam, the last both.
TEST(SyntheticInput, ShiftedWindowsAreMaskedAtTheSeam) {
  const Model model = small_model(
      "swin",
      SwinConfig{.image = 8, .patch = 2, .width = 8, .depths = {2}, .heads = {1}, .window = 2});
  const auto mask = input(model, "stages.0.blocks.1.attn.window_mask");
  ASSERT_EQ(mask.size(), 4u * 16);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(mask[i], 0);
    EXPECT_EQ(mask[48 + i], i % 5 == 0 ? 0 : -100);
  }
}

TEST(SyntheticInput, AMaskHidesWhatLiesBehindTheWindow) {
  Model model = small_llama();
  std::get<DecoderConfig>(model.config).sliding_window = 2;
  const auto mask = input(model, "attention_mask", with_given_mask(4));
  for (std::size_t q = 0; q < 4; ++q)
    for (std::size_t k = 0; k < 4; ++k)
      EXPECT_EQ(mask[4 * q + k] == 0, k <= q && k + 2 > q) << q << " " << k;
}

TEST(SyntheticInput, ClassesOfAHeadAreBelowItsLabels) {
  const auto labels = input(small_bert(), "labels", {.head = Head::SequenceClassification});
  EXPECT_THAT(labels, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(2))));
  const auto starts =
      input(small_bert(), "start_positions", {.sequence = 8, .head = Head::QuestionAnswering});
  EXPECT_THAT(starts, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(8))));
}

TEST(SyntheticInput, PositionsBeyondTheTableAreRefused) {
  Trace trace = build_trace(small_gpt2(), {.sequence = 3});
  const TensorId places = find(trace, "position_ids");
  trace.fills[index(trace[places].fill)] = fill::Positions{14};  // 14, 15, 16 of 16 rows
  EXPECT_THROW(synthetic_input(trace, places, 1), InputError);
}

// By hand: theta^(−2i/d) of a head of 8 is 1, 1/10, 1/100, 1/1000.
TEST(RotaryFrequencies, OfEachKindOfStretch) {
  const auto frequencies = [](const Rotary& rotary, std::int64_t tokens = 64) {
    return rotary_frequencies(rotary, 8, tokens);
  };
  const auto near = [](double value) { return testing::DoubleNear(value, 1e-12); };
  EXPECT_THAT(frequencies({}), ElementsAre(near(1), near(0.1), near(0.01), near(0.001)));
  EXPECT_THAT(frequencies({.scaling = RotaryScaling::Linear, .factor = 4}),
              ElementsAre(near(0.25), near(0.025), near(0.0025), near(0.00025)));
  // Within the original positions nothing is stretched; with twice as many the base grows by
  // (2·2 − 1)^(8/6) = 3^(4/3).
  const Rotary dynamic{.scaling = RotaryScaling::Dynamic, .factor = 2, .original_positions = 64};
  EXPECT_EQ(frequencies(dynamic), frequencies({}));
  EXPECT_THAT(frequencies(dynamic, 128)[3],
              near(std::pow(10000 * std::pow(3.0, 4.0 / 3), -6.0 / 8)));
  // 2π·100 original positions: the pairs turn 100, 10, 1 and 0.1 times. Above 4 they stay, below 1
  // they are divided by 8; at 1, the lower bound, too.
  const auto original = static_cast<std::int64_t>(std::llround(200 * std::numbers::pi));
  const auto llama =
      frequencies({.scaling = RotaryScaling::Llama3, .factor = 8, .original_positions = original});
  EXPECT_EQ(llama[0], 1);
  EXPECT_THAT(llama[1], near(0.1));
  EXPECT_NEAR(llama[2], 0.01 / 8, 1e-5);
  EXPECT_THAT(llama[3], near(0.001 / 8));
  // yarn: the ramp runs from the pair that turns `high` times, rounded down, to that of `low`,
  // rounded up: log10(100/10) = 1 and log10(100/1) = 2 → pairs 1 to 2.
  const auto yarn = frequencies({.scaling = RotaryScaling::Yarn,
                                 .factor = 8,
                                 .low = 1,
                                 .high = 10,
                                 .original_positions = original});
  EXPECT_EQ(yarn[0], 1);
  EXPECT_THAT(yarn[3], near(0.001 / 8));
}

TEST(SyntheticInput, TheBaseOfTheRotationIsTheConfigs) {
  Model model = small_llama();
  std::get<DecoderConfig>(model.config).rotary = {.theta = 500000};
  EXPECT_NEAR(input(model, "rope.sin")[8 + 5], std::sin(std::pow(500000, -2.0 / 8)), 1e-12);
}

TEST(InitialParameter, FollowsFromKeyAndSeedAlone) {
  const Trace small = build_trace(small_vit(1), {}), deep = build_trace(small_vit(3), {});
  const std::string_view name = "blocks.0.mlp.fc1.weight";
  const auto a = initial_parameter(small, find(small, name), 1);
  EXPECT_EQ(a, initial_parameter(deep, find(deep, name), 1));
  EXPECT_NE(a, initial_parameter(small, find(small, name), 2));
  const double bound = 1 / std::sqrt(32.0);
  EXPECT_THAT(a, testing::Each(testing::AllOf(testing::Ge(-bound), testing::Le(bound))));
  EXPECT_GT(*std::ranges::max_element(a), 0.9 * bound);
}

TEST(InitialParameter, TheFirstOnesAreThoseOfTheWhole) {
  const Trace trace = build_trace(small_gpt2(), {});
  for (const std::string_view name : {"wte", "h.0.mlp.c_fc"}) {
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
      const auto id = static_cast<TensorId>(t);
      if (trace[id].category != Category::Parameter || !trace[id].name.starts_with(name)) continue;
      const std::vector<double> whole = initial_parameter(trace, id, 1);
      const std::vector<double> first = initial_parameter(trace, id, 1, 10);
      ASSERT_EQ(first.size(), std::min<std::size_t>(whole.size(), 10));
      EXPECT_TRUE(std::equal(first.begin(), first.end(), whole.begin())) << trace[id].name;
    }
  }
}

TEST(InitialParameter, NormsBeginNearOneAndBiasesNearZero) {
  const Trace trace = build_trace(small_vit(1), {});
  EXPECT_THAT(initial_parameter(trace, find(trace, "norm.weight"), 1),
              testing::Each(testing::DoubleNear(1, 0.1)));
  EXPECT_THAT(initial_parameter(trace, find(trace, "norm.bias"), 1),
              testing::Each(testing::DoubleNear(0, 0.1)));
}

}  // namespace
}  // namespace tidemark::profiler::initial_values_test
