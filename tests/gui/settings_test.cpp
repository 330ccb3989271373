// Settings survive a round trip, broken files change nothing, and the path is the system's.
#include "gui/settings.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "tests/support/own_folder.h"

namespace tidemark::gui::settings_test {
namespace {

std::string fresh_path() { return own_folder() + "/tidemark/view.json"; }

TEST(Settings, AreReadBack) {
  const std::string path = fresh_path();
  ViewState view;
  view.color_by = ColorBy::Task;
  view.tab = Tab::Icicle;
  view.lower_share = 0.5F;
  view.shows_what_if = false;
  write_settings(path, view, {1000, 700});
  ViewState read;
  PixelSize window;
  read_settings(path, read, window);
  EXPECT_EQ(read.color_by, ColorBy::Task);
  EXPECT_EQ(read.wanted_tab, Tab::Icicle);
  EXPECT_FLOAT_EQ(read.lower_share, 0.5F);
  EXPECT_FALSE(read.shows_what_if);
  EXPECT_EQ(window, (PixelSize{1000, 700}));
  EXPECT_EQ(read.notice, "");
}

TEST(Settings, ThatAreBrokenChangeNothingAndAreTold) {
  const std::string path = fresh_path();
  ViewState view;
  PixelSize window;
  read_settings(path, view, window);  // missing
  EXPECT_EQ(view.notice, "");
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  for (const char* text : {"", "{", "[]", R"({"version": 1, "width": 7})",
                           R"({"version": 1, "lower_share": "half"})"}) {
    write_file(path, text);
    view = {};
    read_settings(path, view, window);
    EXPECT_THAT(view.notice, testing::HasSubstr("view.json")) << text;
    EXPECT_EQ(window, PixelSize{}) << text;
  }
  write_file(path, R"({"version": 2, "width": "of a later program"})");
  view = {};
  read_settings(path, view, window);
  EXPECT_EQ(view.notice, "");
}

TEST(Settings, AreWhereTheSystemKeepsThem) {
  const char* before = std::getenv("XDG_CONFIG_HOME");
  const std::string kept = before ? before : "";
  ::setenv("XDG_CONFIG_HOME", "/somewhere", 1);
  EXPECT_EQ(settings_path(), "/somewhere/tidemark/view.json");
  ::unsetenv("XDG_CONFIG_HOME");
  EXPECT_THAT(settings_path(),
              testing::AnyOf("", testing::EndsWith("/.config/tidemark/view.json")));
  if (before) ::setenv("XDG_CONFIG_HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace tidemark::gui::settings_test
