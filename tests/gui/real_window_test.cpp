// A real window on an X server, at four sizes: pointer, wheel, keys and dropped files come to it
// from another client, as from a person.
#include <gmock/gmock.h>
#include <imgui.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "analysis/recording/recording.h"
#include "gui/window.h"
#include "tests/analysis/recording/recorded.h"
#include "tests/gui/robot.h"
#include "tests/gui/test_display.h"
#include "tests/support/own_folder.h"
// Last: Xlib's macros have names that anybody might use.
#include "tests/gui/x_hands.h"

namespace tidemark::gui::real_window_test {
namespace {

// What the hands do, and what must then be true of what is seen.
struct HandsStep {
  const char* what;
  std::function<void(XHands&)> act;
  std::function<bool()> is_done;
};

// The window asks for the state of its driver after each frame: then it is looked at, and the hands
// go on. One that waits for events that do not come is woken until a minute is over.
class DrivenWindow {
 public:
  DrivenWindow(PixelSize size, float scale) : size_(size), scale_(scale) {
    model.ask(vit({"vanilla"}), view);
    show_all(*model.shown(view), view);
    model.wait();
  }

  ViewModel model;
  ViewState view;

  void run(std::vector<HandsStep> steps) {
    steps_ = std::move(steps);
    std::atomic<bool> is_over = false;
    std::jthread clock([&](const std::stop_token& stop) {
      for (int i = 0; i < 2400 && !stop.stop_requested(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(25));
        wake_window();
      }
      is_over = true;
      if (!stop.stop_requested()) wake_window();
    });
    const auto look = [&] {
      go_on();
      if (is_over) view.wants_to_close = true;
      return 0U;
    };
    last_size = run_window(model, view, {.size = size_, .scale = scale_, .reset_status = look});
    clock.request_stop();
    clock.join();
    EXPECT_EQ(next_, steps_.size()) << "waits for: " << (is_running() ? steps_[next_].what : "");
  }

  PixelSize last_size;

 private:
  bool is_running() const { return next_ < steps_.size(); }

  void go_on() {
    if (!hands_) {
      if (++frames_ < 5) return;  // everything has found its place
      hands_.emplace();
      ASSERT_TRUE(hands_->has_window());
      if (is_running()) steps_[next_].act(*hands_);
      return;
    }
    hands_->give();
    if (!is_running()) return;
    if (!steps_[next_].is_done()) return;
    ++next_;
    if (is_running())
      steps_[next_].act(*hands_);
    else
      view.wants_to_close = true;
  }

