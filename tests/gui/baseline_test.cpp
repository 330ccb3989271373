// A check file in the window: its experiments are listed, those that moved first, and one is
// opened.
#include "gui/baseline.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/files.h"
#include "tests/gui/robot.h"
#include "tests/support/own_folder.h"

namespace tidemark::gui::baseline_test {
namespace {

constexpr const char* experiments = R"({
  "format": "tidemark-check",
  "version": 1,
  "experiments": [
    {"model": "vit-ti-16", "batch": 2, "strategy": "vanilla"},
    {"model": "vit-ti-16", "batch": 4, "strategy": "checkpoint"}
  ]
})";

class ABaseline : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    write_file(path_, experiments);
    regression::update_check_file(path_, "1");
  }
  // As if the second had needed half a GiB less when the file was written.
  void move_the_second() {
    std::string text = read_file(path_, FileKind::Check);
    const std::size_t at = text.rfind("\"allocated\": ");
    ASSERT_NE(at, text.npos);
    const std::size_t end = text.find_first_of(",\n}", at);
    write_file(path_, text.replace(at, end - at, "\"allocated\": 1048576"));
  }

  std::string folder_ = own_folder();
  std::string path_ = folder_ + "/tidemark.json";
  Robot robot_;
};

TEST_F(ABaseline, IsKnownByItsFirstLines) {
  EXPECT_TRUE(is_check_file(path_));
  write_file(folder_ + "/config.json", R"({"model_type": "gpt2"})");
  EXPECT_FALSE(is_check_file(folder_ + "/config.json"));
  EXPECT_FALSE(is_check_file(folder_ + "/missing.json"));
}

TEST_F(ABaseline, ListsWhatMovedFirstAndOpensIt) {
  move_the_second();
  robot_.input.drops = {path_};
  robot_.frames(4);
  const auto baseline = robot_.model.baseline();
  ASSERT_TRUE(baseline);
  EXPECT_EQ(baseline->problem, "");
  EXPECT_EQ(robot_.view.facts.experiments, 2u);
  const auto& verdicts = baseline->report.experiments;
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(moved_text(verdicts[0]), "as expected");
  EXPECT_THAT(moved_text(verdicts[1]), testing::EndsWith("allocated"));
  robot_.click(200, robot_.view.facts.first_experiment + 5);
  robot_.frames(3);
  ASSERT_TRUE(robot_.model.what_if());
  EXPECT_EQ(robot_.model.what_if()->scenario.step.batch, 4);
  EXPECT_EQ(robot_.model.what_if()->strategies.front().text, "checkpoint");
}

TEST_F(ABaseline, ThatCannotBeReadSaysWhy) {
  write_file(path_, R"({"experiments": 3})");
  robot_.model.open_baseline(path_);
  robot_.frames(2);
  EXPECT_THAT(robot_.model.baseline()->problem, testing::HasSubstr("tidemark.json"));
}

}  // namespace
}  // namespace tidemark::gui::baseline_test
