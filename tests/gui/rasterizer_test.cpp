// Rectangles and triangles cover exactly their pixels, once, within the clip; images become PNGs.
#include "gui/drawing/rasterizer.h"

#include <gtest/gtest.h>
#include <imgui.h>
#include <imgui_internal.h>  // for a draw list without a context

#include <algorithm>

namespace tidemark::gui::rasterizer_test {
namespace {

constexpr std::uint32_t ground = 0xff000000U, red = 0xff0000ffU;

// A draw list by hand: no context, no window, no font.
class Drawing {
 public:
  Drawing(float width, float height) {
    shared_.ClipRectFullscreen = {0, 0, width, height};
    data_.DisplaySize = {width, height};
    list_._ResetForNewFrame();
    list_.PushClipRectFullScreen();
    list_.PushTextureID(nullptr);
  }

  ImDrawList& list() { return list_; }

  Image picture() {
    ImDrawList* lists[] = {&list_};
    data_.CmdLists = lists;
    data_.CmdListsCount = 1;
    return rasterize(data_, {1, 1, {255}}, ground);
  }

 private:
  ImDrawListSharedData shared_;
  ImDrawList list_{&shared_};
  ImDrawData data_;
};

std::size_t count(const Image& image, std::uint32_t color) {
  return static_cast<std::size_t>(std::ranges::count(image.pixels, color));
}

TEST(Rasterizer, FillsExactlyThePixelsOfARectangle) {
  Drawing drawing(8, 8);
  drawing.list().AddRectFilled({2, 1}, {5, 7}, red);
  const Image image = drawing.picture();
  EXPECT_EQ(count(image, red), 18u);
  EXPECT_EQ(image.pixels[1 * 8 + 2], red);
  EXPECT_EQ(image.pixels[6 * 8 + 4], red);
  EXPECT_EQ(image.pixels[1 * 8 + 5], ground);
}

// Two triangles share the diagonal: with alpha a pixel drawn twice would be brighter.
TEST(Rasterizer, DrawsNoPixelTwice) {
  Drawing drawing(16, 16);
  drawing.list().AddRectFilled({1, 1}, {15, 14}, 0x800000ffU);
  const Image image = drawing.picture();
  EXPECT_EQ(count(image, 0xff000080U), 14u * 13u);
}

TEST(Rasterizer, KeepsWithinTheClip) {
  Drawing drawing(8, 8);
  drawing.list().PushClipRect({3, 3}, {5, 5});
  drawing.list().AddRectFilled({-100, -100}, {100, 100}, red);
  EXPECT_EQ(count(drawing.picture(), red), 4u);
}

TEST(Rasterizer, CountsCoverageOfPartialPixelsByTheirCentre) {
  Drawing drawing(4, 4);
  drawing.list().AddRectFilled({0.4F, 0.4F}, {1.6F, 1.6F}, red);
  EXPECT_EQ(count(drawing.picture(), red), 4u);  // centres 0.5 and 1.5
}

TEST(Image, BecomesAPng) {
  const std::string png = to_png({2, 1, {red, ground}});
  EXPECT_TRUE(png.starts_with("\x89PNG\r\n"));
  EXPECT_EQ(png, to_png({2, 1, {red, ground}}));
}

}  // namespace
}  // namespace tidemark::gui::rasterizer_test
