// A real window with OpenGL, on a display of its own: it shows what the stage draws without one.
#include "gui/window.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/files.h"
#include "tests/gui/robot.h"
#include "tests/gui/test_display.h"

#define STBI_ONLY_PNG
#include <stb_image.h>

namespace tidemark::gui::window_test {
namespace {

constexpr PixelSize size{800, 600};
constexpr const char* hands =
    "1 mouse 500 200\n2 wheel 4\n5 mouse 450 70\n8 down left\n10 up left\n14 mouse 600 90\n";

void ask(ViewModel& model, ViewState& view) {
  model.ask(vit({"pareprop"}), view);
  model.levers().wait();
}

Image drawn_without_window() {
  Stage stage(1);
  ViewModel model;
  ViewState view;
  ask(model, view);
  const Script script(hands, "hands");
  Input input;
  for (int frame = 0; frame < script.frames(); ++frame) {
    script.play(frame, input);
    stage.frame(model, view, input, size);
    input.end_frame();
  }
  return stage.picture();
}

Image drawn_in_window() {
  const std::string path = testing::TempDir() + "window.png";
  ViewModel model;
  ViewState view;
  ask(model, view);
  run_window(model, view, {size, 1.0F, Script(hands, "hands"), path});
  Image image;
  int channels = 0;
  unsigned char* data = stbi_load(path.c_str(), &image.width, &image.height, &channels, 4);
  EXPECT_TRUE(data) << path;
  if (!data) return image;
  image.pixels.resize(static_cast<std::size_t>(image.width * image.height));
  std::memcpy(image.pixels.data(), data, image.pixels.size() * 4);
  stbi_image_free(data);
  return image;
}

// The two rasterizers may differ at edges; a wrong picture differs everywhere.
void expect_alike(const Image& a, const Image& b) {
  ASSERT_EQ(a.width, b.width);
  ASSERT_EQ(a.height, b.height);
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i)
    for (int shift = 0; shift < 24; shift += 8)
      if (std::abs(static_cast<int>(a.pixels[i] >> shift & 255U) -
                   static_cast<int>(b.pixels[i] >> shift & 255U)) > 32) {
        ++different;
        break;
      }
  EXPECT_LT(static_cast<double>(different), 0.01 * static_cast<double>(a.pixels.size()));
}

TEST(Window, ShowsWhatTheStageDraws) {
  if (has_display()) return expect_alike(drawn_in_window(), drawn_without_window());
  if (const char* reason = run_with_display("Window.ShowsWhatTheStageDraws"))
    GTEST_SKIP() << reason;
}

// A driver that was reset or updated leaves a context that draws nothing, without an error.
void lose_the_context() {
  ViewModel model;
  ViewState view;
  ask(model, view);
  int frames = 0;
  const auto status = [&frames] { return ++frames < 3 ? 0U : 0x8253U; };  // GL_GUILTY_CONTEXT_RESET
  try {
    run_window(model, view, {size, 1.0F, Script(hands, "hands"), "", status});
    FAIL();
  } catch (const NoDisplay& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("driver was reset"));
    EXPECT_EQ(frames, 3);  // the first frame that shows it is the last
  }
}

TEST(Window, ALostContextIsOneLineAndTheEnd) {
  if (has_display()) return lose_the_context();
  if (const char* reason = run_with_display("Window.ALostContextIsOneLineAndTheEnd"))
    GTEST_SKIP() << reason;
}

// Nobody touches the window for a second: what is drawn is drawn once. The driver is asked about
// its context after each frame, which counts them.
void leave_it_alone() {
  ViewModel model;
  ViewState view;
  ask(model, view);
  int frames = 0;
  std::atomic<bool> is_over = false;
  std::jthread clock([&is_over] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // until it has settled
    std::this_thread::sleep_for(std::chrono::milliseconds(2000));
    is_over = true;
    wake_window();
  });
  int before = 0;
  const auto status = [&] {
    if (is_over) view.wants_to_close = true;
    if (!is_over) before = frames;
    ++frames;
    return 0U;
  };
  run_window(model, view, {.size = size, .scale = 1.0F, .reset_status = status});
  EXPECT_LT(before, 12);  // it was 8 a second
}

TEST(Window, DrawsNothingWhileNothingChanges) {
  if (has_display()) return leave_it_alone();
  if (const char* reason = run_with_display("Window.DrawsNothingWhileNothingChanges"))
    GTEST_SKIP() << reason;
}

TEST(Window, WithoutADisplaySaysSo) {
  ::unsetenv("DISPLAY");
  ::unsetenv("WAYLAND_DISPLAY");
  ViewModel model;
  ViewState view;
  try {
    run_window(model, view, {});
    FAIL();
  } catch (const NoDisplay& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("DISPLAY"));
    EXPECT_THAT(error.what(), testing::HasSubstr("--screenshot"));
  }
}

}  // namespace
}  // namespace tidemark::gui::window_test
