// What people see, as pictures that somebody looked at. UPDATE_GOLDEN=1 writes them anew; look at
// them before they are committed.
#include <stb_image.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "tests/analysis/recording/recorded.h"
#include "tests/gui/robot.h"

namespace tidemark::gui::pictures_golden_test {
namespace {

// Fonts may differ in the last bit of a coverage from one processor to the next.
constexpr int tolerance = 12;
constexpr double most_that_differ = 0.001;  // of all pixels

std::string golden(const std::string& name) {
  return std::string(TIDEMARK_TESTS_DIR) + "/golden/gui/" + name + ".png";
}

Image read_png(const std::string& path) {
  Image image;
  int channels = 0;
  unsigned char* data = stbi_load(path.c_str(), &image.width, &image.height, &channels, 4);
  if (!data) return image;
  image.pixels.resize(static_cast<std::size_t>(image.width) *
                      static_cast<std::size_t>(image.height));
  std::memcpy(image.pixels.data(), data, image.pixels.size() * 4);
  stbi_image_free(data);
  return image;
}

bool differs(std::uint32_t a, std::uint32_t b) {
  for (int shift = 0; shift < 24; shift += 8) {
    const int left = static_cast<int>(a >> shift & 255U),
              right = static_cast<int>(b >> shift & 255U);
    if (std::abs(left - right) > tolerance) return true;
  }
  return false;
}

class Pictures : public testing::Test {
 protected:
  static void compare(Robot& robot, const std::string& name) {
    if (!robot.stage.has_font()) GTEST_SKIP() << "fonts-dejavu-core is not installed";
    robot.frames(3);
    const Image drawn = robot.stage.picture();
    if (std::getenv("UPDATE_GOLDEN")) {
      std::filesystem::create_directories(std::filesystem::path(golden(name)).parent_path());
      write_file(golden(name), to_png(drawn));
    }
    const Image expected = read_png(golden(name));
    ASSERT_EQ(drawn.width, expected.width) << golden(name);
    ASSERT_EQ(drawn.height, expected.height);
    std::size_t different = 0;
    for (std::size_t i = 0; i < drawn.pixels.size(); ++i)
      different += differs(drawn.pixels[i], expected.pixels[i]) ? 1 : 0;
    const std::string seen = testing::TempDir() + name + ".png";
    if (different > 0) write_file(seen, to_png(drawn));
    EXPECT_LE(static_cast<double>(different),
              most_that_differ * static_cast<double>(drawn.pixels.size()))
        << different << " pixels differ from " << golden(name) << "; drawn is " << seen;
  }

  // Two streams, on a device whose figures never change.
  static Recording step() { return recorded(small_trace(), "pareprop"); }
  // As measured recordings are: the arena is not known. The tensors are too small for its grain.
  static Recording step_without_arena() {
    Recording recording = step();
    recording.planned = {};
    recording.offsets.clear();
    recording.capacity = Bytes{4000};
    return recording;
  }
};

TEST_F(Pictures, OfAStep) {
  Robot robot({900, 600});
  robot.open(step_without_arena());
  compare(robot, "step");
}

TEST_F(Pictures, OfASelection) {
  Robot robot({900, 600});
  robot.open(step_without_arena());
  select_run(robot.shown(), RunId{1}, robot.view);
  robot.view.color_by = ColorBy::Task;
  robot.view.wanted_tab = Tab::Icicle;
  robot.view.range = Range{0.2 * robot.shown().end(), 0.6 * robot.shown().end()};
  compare(robot, "selection");
}

TEST_F(Pictures, OfNothing) {
  Robot robot({480, 320});
  compare(robot, "nothing");
}

// The panel of inputs with a budget's slider and the plan's reasons.
TEST_F(Pictures, OfAPlan) {
  Robot robot({1100, 900});
  WhatIf what_if = vit({"vanilla"});
  what_if.planned = PlanChoice{Bytes{std::int64_t{1640} << 20}};
  robot.ask(what_if);
  robot.click(30, robot.view.facts.plan_slider + 22);  // opens the reasons
  robot.move(700, 880);
  compare(robot, "plan");
}

TEST_F(Pictures, AtTwiceTheScale) {
  Robot robot({1200, 900}, 2);
  robot.open(step());
  robot.view.wanted_tab = Tab::Addresses;
  compare(robot, "twice");
}

TEST_F(Pictures, AreTheSameEachTime) {
  const auto draw = [] {
    Robot robot({600, 400});
    robot.open(step());
    return robot.stage.picture();
  };
  EXPECT_EQ(draw(), draw());
}

}  // namespace
}  // namespace tidemark::gui::pictures_golden_test
