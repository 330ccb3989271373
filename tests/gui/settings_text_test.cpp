// The text of the settings itself, and where each of its values ends.
#include "gui/settings_text.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace tidemark::gui::settings_text_test {
namespace {

TEST(SettingsText, SaysEachSettingByName) {
  ViewState view;
  view.color_by = ColorBy::Task;
  view.curve.by = CurveBy::Tensor;
  view.theme = ThemeChoice::Light;
  view.tab = Tab::Compare;
  view.lower_share = 0.25F;
  view.shows_what_if = false;
  EXPECT_EQ(write_settings_text(view, {1280, 800}),
            "{\n"
            "  \"version\": 1,\n"
            "  \"color_by\": \"task\",\n"
            "  \"curve\": \"tensor\",\n"
            "  \"theme\": \"light\",\n"
            "  \"tab\": \"compare\",\n"
            "  \"lower_share\": 0.250,\n"
            "  \"shows_what_if\": false,\n"
            "  \"width\": 1280,\n"
            "  \"height\": 800\n"
            "}\n");
}

TEST(SettingsText, EachTabAndColorIsReadBack) {
  for (const auto& tab : tab_names)
    for (const auto& color : color_names) {
      ViewState view, read;
      view.tab = tab.value, view.color_by = color.value;
      PixelSize window{640, 480};
      read_settings_text(write_settings_text(view, {900, 600}), "view.json", read, window);
      EXPECT_EQ(read.wanted_tab, tab.value) << tab.name;
      EXPECT_EQ(read.color_by, color.value) << color.name;
      EXPECT_EQ(window, (PixelSize{900, 600}));
    }
}

// A setting of a later program, or none: what was there stays.
TEST(SettingsText, WhatIsNotKnownOrNotSaidStays) {
  ViewState view;
  view.lower_share = 0.5F, view.tab = Tab::Icicle, view.color_by = ColorBy::Task;
  PixelSize window{700, 500};
  read_settings_text(R"({"version": 1, "tab": "clouds", "color_by": "mood"})", "view.json", view,
                     window);
  EXPECT_EQ(view.wanted_tab, Tab::Icicle);
  EXPECT_EQ(view.color_by, ColorBy::Task);
  EXPECT_FLOAT_EQ(view.lower_share, 0.5F);
  EXPECT_TRUE(view.shows_what_if);
  EXPECT_EQ(window, (PixelSize{700, 500}));
}

bool is_read(const std::string& member) {
  ViewState view;
  PixelSize window{700, 500};
  try {
    read_settings_text(R"({"version": 1, )" + member + "}", "view.json", view, window);
    return true;
  } catch (const InputError&) {
    EXPECT_FALSE(view.wanted_tab) << "a part of a broken text was taken";
    EXPECT_EQ(window, (PixelSize{700, 500}));
    return false;
  }
}

TEST(SettingsText, EndsOfWhatCanBeReadAreWhereTheWindowHasThem) {
  EXPECT_TRUE(is_read(R"("lower_share": 0.15)"));
  EXPECT_TRUE(is_read(R"("lower_share": 0.75)"));
  EXPECT_FALSE(is_read(R"("lower_share": 0.149)"));
  EXPECT_FALSE(is_read(R"("lower_share": 0.751)"));
  const auto side = [](const char* name, int pixels) {
    return std::string("\"") + name + "\": " + std::to_string(pixels);
  };
  EXPECT_TRUE(is_read(side("width", smallest_picture.width)));
  EXPECT_FALSE(is_read(side("width", smallest_picture.width - 1)));
  EXPECT_TRUE(is_read(side("height", largest_picture.height)));
  EXPECT_FALSE(is_read(side("height", largest_picture.height + 1)));
  EXPECT_FALSE(is_read(R"("shows_what_if": 1)"));
  EXPECT_FALSE(is_read(R"("tab": 3)"));
}

}  // namespace
}  // namespace tidemark::gui::settings_text_test