  PixelSize size_;
  float scale_;
  std::vector<HandsStep> steps_;
  std::size_t next_ = 0;
  int frames_ = 0;
  std::optional<XHands> hands_;
};

// Names of buttons in X.
constexpr unsigned left = 1, wheel_up = 4;

struct WindowCase {
  PixelSize size;
  float scale;
};

void PrintTo(const WindowCase& one, std::ostream* out) {
  *out << one.size.width << "x" << one.size.height << " at scale " << one.scale;
}

class RealWindow : public testing::TestWithParam<WindowCase> {
 protected:
  // Nothing to be done here: the test runs in a process with a display, or cannot run.
  bool is_elsewhere() {
    if (has_display()) return false;
    if (!XHands::are_possible()) {
      reason_ = "libX11 or libXtst is not installed";
      return true;
    }
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    reason_ = run_with_display(std::string(info->test_suite_name()) + "." + info->name());
    return true;
  }
  const char* reason_ = nullptr;
};

#define RUN_WITH_DISPLAY()                \
  if (is_elsewhere()) {                   \
    if (reason_) GTEST_SKIP() << reason_; \
    return;                               \
  }

TEST_P(RealWindow, DoesWhatPointerAndKeysSay) {
  RUN_WITH_DISPLAY();
  DrivenWindow session(GetParam().size, GetParam().scale);
  ViewState& view = session.view;
  const FrameFacts& facts = view.facts;
  const auto middle = [&] { return std::floor((facts.left + facts.right) / 2); };
  const auto curve = [&] { return std::floor((facts.memory_top + facts.memory_bottom) / 2); };
  const auto moment_at = [&](float x) {
    return view.visible.begin +
           static_cast<double>((x - facts.left) / (facts.right - facts.left)) * view.visible.span();
  };
  // As good as a tenth of a pixel: pixels are floats.
  const auto is_near = [&](double a, double b) {
    return std::abs(a - b) <
           0.1 * view.visible.span() / static_cast<double>(facts.right - facts.left);
  };
  Range before;
  double wanted = 0;
  session.run({
      {"the pointer over the curve",
       [&](XHands& hands) { wanted = moment_at(middle()), hands.move(middle(), curve()); },
       [&] { return view.hover && is_near(*view.hover, wanted); }},
      {"the wheel zooms in", [&](XHands& hands) { before = view.visible, hands.click(wheel_up); },
       [&] { return std::abs(view.visible.span() - 0.8 * before.span()) < 1; }},
      {"F shows all of it again", [](XHands& hands) { hands.press(XK_f); },
       [&] { return view.visible == whole({view.end}); }},
      {"a button goes down", [](XHands& hands) { hands.hold(left); },
       [&] { return view.drag_from.has_value(); }},
      {"a drag makes a range", [&](XHands& hands) { hands.move(middle() + 60, curve()); },
       [&] {
         return view.range && is_near(view.range->end, moment_at(middle() + 60)) &&
                is_near(view.range->begin, moment_at(middle()));
       }},
      {"and ends", [](XHands& hands) { hands.release(left); },
       [&] { return !view.drag_from && view.range; }},
      {"Escape takes it away", [](XHands& hands) { hands.press(XK_Escape); },
       [&] { return !view.range; }},
      {"the pointer over a run", [&](XHands& hands) { hands.move(middle(), facts.lanes + 6); },
       [&] { return view.hover && ImGui::GetIO().MousePos.y < facts.memory_top; }},
      {"a click selects it", [](XHands& hands) { hands.click(left); },
       [&] { return view.selection.run.has_value(); }},
      {"C colors by task", [](XHands& hands) { hands.press(XK_c); },
       [&] { return view.color_by == ColorBy::Task; }},
      {"a question mark, which takes two keys",
       [](XHands& hands) {
         hands.hold_key(XK_Shift_L), hands.press(XK_slash), hands.release_key(XK_Shift_L);
       },
       [&] { return view.shows_help; }},
      {"Escape closes the help", [](XHands& hands) { hands.press(XK_Escape); },
       [&] { return !view.shows_help; }},
      {"a slash searches", [](XHands& hands) { hands.press(XK_slash); },
       [&] { return view.shows_search && ImGui::GetIO().WantTextInput; }},
      {"letters are typed",
       [](XHands& hands) {
         for (const KeySym sign : {XK_f, XK_c, XK_1}) hands.press(sign);
       },
       [&] { return view.search == "fc1" && facts.search_hits > 0; }},
      {"Escape ends the search", [](XHands& hands) { hands.press(XK_Escape); },
       [&] { return !view.shows_search; }},
      {"Ctrl + Q closes",
       [](XHands& hands) {
         hands.hold_key(XK_Control_L), hands.press(XK_q), hands.release_key(XK_Control_L);
       },
       [&] { return view.wants_to_close; }},
  });
  EXPECT_EQ(session.last_size, GetParam().size);
}

TEST_P(RealWindow, OpensWhatIsDropped) {
  RUN_WITH_DISPLAY();
  const std::string folder = own_folder(), file = folder + "/a step.timeline.json";
  std::filesystem::create_directories(folder);
  write_recording(file, recorded(small_trace(), "vanilla"));
  std::string uri = file;
  uri.replace(uri.find(' '), 1, "%20");
  DrivenWindow session(GetParam().size, GetParam().scale);
  session.run({{"a file is dropped", [&](XHands& hands) { hands.drop(uri); },
                [&] { return session.view.notice == "opened " + file; }}});
  ASSERT_EQ(session.model.recordings().size(), 2u);
  EXPECT_EQ(session.model.recordings()[1].path, file);
  EXPECT_EQ(session.view.shown, 1u);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RealWindow,
                         testing::Values(WindowCase{{640, 480}, 1}, WindowCase{{1280, 800}, 1},
                                         WindowCase{{1920, 1080}, 1}, WindowCase{{1280, 960}, 2}));

// A person pulls at the corner of the window.
TEST(ResizedWindow, DrawsForItsNewSize) {
  if (!has_display()) {
    if (!XHands::are_possible()) GTEST_SKIP() << "libX11 or libXtst is not installed";
    if (const char* reason = run_with_display("ResizedWindow.DrawsForItsNewSize"))
      GTEST_SKIP() << reason;
    return;
  }
  DrivenWindow session({1280, 800}, 1);
  const FrameFacts& facts = session.view.facts;
  session.run({{"smaller", [](XHands& hands) { hands.resize(640, 480); },
                [&] { return facts.right > 0 && facts.right <= 640 && facts.memory_bottom < 480; }},
               {"larger", [](XHands& hands) { hands.resize(1600, 900); },
                [&] { return facts.right > 1500; }}});
  EXPECT_EQ(session.last_size, (PixelSize{1600, 900}));
}

}  // namespace
}  // namespace tidemark::gui::real_window_test
