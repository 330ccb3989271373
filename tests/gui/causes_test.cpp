// A measured run beside its prediction: how much more or less it needs, and what that is put down
// to, as the window says it.
#include <gmock/gmock.h>

#include "gui/newest_diff.h"
#include "tests/gui/reader.h"

namespace tidemark::gui::causes_test {
namespace {

constexpr Bytes mib{1 << 20};

class Causes : public testing::Test {
 protected:
  void SetUp() override {
    predicted_ = predict(vit({"vanilla"}, 1)).front().opened->recording;
    measured_ = predicted_;
    measured_.source = Source::Measured;
  }
  /// What looking for causes finds: a peak of `recorded`, and one cause of all of the difference.
  static CausesOf found(Bytes recorded) {
    return [recorded](const Evaluation& evaluation, const Device&, const std::string& file) {
      EXPECT_EQ(file, "run.pickle");
      EXPECT_TRUE(evaluation.report.applies);
      beside::Difference difference{.predicted = Bytes{10 * mib.count}, .recorded = recorded};
      const Bytes more = difference.recorded - difference.predicted;
      difference.causes = {{.kind = beside::CauseKind::EarlierSteps,
                            .bytes = more,
                            .blocks = 4,
                            .tensors = {{.tensor = "blocks.0.norm1",
                                         .line = "",
                                         .allocated_by = "model.py:7",
                                         .blocks = 4,
                                         .size = more}}}};
      return difference;
    };
  }
  RecordingDiff diff(Bytes recorded, CausesOf causes_of = {}) const {
    const Predicted how{vit({"vanilla"}, 1).scenario, parse_strategy("vanilla"), "run.pickle",
                        causes_of ? causes_of : found(recorded)};
    return diff_of(predicted_, measured_, how);
  }

  Recording predicted_, measured_;
};

TEST_F(Causes, TheHeadlineSaysHowMuchAndInWhichDirection) {
  EXPECT_EQ(diff(Bytes{12 * mib.count}).headline,
            "measured: 2.00 MiB more than predicted, as PyTorch's allocator counts");
  EXPECT_EQ(diff(Bytes{7 * mib.count}).headline,
            "measured: 3.00 MiB less than predicted, as PyTorch's allocator counts");
  EXPECT_EQ(diff(Bytes{10 * mib.count}).headline,
            "measured: as much as predicted, as PyTorch's allocator counts");
}

TEST_F(Causes, EachHasItsWords) {
  const RecordingDiff made = diff(Bytes{12 * mib.count});
  ASSERT_EQ(made.causes.size(), 1u);
  EXPECT_EQ(made.causes[0].cause.bytes, Bytes{2 * mib.count});
  EXPECT_NE(made.causes[0].text, "");
}

TEST_F(Causes, WhatHoldsNoBlocksIsComparedByItsTensors) {
  const RecordingDiff made =
      diff({}, [](const Evaluation&, const Device&, const std::string&) -> beside::Difference {
        throw InputError("run.pickle: holds no blocks of memory");
      });
  EXPECT_TRUE(made.causes.empty());
  EXPECT_TRUE(made.headline.starts_with("measured, with all workspaces: ")) << made.headline;
}

TEST_F(Causes, OfTwoPredictionsAreNotLookedFor) {
  const Predicted how{vit({"vanilla"}, 1).scenario, parse_strategy("vanilla"), "run.pickle",
                      found(mib)};
  EXPECT_TRUE(diff_of(predicted_, predicted_, how).causes.empty());
}

// A prediction, and a file that was measured; the panel looks for causes and lists them.
TEST_F(Causes, AreListedWithTheirBlocks) {
  Reader robot([this](const std::string&, ReadProgress*) { return measured_; });
  robot.model.causes_of = found(Bytes{12 * mib.count});
  robot.ask(vit({"vanilla"}, 1));
  robot.model.open("run.pickle", Opening::Compared);
  robot.frames(3);
  ASSERT_EQ(robot.view.against, 1u);
  robot.open_tab(Tab::Compare);
  robot.frames(3);
  EXPECT_EQ(robot.view.facts.causes, 1u);
  EXPECT_TRUE(robot.says("measured: 2.00 MiB more than predicted, as PyTorch's allocator counts"));
  robot.click_on("+2.00 MiB  ");
  EXPECT_TRUE(robot.says("2.00 MiB in 4 blocks  blocks.0.norm1  model.py:7"));
}

}  // namespace
}  // namespace tidemark::gui::causes_test
