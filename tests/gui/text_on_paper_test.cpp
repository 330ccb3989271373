// Text, legends and wrapped lines on paper: where they begin, where they end, and how they break.
#include <gmock/gmock.h>

#include "tests/gui/laid_out.h"
#include "tests/gui/reader.h"

namespace tidemark::gui::text_on_paper_test {
namespace {

using testing::ElementsAre;

class OnPaper : public WithFont {
 protected:
  /// A window of this width, 50 pixels from the left, in which `draw` is called.
  template <typename Draw>
  Drawing in_window(float width, Draw draw) {
    ImGui::NewFrame();
    ImGui::SetNextWindowPos({50, 50});
    ImGui::SetNextWindowSize({width, 500});
    ImGui::Begin("paper", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings);
    draw();
    ImGui::End();
    ImGui::Render();
    return Drawing::of_frame();
  }
  static std::vector<std::string> lines(const Drawing& drawing) {
    std::vector<std::string> lines;
    for (const Drawn& one : drawing.texts) lines.push_back(one.text);
    return lines;
  }
  Sheet sheet_;
};

TEST_F(OnPaper, TextStandsLeftInTheMiddleOrRight) {
  const Box box{100, 20, 300, 50};
  for (const Align align : {Align::Left, Align::Center, Align::Right})
    draw_text(sheet_.list(), box, "blocks.0", theme::text, align);
  const Drawing drawing = sheet_.drawing();
  ASSERT_EQ(drawing.texts.size(), 3u);
  EXPECT_EQ(drawing.texts[0].box.x0, 100);
  EXPECT_NEAR((drawing.texts[1].box.x0 + drawing.texts[1].box.x1) / 2, 200, 1);
  EXPECT_NEAR(drawing.texts[2].box.x1, 300, 1);
  for (const Drawn& one : drawing.texts) {
    EXPECT_EQ(one.box.y0, 28);  // 14 pixels in the middle of 30
    EXPECT_TRUE(one.has_color(theme::text));
  }
}

TEST_F(OnPaper, ATextOfNoRoomIsNotDrawn) {
  draw_text(sheet_.list(), {0, 0, 5, 20}, "blocks.0", theme::text);
  EXPECT_TRUE(sheet_.drawing().texts.empty());
  draw_text(sheet_.list(), {0, 0, 40, 20}, "blocks.0.attn.qkv", theme::text);
  EXPECT_TRUE(sheet_.drawing().texts.at(0).text.ends_with("..."));
}

// As many letters as fit: one more would not.
TEST_F(OnPaper, AShortenedTextIsAsLongAsItCanBe) {
  const std::string text = "stages.0.blocks.1.attn.softmax";
  for (float width = 40; width < text_width(text) - 1; width += 11) {
    const std::string shown = fitted(text, width);
    const std::size_t letters = shown.size() - 3;
    EXPECT_LE(text_width(text.substr(0, letters)) + text_width("..."), width);
    EXPECT_GT(text_width(text.substr(0, letters + 1)) + text_width("..."), width);
  }
  EXPECT_EQ(fitted(text, 1.9F * text_width("...")), "");
  EXPECT_NE(fitted(text, 2.1F * text_width("...")), "");
}

TEST_F(OnPaper, AKeyIsASwatchAndItsName) {
  draw_key(sheet_.list(), {100, 20}, "activation", color_of(Category::Activation), theme::text);
  const Drawing drawing = sheet_.drawing();
  ASSERT_EQ(drawing.shapes.size(), 1u);
  // 0.62 em are 8 px, in the middle of a line of 14.
  EXPECT_NEAR(drawing.shapes[0].box.x0, 100, 1);
  EXPECT_NEAR(drawing.shapes[0].box.x1, 108, 1);
  EXPECT_NEAR(drawing.shapes[0].box.y0, 23, 1);
  EXPECT_NEAR(drawing.shapes[0].box.y1, 31, 1);
  EXPECT_TRUE(drawing.shapes[0].has_color(color_of(Category::Activation)));
  EXPECT_EQ(drawing.texts.at(0).box.x0, std::floor(100 + 8 + 0.35F * 14));
  EXPECT_EQ(drawing.texts.at(0).box.y0, 20);
}

TEST_F(OnPaper, ALegendGoesOnInTheNextRow) {
  const std::vector<KeyEntry> entries(3, {"activation", color_of(Category::Activation)});
  const float own = 0.97F * 14 + text_width("activation"), gap = 0.9F * 14;
  draw_keys(sheet_.list(), {100, 20, 100 + 2 * own + gap + 1, 80}, entries, theme::text);
  const Drawing drawing = sheet_.drawing();
  ASSERT_EQ(drawing.texts.size(), 3u);
  EXPECT_EQ(drawing.texts[0].box.y0, drawing.texts[1].box.y0);
  EXPECT_NEAR(drawing.texts[1].box.x0 - drawing.texts[0].box.x0, own + gap, 1);
  EXPECT_EQ(drawing.texts[2].box.x0, drawing.texts[0].box.x0);
  EXPECT_EQ(drawing.texts[2].box.y0 - drawing.texts[0].box.y0, 18);  // 1.35 em, whole pixels
  Sheet narrower;
  draw_keys(narrower.list(), {100, 20, 100 + 2 * own + gap - 1, 80}, entries, theme::text);
  EXPECT_GT(narrower.drawing().texts[1].box.y0, narrower.drawing().texts[0].box.y0);
}

TEST_F(OnPaper, AnEntryKeepsTheWidthThatItAsksFor) {
  const Color color = color_of(Category::Activation);
  const std::vector<KeyEntry> entries = {{"a", color, 200}, {"b", color}};
  draw_keys(sheet_.list(), {100, 20, 1000, 80}, entries, theme::text);
  const Drawing drawing = sheet_.drawing();
  EXPECT_NEAR(drawing.texts[1].box.x0 - drawing.texts[0].box.x0, 0.97F * 14 + 200 + 0.9F * 14, 1);
}

TEST_F(OnPaper, AnEdgeIsTheLowerPartOfASwatch) {
  const Color color = color_of(Task::Recompute);
  draw_keys(sheet_.list(), {100, 20, 1000, 80},
            std::vector<KeyEntry>{{"recompute", color, 0, true}}, theme::text);
  const Drawing drawing = sheet_.drawing();
  ASSERT_EQ(drawing.shapes.size(), 2u);
  EXPECT_TRUE(drawing.shapes[0].has_color(theme::folded));
  const auto edge = drawing.of_color(color);
  ASSERT_EQ(edge.size(), 1u);
  EXPECT_NEAR(edge[0].box.height(), 0.3F * 14, 0.1);
  EXPECT_NEAR(edge[0].box.y1, drawing.shapes[0].box.y1, 1);
}

TEST_F(OnPaper, NamesAloneHaveNoSwatch) {
  draw_keys(sheet_.list(), {100, 20, 1000, 80}, std::vector<KeyEntry>{{"1 more open"}},
            theme::text);
  EXPECT_TRUE(sheet_.drawing().shapes.empty());
  EXPECT_EQ(sheet_.drawing().texts.at(0).box.x0, 100);
}

TEST_F(OnPaper, LinesBreakBetweenWords) {
  const std::string text = "one two three four five six seven eight nine ten";
  const Drawing drawing = in_window(120, [&] { text_wrapped(text); });
  std::string joined;
  for (const std::string& line : lines(drawing)) joined += (joined.empty() ? "" : " ") + line;
  EXPECT_EQ(joined, text);
  ASSERT_GT(drawing.texts.size(), 2u);
  for (std::size_t i = 0; i < drawing.texts.size(); ++i) {
    EXPECT_EQ(drawing.texts[i].box.x0, 58);  // 8 of padding
    EXPECT_LE(drawing.texts[i].box.x1, 50 + 120 - 8 + 1);
    if (i == 0) continue;
    EXPECT_EQ(drawing.texts[i].box.y0 - drawing.texts[i - 1].box.y0, 15);
    // The next word would not have fitted.
    const std::string& next = drawing.texts[i].text;
    EXPECT_GT(text_width(drawing.texts[i - 1].text + " " + next.substr(0, next.find(' '))), 104);
  }
}

TEST_F(OnPaper, WordsThatAreTooLongBreakAfterAPoint) {
  const float room = text_width("stages.0.blocks.1.attn") + 1;
  const Drawing drawing =
      in_window(room + 16, [] { text_wrapped("stages.0.blocks.1.attn.softmax"); });
  EXPECT_THAT(lines(drawing), ElementsAre("stages.0.blocks.1.", "attn.softmax"));
}

TEST_F(OnPaper, NumbersStandAtTheRightOfTheirColumn) {
  const Drawing drawing = in_window(400, [] {
    ImGui::BeginTable("numbers", 2, ImGuiTableFlags_SizingStretchSame);
    for (const char* number : {"1", "1000"}) {
      ImGui::TableNextRow();
      text_cell("name");
      number_cell(number);
    }
    ImGui::EndTable();
  });
  const Drawn *one = drawing.find("1"), *thousand = drawing.find("1000");
  ASSERT_TRUE(one && thousand);
  EXPECT_NEAR(one->box.x1, thousand->box.x1, 1);
  EXPECT_GT(one->box.x0, thousand->box.x0 + 10);
  EXPECT_EQ(drawing.texts[0].text, drawing.texts[1].text);  // column by column
  EXPECT_EQ(drawing.texts[0].box.x0, drawing.texts[1].box.x0);
}

TEST_F(OnPaper, ALineThatIsCutIsWholeUnderTheMouse) {
  const std::string text = "a line that is much longer than its window is wide";
  ImGui::GetIO().MousePos = {70, 62};
  for (int frame = 0; frame < 2; ++frame) in_window(150, [&] { fitted_line(text); });
  const Drawing drawing = in_window(150, [&] { fitted_line(text); });
  EXPECT_TRUE(drawing.texts.at(0).text.ends_with("..."));
  EXPECT_EQ(drawing.count(text), 1u);
  for (int frame = 0; frame < 2; ++frame) in_window(600, [&] { fitted_line(text); });
  EXPECT_EQ(in_window(600, [&] { fitted_line(text); }).count(text), 1u);  // no tooltip
}

TEST(Boxes, HaveTheirLeftAndUpperEdgesButNotTheOthers) {
  const Box box{10, 20, 30, 50};
  EXPECT_EQ(box.width(), 20);
  EXPECT_EQ(box.height(), 30);
  EXPECT_TRUE(box.contains({10, 20}));
  EXPECT_TRUE(box.contains({29.9F, 49.9F}));
  EXPECT_FALSE(box.contains({30, 40}));
  EXPECT_FALSE(box.contains({20, 50}));
  EXPECT_FALSE(box.contains({9.9F, 40}));
  EXPECT_FALSE(box.contains({20, 19.9F}));
  EXPECT_EQ(box.min().x, 10);
  EXPECT_EQ(box.max().y, 50);
}

TEST(AxisOfPixels, GoesThereAndBack) {
  const Axis axis{{1000, 3000}, 100, 500};
  EXPECT_EQ(axis.to_pixel(1000), 100);
  EXPECT_EQ(axis.to_pixel(3000), 500);
  EXPECT_EQ(axis.to_pixel(1500), 200);
  EXPECT_EQ(axis.to_value(200), 1500);
  EXPECT_EQ(axis.to_value(0), 500);
  EXPECT_EQ(axis.per_pixel(), 5);
}

TEST(Colors, AreMixedChannelByChannel) {
  EXPECT_EQ(mixed({0, 100, 200}, {100, 0, 200}, 0), (Color{0, 100, 200}));
  EXPECT_EQ(mixed({0, 100, 200}, {100, 0, 200}, 1), (Color{100, 0, 200}));
  EXPECT_EQ(mixed({0, 100, 200}, {100, 0, 200}, 0.25), (Color{25, 75, 200}));
  EXPECT_EQ(ink({0x12, 0x34, 0x56}, 0x78), 0x78563412U);
  EXPECT_EQ(ink({0x12, 0x34, 0x56}), 0xff563412U);
}

// Letters, as a keyboard of the United States has them.
class Typing : public testing::Test {
 protected:
  std::string typed(std::set<Key> keys, std::string text = "") {
    robot_.input.keys = std::move(keys), robot_.input.text = std::move(text);
    ImGuiIO& io = ImGui::GetIO();
    apply(robot_.input, io);
    std::string signs;
    for (const ImWchar sign : io.InputQueueCharacters) signs += static_cast<char>(sign);
    return signs;
  }
  Robot robot_;
};

TEST_F(Typing, LettersAreSmallWithoutShift) {
  EXPECT_EQ(typed({Key::W}), "w");
  EXPECT_EQ(typed({Key::W}), "");  // held
  EXPECT_EQ(typed({}), "");
  EXPECT_EQ(typed({Key::Shift, Key::W}), "W");
  EXPECT_EQ(typed({Key::Slash}), "/");
  typed({});
  EXPECT_EQ(typed({Key::Shift, Key::Slash}), "?");
}

TEST_F(Typing, ControlAndKeysOfNoLetterTypeNothing) {
  EXPECT_EQ(typed({Key::Control, Key::W}), "");
  EXPECT_EQ(typed({Key::Enter}), "");
  EXPECT_EQ(typed({Key::Escape, Key::Left}), "");
  EXPECT_EQ(typed({}, "so"), "so");
}

TEST_F(Typing, AMouseOutsideIsNoMouse) {
  for (const auto& [x, y] : {std::pair{-1.0F, 5.0F}, {5.0F, -1.0F}}) {
    robot_.input.x = x, robot_.input.y = y;
    apply(robot_.input, ImGui::GetIO());
    EXPECT_FALSE(ImGui::IsMousePosValid()) << x;
  }
  robot_.input.x = 0, robot_.input.y = 0;
  robot_.input.buttons = {false, true, false};
  apply(robot_.input, ImGui::GetIO());
  EXPECT_TRUE(ImGui::IsMousePosValid());
  EXPECT_FALSE(ImGui::GetIO().MouseDown[0]);
  EXPECT_TRUE(ImGui::GetIO().MouseDown[1]);
  robot_.input.keys = {Key::Shift};
  apply(robot_.input, ImGui::GetIO());
  EXPECT_TRUE(ImGui::GetIO().KeyShift);
  EXPECT_FALSE(ImGui::GetIO().KeyCtrl);
}

TEST_F(Typing, EditingKeysAreThoseOfTheirNames) {
  const auto mapped = [](ImGuiKey theirs) { return static_cast<Key>(ImGui::GetKeyIndex(theirs)); };
  EXPECT_EQ(mapped(ImGuiKey_LeftArrow), Key::Left);
  EXPECT_EQ(mapped(ImGuiKey_RightArrow), Key::Right);
  EXPECT_EQ(mapped(ImGuiKey_UpArrow), Key::Up);
  EXPECT_EQ(mapped(ImGuiKey_DownArrow), Key::Down);
  EXPECT_EQ(mapped(ImGuiKey_PageUp), Key::PageUp);
  EXPECT_EQ(mapped(ImGuiKey_PageDown), Key::PageDown);
  EXPECT_EQ(mapped(ImGuiKey_Home), Key::Home);
  EXPECT_EQ(mapped(ImGuiKey_End), Key::End);
  EXPECT_EQ(mapped(ImGuiKey_Delete), Key::Delete);
  EXPECT_EQ(mapped(ImGuiKey_Backspace), Key::Backspace);
  EXPECT_EQ(mapped(ImGuiKey_Z), Key::Z);
  EXPECT_EQ(mapped(ImGuiKey_Y), Key::Y);
}

}  // namespace
}  // namespace tidemark::gui::text_on_paper_test
