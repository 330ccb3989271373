// What a frame has drawn, read back from Dear ImGui's triangles: texts from the places of their
// glyphs in the font's texture, and boxes, lines and discs as the area that they cover.
#pragma once

#include <gtest/gtest.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gui/drawing/paint.h"

namespace tidemark::gui {

struct Drawn {
  std::string text;  ///< "" of a shape
  Box box;           ///< of a text from its first glyph's origin to its last one's end
  ImU32 ink = 0;

  unsigned alpha() const { return ink >> 24; }
  bool has_color(Color color) const { return (ink & 0xffffffU) == (gui::ink(color) & 0xffffffU); }
};

class Drawing {
 public:
  Drawing() = default;
  explicit Drawing(const ImDrawList& list) { read(list); }
  /// All of the last frame.
  static Drawing of_frame() {
    Drawing drawing;
    const ImDrawData& data = *ImGui::GetDrawData();
    for (int i = 0; i < data.CmdListsCount; ++i) drawing.read(*data.CmdLists[i]);
    return drawing;
  }

  std::vector<Drawn> texts, shapes;  ///< in the order in which they were drawn

  /// The first text that is, or begins with, this; null if there is none.
  const Drawn* find(std::string_view text) const {
    const auto is = std::ranges::find(texts, text, &Drawn::text);
    if (is != texts.end()) return &*is;
    const auto begins =
        std::ranges::find_if(texts, [&](const Drawn& one) { return one.text.starts_with(text); });
    return begins == texts.end() ? nullptr : &*begins;
  }
  bool says(std::string_view text) const { return find(text) != nullptr; }
  /// A text with this anywhere in it.
  bool mentions(std::string_view part) const {
    return std::ranges::any_of(
        texts, [&](const Drawn& one) { return one.text.find(part) != std::string::npos; });
  }
  std::size_t count(std::string_view text) const {
    return static_cast<std::size_t>(std::ranges::count(texts, text, &Drawn::text));
  }
  /// Shapes of this color, whatever their alpha.
  std::vector<Drawn> of_color(Color color) const {
    std::vector<Drawn> found;
    for (const Drawn& shape : shapes)
      if (shape.has_color(color)) found.push_back(shape);
    return found;
  }
  /// Texts whose middle is in the box, joined by " | " from left to right.
  std::string line_in(const Box& box) const {
    std::vector<const Drawn*> found;
    for (const Drawn& one : texts)
      if (box.contains({(one.box.x0 + one.box.x1) / 2, (one.box.y0 + one.box.y1) / 2}))
        found.push_back(&one);
    std::ranges::stable_sort(found, {}, [](const Drawn* one) { return one->box.x0; });
    std::string line;
    for (const Drawn* one : found) line += (line.empty() ? "" : " | ") + one->text;
    return line;
  }
  /// Likewise of all that stands on the line of this text.
  std::string line_of(std::string_view text) const {
    const Drawn* one = find(text);
    return one ? line_in({0, one->box.y0, 1e6F, one->box.y1}) : "";
  }

 private:
  // A primitive's vertices are its own, and stand in a row: a triangle beyond them begins another
  // one. Columns of tables are drawn one after the other, whichever was written first.
  void read(const ImDrawList& list) {
    for (const ImDrawCmd& command : list.CmdBuffer) {
      std::set<unsigned> used;
      pen_ = nullptr;
      for (unsigned i = 0; i + 2 < command.ElemCount; i += 3) {
        const ImDrawIdx* triangle = list.IdxBuffer.Data + command.IdxOffset + i;
        const auto [least, most] = std::minmax({triangle[0], triangle[1], triangle[2]});
        if (!used.empty() && (least > *used.rbegin() || most < *used.begin()))
          take(list, command, std::exchange(used, {}));
        used.insert(triangle, triangle + 3);
      }
      if (!used.empty()) take(list, command, used);
    }
  }

  void take(const ImDrawList& list, const ImDrawCmd& command, const std::set<unsigned>& used) {
    Box box{1e9F, 1e9F, -1e9F, -1e9F};
    ImU32 color = 0;
    float u = 1e9F, v = 1e9F;
    for (const unsigned i : used) {
      const ImDrawVert& corner = list.VtxBuffer[static_cast<int>(command.VtxOffset + i)];
      if (corner.col >> 24 == 0) continue;  // a soft edge ends there
      color = std::max(color, corner.col);
      box = {std::min(box.x0, corner.pos.x), std::min(box.y0, corner.pos.y),
             std::max(box.x1, corner.pos.x), std::max(box.y1, corner.pos.y)};
      u = std::min(u, corner.uv.x), v = std::min(v, corner.uv.y);
    }
    if (color == 0) return;
    const ImFontGlyph* glyph = used.size() == 4 ? glyph_at(u, v) : nullptr;
    if (glyph) return write(*glyph, box, color);
    pen_ = nullptr;
    shapes.push_back({"", box, color});
  }

  // Spaces are no triangles: where a glyph stands a few of them further right, they were written.
  void write(const ImFontGlyph& glyph, const Box& box, ImU32 color) {
    const float origin = box.x0 - glyph.X0, top = box.y0 - glyph.Y0;
    const float space = ImGui::GetFont()->FindGlyph(' ')->AdvanceX;
    const float spaces = pen_ ? (origin - texts.back().box.x1) / space : 0;
    const bool goes_on = pen_ && texts.back().ink == color && texts.back().box.y0 == top &&
                         spaces > -0.1F && spaces < 3.1F &&
                         std::abs(spaces - std::round(spaces)) < 0.1F;
    if (!goes_on) texts.push_back({"", {origin, top, origin, top + ImGui::GetFontSize()}, color});
    Drawn& text = texts.back();
    if (goes_on) text.text.append(static_cast<std::size_t>(std::lround(spaces)), ' ');
    append(static_cast<unsigned>(glyph.Codepoint), text.text);
    text.box.x1 = origin + glyph.AdvanceX;
    pen_ = &glyph;
  }

  static void append(unsigned letter, std::string& text) {
    const auto byte = [&](unsigned bits) { text += static_cast<char>(bits); };
    if (letter < 0x80) return byte(letter);
    if (letter < 0x800) return byte(0xC0 | letter >> 6), byte(0x80 | (letter & 0x3F));
    byte(0xE0 | letter >> 12), byte(0x80 | (letter >> 6 & 0x3F)), byte(0x80 | (letter & 0x3F));
  }

  const ImFontGlyph* glyph_at(float u, float v) {
    if (glyphs_.empty())
      for (const ImFontGlyph& glyph : ImGui::GetFont()->Glyphs)
        if (glyph.Visible) glyphs_[{glyph.U0, glyph.V0}] = &glyph;
    const auto found = glyphs_.find({u, v});
    return found == glyphs_.end() ? nullptr : found->second;
  }

  std::map<std::pair<float, float>, const ImFontGlyph*> glyphs_;
  const ImFontGlyph* pen_ = nullptr;  ///< the last glyph, if nothing was drawn since
};

/// A list to draw into by hand, between frames.
class Sheet {
 public:
  Sheet() : list_(ImGui::GetDrawListSharedData()) {
    list_._ResetForNewFrame();
    list_.PushTextureID(ImGui::GetIO().Fonts->TexID);
    list_.PushClipRect({-1e4F, -1e4F}, {1e4F, 1e4F});
  }
  ImDrawList& list() { return list_; }
  Drawing drawing() const { return Drawing(list_); }

 private:
  ImDrawList list_;
};

}  // namespace tidemark::gui
