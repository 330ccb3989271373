// Fills triangles by edge functions inside a clip rectangle and blends them with coverage.
#include "gui/drawing/rasterizer.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

namespace tidemark::gui {
namespace {

// Pixels that a command may touch: Dear ImGui clips by rectangles only.
struct Clip {
  int x0, y0, x1, y1;  // half open
};

// Twice the signed area of a, b and the point: positive on one side of the edge.
float edge(const ImVec2& a, const ImVec2& b, float x, float y) {
  return (b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x);
}

// A pixel centre on an edge that two triangles share belongs to exactly one of them.
bool owns_edge(const ImVec2& a, const ImVec2& b) {
  const float dx = b.x - a.x, dy = b.y - a.y;
  return dy < 0 || (dy == 0 && dx > 0);
}

std::uint32_t channel(std::uint32_t color, int shift) { return (color >> shift) & 255U; }

// Over: what the GPU does with source alpha. Opaque pixels, nearly all, are stored as
// they are.
std::uint32_t blend(std::uint32_t below, std::uint32_t above, std::uint32_t alpha) {
  if (alpha == 255) return above | 0xff000000U;
  const auto mixed = [&](int shift) {
    const std::uint32_t sum =
        channel(above, shift) * alpha + channel(below, shift) * (255U - alpha) + 127U;
    return (sum / 255U) << shift;
  };
  return 0xff000000U | mixed(0) | mixed(8) | mixed(16);
}

class Rasterizer {
 public:
  Rasterizer(Image& image, const CoverageTexture& texture) : image_(image), texture_(texture) {}

  void triangle(const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c, const Clip& clip) {
    const float area = edge(a.pos, b.pos, c.pos.x, c.pos.y);
    if (area == 0) return;
    // Dear ImGui winds its triangles both ways, and so do we after this line: one.
    if (area < 0) return triangle(a, c, b, clip);
    const auto [left, right] = std::minmax({a.pos.x, b.pos.x, c.pos.x});
    const auto [top, bottom] = std::minmax({a.pos.y, b.pos.y, c.pos.y});
    const int x0 = std::max(clip.x0, static_cast<int>(std::floor(left)));
    const int x1 = std::min(clip.x1, static_cast<int>(std::ceil(right)));
    const int y0 = std::max(clip.y0, static_cast<int>(std::floor(top)));
    const int y1 = std::min(clip.y1, static_cast<int>(std::ceil(bottom)));
    const Corners corners{a, b, c, 1 / area};
    // Boxes have one color and one texel: their pixels need no mixing, which is most of the time.
    const bool is_plain = a.col == b.col && b.col == c.col && a.uv.x == b.uv.x &&
                          b.uv.x == c.uv.x && a.uv.y == b.uv.y && b.uv.y == c.uv.y;
    const std::uint32_t plain_alpha = is_plain ? alpha_of(a.col, sample(a.uv.x, a.uv.y)) : 0;
    for (int y = y0; y < y1; ++y) {
      std::uint32_t* row =
          &image_.pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(image_.width)];
      for (int x = x0; x < x1; ++x) {
        const auto [inside, u, v, w] = weights(corners, x, y);
        if (!inside) continue;
        row[x] = is_plain ? blend(row[x], a.col, plain_alpha) : shade(corners, u, v, w, row[x]);
      }
    }
  }

 private:
  struct Corners {
    const ImDrawVert &a, &b, &c;
    float inverse_area;
  };
  struct Weights {
    bool inside;
    float a, b, c;
  };

  static Weights weights(const Corners& t, int x, int y) {
    const float px = static_cast<float>(x) + 0.5F, py = static_cast<float>(y) + 0.5F;
    const float a = edge(t.b.pos, t.c.pos, px, py), b = edge(t.c.pos, t.a.pos, px, py),
                c = edge(t.a.pos, t.b.pos, px, py);
    const bool inside = (a > 0 || (a == 0 && owns_edge(t.b.pos, t.c.pos))) &&
                        (b > 0 || (b == 0 && owns_edge(t.c.pos, t.a.pos))) &&
                        (c > 0 || (c == 0 && owns_edge(t.a.pos, t.b.pos)));
    return {inside, a * t.inverse_area, b * t.inverse_area, c * t.inverse_area};
  }

