// Files are read beside the drawing, in the order in which they were asked for.
#include "gui/loading.h"

#include <gmock/gmock.h>

#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui::loading_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Recording step() { return predict(vit({"vanilla"}, 1)).front().opened->recording; }

// A reader that waits until it is told to go on.
class Slow : public testing::Test {
 protected:
  Loading::Reader reader() {
    return
        [gate = gate_.get_future().share()](const std::string& path, ReadProgress*) -> Recording {
          gate.wait();
          if (path == "broken") throw InputError("broken: no such thing");
          return synthetic(path.size());
        };
  }

  std::promise<void> gate_;
};

TEST_F(Slow, WhatIsReadIsToldUntilItIsThere) {
  Loading loading(reader());
  EXPECT_EQ(loading.text(), "");
  loading.add("folder/step.timeline.json", Opening::Shown);
  loading.add("other", Opening::Compared);
  EXPECT_TRUE(loading.is_busy());
  EXPECT_FALSE(loading.next());
  EXPECT_EQ(loading.text(), "reading step.timeline.json, 0 s; 1 more to read");
  gate_.set_value();
  loading.wait();
  const auto first = loading.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->path, "folder/step.timeline.json");
  EXPECT_EQ(first->opening, Opening::Shown);
  loading.wait();
  const auto second = loading.next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->path, "other");
  EXPECT_EQ(second->opening, Opening::Compared);
  EXPECT_FALSE(loading.is_busy());
}

TEST_F(Slow, WhatCannotBeReadSaysWhyAndTheNextIsRead) {
  Loading loading(reader());
  loading.add("broken", Opening::Shown);
  loading.add("whole", Opening::Shown);
  gate_.set_value();
  loading.wait();
  const auto broken = loading.next();
  ASSERT_TRUE(broken);
  EXPECT_FALSE(broken->opened);
  EXPECT_EQ(broken->problem, "broken: no such thing");
  loading.wait();
  EXPECT_TRUE(loading.next()->opened);
}

// The size of a file that is there is told, too: who waits wants to know for how much.
TEST_F(Slow, TheSizeIsTold) {
  const std::string path = testing::TempDir() + "some.timeline.json";
  write_recording(path, step());
  Loading loading(reader());
  loading.add(path, Opening::Shown);
  EXPECT_THAT(loading.text(), StartsWith("reading some.timeline.json ("));
  EXPECT_THAT(loading.text(), HasSubstr("iB), 0 s"));
  gate_.set_value();
  loading.wait();
}

TEST(LoadingText, SaysHowFarTheFileIsRead) {
  std::promise<void> told, gate;
  Loading loading([&](const std::string&, ReadProgress* progress) {
    progress->begin("unpacking");
    progress->reach(0.43);
    told.set_value();
    gate.get_future().wait();
    return synthetic(1);
  });
  loading.add("large", Opening::Shown);
  told.get_future().wait();
  EXPECT_EQ(loading.text(), "reading large, 0 s: unpacking, 43 %");
  gate.set_value();
  loading.wait();
}

// A frame that is drawn while a file is read does not wait for it.
TEST_F(Slow, FramesGoOnWhileAFileIsRead) {
  Robot robot(reader());
  robot.model.open("large", Opening::Shown);
  robot.stage.frame(robot.model, robot.view, robot.input, robot.size);
  EXPECT_TRUE(robot.model.is_empty());
  EXPECT_TRUE(robot.model.loading().is_busy());
  gate_.set_value();
  robot.frames(1);
  EXPECT_EQ(robot.model.recordings().size(), 1u);
  EXPECT_EQ(robot.view.notice, "opened large");
}

TEST(Opening, FilesOfACommandLineAreComparedWithTheFirst) {
  Robot robot;
  const std::string path = testing::TempDir() + "both.timeline.json";
  write_recording(path, step());
  for (int i = 0; i < 3; ++i) robot.model.open(path, Opening::Compared);
  robot.frames(4);
  ASSERT_EQ(robot.model.recordings().size(), 3u);
  EXPECT_EQ(robot.view.shown, 0u);
  EXPECT_EQ(robot.view.against, 1u);
  EXPECT_EQ(robot.view.notice, "");
}

}  // namespace
}  // namespace tidemark::gui::loading_test
