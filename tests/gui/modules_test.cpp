// Modules by the names of ops, and the track that shows them over the lanes.
#include "gui/indexes/modules.h"

#include <gmock/gmock.h>

#include "tests/gui/robot.h"
#include "traces/trace_builder.h"

namespace tidemark::gui::modules_test {
namespace {

using testing::ElementsAre;

std::vector<std::string> names_of(const Modules& modules) {
  std::vector<std::string> names;
  for (const Module& module : modules.all) names.push_back(module.name);
  return names;
}

// As models of transformers call them, with and without a prefix that says nothing.
Trace small(const std::string& prefix) {
  TraceBuilder b("small", "toy", {.precision = Precision::Fp32, .optimizer = Optimizer::Sgd});
  TensorId x = b.input("x", {256}, DType::Float32);
  x = b.gelu(prefix + "embed.act", x);
  for (int i = 0; i < 2; ++i) {
    const std::string block = fmt::format("{}layers.{}", prefix, i);
    b.begin_block(block, x, -1);
    x = b.gelu(block + ".mlp.up.act", x);
    x = b.gelu(block + ".mlp.act", x);
    x = b.gelu(block + ".add", x);
    b.end_block();
  }
  x = b.gelu(prefix + "norm", x);
  return b.finish(b.gelu("head.act", x));
}

TEST(Modules, AreBlocksAndWhatIsOutsideOfThem) {
  EXPECT_THAT(names_of(outer_modules(small(""))),
              ElementsAre("embed", "layers.0", "layers.1", "norm", "head"));
  EXPECT_THAT(names_of(outer_modules(small("model."))),
              ElementsAre("model.embed", "model.layers.0", "model.layers.1", "model.norm", "head"));
}

TEST(Modules, OneStepInAreTheirParts) {
  EXPECT_THAT(names_of(inner_modules(small(""))),
              ElementsAre("embed.act", "layers.0.mlp", "layers.0.add", "layers.1.mlp",
                          "layers.1.add", "norm", "head.act"));
}

class ModuleTrack : public testing::Test {
 protected:
  void SetUp() override { robot_.ask(vit({"vanilla"})); }
  float row() const { return robot_.view.facts.modules + 8; }
  // The middle of the stretch of a block in the forward phase.
  float x_of_block(std::int32_t block) const {
    const TrackIndex& track = robot_.shown().module_track();
    for (std::size_t i = 0; i < track.size(); ++i)
      if (robot_.shown().modules().all[track.item_of(i)].block == block)
        return std::floor(
            robot_.x_of(static_cast<double>(track.begin_of(i) + track.end_of(i)) / 2));
    return -1;
  }
  Robot robot_;
};

TEST_F(ModuleTrack, EveryBlockRunsForwardAndBackward) {
  const TrackIndex& track = robot_.shown().module_track();
  std::vector<int> times(12);
  for (std::size_t i = 0; i < track.size(); ++i)
    if (const auto block = robot_.shown().modules().all[track.item_of(i)].block; block >= 0)
      ++times[static_cast<std::size_t>(block)];
  EXPECT_THAT(times, testing::Each(2));
}

TEST_F(ModuleTrack, AClickSelectsABlockAndEscapeLetsItGo) {
  robot_.click(x_of_block(5), row());
  EXPECT_EQ(robot_.view.selection, Selection{.block = 5});
  robot_.press(Key::Escape);
  EXPECT_TRUE(robot_.view.selection.is_empty());
}

TEST_F(ModuleTrack, ZoomedInItShowsWhatIsInABlock) {
  robot_.move(x_of_block(5), row());
  robot_.turn(12);
  robot_.click(x_of_block(5), row());
  EXPECT_EQ(robot_.view.selection, Selection{.block = 5}) << "parts of a block select it, too";
}

}  // namespace
}  // namespace tidemark::gui::modules_test