  std::uint32_t shade(const Corners& t, float a, float b, float c, std::uint32_t below) const {
    const auto mixed = [&](int shift) {
      const float value = a * static_cast<float>(channel(t.a.col, shift)) +
                          b * static_cast<float>(channel(t.b.col, shift)) +
                          c * static_cast<float>(channel(t.c.col, shift));
      return static_cast<std::uint32_t>(std::clamp(value + 0.5F, 0.0F, 255.0F)) << shift;
    };
    const std::uint32_t color = t.a.col == t.b.col && t.b.col == t.c.col
                                    ? t.a.col
                                    : mixed(0) | mixed(8) | mixed(16) | mixed(24);
    const float coverage = sample(a * t.a.uv.x + b * t.b.uv.x + c * t.c.uv.x,
                                  a * t.a.uv.y + b * t.b.uv.y + c * t.c.uv.y);
    return blend(below, color, alpha_of(color, coverage));
  }

  static std::uint32_t alpha_of(std::uint32_t color, float coverage) {
    return static_cast<std::uint32_t>(static_cast<float>(channel(color, 24)) * coverage / 255 +
                                      0.5F);
  }

  // Linear between the four texels around the place, as a GPU does.
  float sample(float u, float v) const {
    const float x = u * static_cast<float>(texture_.width) - 0.5F;
    const float y = v * static_cast<float>(texture_.height) - 0.5F;
    const int left = static_cast<int>(std::floor(x)), top = static_cast<int>(std::floor(y));
    const float fx = x - static_cast<float>(left), fy = y - static_cast<float>(top);
    const float upper = texel(left, top) * (1 - fx) + texel(left + 1, top) * fx;
    const float lower = texel(left, top + 1) * (1 - fx) + texel(left + 1, top + 1) * fx;
    return upper * (1 - fy) + lower * fy;
  }

  float texel(int x, int y) const {
    const auto column = static_cast<std::size_t>(std::clamp(x, 0, texture_.width - 1));
    const auto row = static_cast<std::size_t>(std::clamp(y, 0, texture_.height - 1));
    return texture_.coverage[row * static_cast<std::size_t>(texture_.width) + column];
  }

  Image& image_;
  const CoverageTexture& texture_;
};

}  // namespace

Image rasterize(const ImDrawData& data, const CoverageTexture& texture, std::uint32_t ground) {
  Image image{static_cast<int>(data.DisplaySize.x), static_cast<int>(data.DisplaySize.y), {}};
  image.pixels.assign(
      static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height),
      ground | 0xff000000U);
  Rasterizer rasterizer(image, texture);
  for (int n = 0; n < data.CmdListsCount; ++n) {
    const ImDrawList& list = *data.CmdLists[n];
    for (const ImDrawCmd& command : list.CmdBuffer) {
      // Those draw with OpenGL; there are none of ours.
      if (command.UserCallback) continue;
      const Clip clip{std::max(0, static_cast<int>(command.ClipRect.x)),
                      std::max(0, static_cast<int>(command.ClipRect.y)),
                      std::min(image.width, static_cast<int>(command.ClipRect.z)),
                      std::min(image.height, static_cast<int>(command.ClipRect.w))};
      const ImDrawVert* vertices = list.VtxBuffer.Data + command.VtxOffset;
      const ImDrawIdx* indices = list.IdxBuffer.Data + command.IdxOffset;
      for (unsigned i = 0; i + 2 < command.ElemCount; i += 3)
        rasterizer.triangle(vertices[indices[i]], vertices[indices[i + 1]],
                            vertices[indices[i + 2]], clip);
    }
  }
  return image;
}

}  // namespace tidemark::gui
