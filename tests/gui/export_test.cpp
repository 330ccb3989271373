// Files that the window writes: their names, and what is in them.
#include "gui/export.h"

#include <gmock/gmock.h>
#include <stb_image.h>

#include <filesystem>

#include "base/files.h"
#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"
#include "tests/support/own_folder.h"

namespace tidemark::gui::export_test {
namespace {

class Exports : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  const std::string folder_ = own_folder();
};

TEST_F(Exports, NamesSayModelStrategyAndBatch) {
  const auto made = predict(vit({"checkpoint:every=2+mesa"}, 16));
  const std::string stem = file_stem(made.front().opened->recording);
  EXPECT_THAT(stem, testing::HasSubstr("checkpoint-every-2+mesa"));
  EXPECT_THAT(stem, testing::EndsWith("-batch-16"));
  Recording odd = synthetic(4);
  odd.strategy = "a/b: \"c\"*?";
  EXPECT_EQ(file_stem(odd).find_first_of("/\\:*?\"<>| "), std::string::npos) << file_stem(odd);
}

TEST_F(Exports, AFileThatIsThereStays) {
  for (const std::string ending : {".png", ".svg", ".chrome.json", ".timeline.json.zst"}) {
    const std::string wanted = path("step" + ending);
    EXPECT_EQ(free_path(wanted), wanted);
    write_file(wanted, "old");
    EXPECT_EQ(free_path(wanted), path("step-2" + ending));
    write_file(path("step-2" + ending), "old");
    EXPECT_EQ(free_path(wanted), path("step-3" + ending));
  }
  std::filesystem::create_directories(path("v1.2"));
  write_file(path("v1.2/step"), "old");
  EXPECT_EQ(free_path(path("v1.2/step")), path("v1.2/step-2"));
  write_file(path("v1.2/.step"), "old");  // a point that begins a name ends none
  EXPECT_EQ(free_path(path("v1.2/.step")), path("v1.2/-2.step"));
  EXPECT_EQ(free_path(folder_), folder_ + "-2");  // a folder without an ending, in one with a point
}

TEST_F(Exports, WhatIsWrittenIsTold) {
  Robot robot;
  robot.open(synthetic(4));
  write_file(path("a.svg"), "old");
  robot.view.wants_export = path("a.svg");
  robot.frames(2);
  EXPECT_EQ(robot.view.notice, "wrote " + path("a-2.svg"));
  EXPECT_EQ(read_file(path("a.svg"), FileKind::Settings), "old");
}

Image read_png(const std::string& path) {
  Image image;
  int channels = 0;
  unsigned char* data = stbi_load(path.c_str(), &image.width, &image.height, &channels, 4);
  if (!data) return image;
  const auto* pixels = reinterpret_cast<const std::uint32_t*>(data);
  image.pixels.assign(pixels, pixels + image.width * image.height);
  stbi_image_free(data);
  return image;
}

// Neither the menu that was clicked nor the mouse above it.
TEST_F(Exports, APictureShowsTheStepAlone) {
  Robot robot;
  robot.open(synthetic(4));
  const Image before = robot.stage.picture();
  std::filesystem::current_path(folder_);
  for (float x = 1060; x < 1100 && !robot.view.facts.has_open_list; x += 8) robot.click(x, 16);
  ASSERT_TRUE(robot.view.facts.has_open_list);
  robot.click(robot.input.x + 20, 30);  // the first line of the menu
  robot.frames(2);
  ASSERT_THAT(robot.view.notice, testing::StartsWith("wrote tidemark-"));
  EXPECT_EQ(read_png(robot.view.notice.substr(6)), before);
}

}  // namespace
}  // namespace tidemark::gui::export_test
