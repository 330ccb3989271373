// Light and dark: what is read can be read in both, and the desktop's wish is understood.
#include "gui/drawing/theme.h"

#include <gmock/gmock.h>

#include "gui/desktop.h"
#include "gui/drawing/paint.h"
#include "tests/gui/robot.h"

namespace tidemark::gui::theme_test {
namespace {

// The Web Content Accessibility Guidelines 2.2 ask for 4.5 of text.
TEST(Theme, TextCanBeReadOnAllThatItStandsOn) {
  for (const Theme theme : {Theme::Dark, Theme::Light})
    for (const Shade ground : {Shade::Ground, Shade::Panel, Shade::Plot, Shade::Popup, Shade::Field,
                               Shade::Title, Shade::Button, Shade::Chosen})
      for (const Shade text : {Shade::Text, Shade::Bright})
        EXPECT_GE(contrast(color_of(text, theme), color_of(ground, theme)), 4.5)
            << static_cast<int>(text) << " on " << static_cast<int>(ground);
  for (const Theme theme : {Theme::Dark, Theme::Light})
    for (const Shade ground : {Shade::Ground, Shade::Panel, Shade::Plot})
      for (const Shade text : {Shade::Faint, Shade::Accent, Shade::Alarm})
        EXPECT_GE(contrast(color_of(text, theme), color_of(ground, theme)), 4.5)
            << static_cast<int>(text) << " on " << static_cast<int>(ground);
}

TEST(Theme, OfTheDesktopIsUnderstood) {
  EXPECT_EQ(theme_of_portal("(<<uint32 1>>,)\n"), Theme::Dark);
  EXPECT_EQ(theme_of_portal("(<uint32 2>,)\n"), Theme::Light);
  EXPECT_EQ(theme_of_portal("(<<uint32 0>>,)\n"), std::nullopt);
  EXPECT_EQ(theme_of_portal("(<<uint32 12>>,)\n"), std::nullopt);
  EXPECT_EQ(theme_of_portal(""), std::nullopt);
  EXPECT_EQ(theme_of_gtk("Adwaita:dark"), Theme::Dark);
  EXPECT_EQ(theme_of_gtk("Yaru-dark"), Theme::Dark);
  EXPECT_EQ(theme_of_gtk("Adwaita"), Theme::Light);
  EXPECT_EQ(theme_of_gtk(""), std::nullopt);
}

TEST(Theme, TTurnsItOverAndTheGroundFollows) {
  Robot robot({640, 480});
  robot.ask(vit({"vanilla"}));
  const auto corner = [&] { return robot.stage.picture().pixels.front(); };
  EXPECT_EQ(corner(), ink(color_of(Shade::Ground, Theme::Dark)));
  robot.press(Key::T);
  EXPECT_EQ(robot.view.theme, ThemeChoice::Light);
  EXPECT_EQ(corner(), ink(color_of(Shade::Ground, Theme::Light)));
  robot.view.theme = ThemeChoice::Auto;
  robot.frames(1);
  EXPECT_EQ(corner(), ink(color_of(Shade::Ground, Theme::Dark)));
  robot.view.desktop_theme = Theme::Light;
  robot.frames(1);
  EXPECT_EQ(corner(), ink(color_of(Shade::Ground, Theme::Light)));
}

}  // namespace
}  // namespace tidemark::gui::theme_test
