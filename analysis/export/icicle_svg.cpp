// The live set at the peak: all of it on top, below it its categories, their blocks, and tensors.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/export/caption.h"
#include "analysis/export/picture_sizes.h"
#include "analysis/export/pictures.h"
#include "analysis/export/stacks.h"
#include "analysis/export/svg.h"

namespace tidemark::exports {
namespace {

constexpr double level_height = 34;
constexpr int levels = 4;
// Of all together, and of what is too narrow for a box of its own: no colour of data.
constexpr Color neutral{0xC9, 0xC9, 0xC9};
constexpr double narrowest = 1;  // pixels; narrower ones are drawn together

Color lighter(Color color, int level) {
  const auto mix = [level](std::uint8_t part) {
    return static_cast<std::uint8_t>(part + (255 - part) * level / 5);
  };
  return {mix(color.red), mix(color.green), mix(color.blue)};
}

class Icicle {
 public:
  Icicle(const Recording& recording, double width)
      : root_(alive_tree(recording)),
        width_(width),
        caption_("Alive at the peak · " + title(recording),
                 "live memory: all · by category · by block · by tensor; width is size",
                 width - 2 * margin),
        svg_(width, caption_.height() + levels * level_height + margin, title(recording)) {
    caption_.draw(svg_, margin);
  }

  std::string draw() && {
    node(root_, margin, 0, neutral, "");
    for_each_child(root_, margin, [&](const AliveNode& category, double x) {
      const auto* found = std::ranges::find(categories, category.name, &Named<Category>::name);
      const Color color = color_of(found->value);
      node(category, x, 1, color, "");
      draw_below(category, x, 2, color);
    });
    return std::move(svg_).finish();
  }

 private:
  double width_of(Bytes size) const {
    return (width_ - 2 * margin) * static_cast<double>(size.count) /
           static_cast<double>(std::max<std::int64_t>(1, root_.size.count));
  }

  void draw_below(const AliveNode& parent, double x, int level, Color color) {
    if (level == levels) return;
    for_each_child(parent, x, [&](const AliveNode& below, double at) {
      node(below, at, level, lighter(color, level - 1), parent.name);
      draw_below(below, at, level + 1, color);
    });
  }

  // Children come largest first; what is too narrow to be seen is told in one box.
  template <typename Visit>
  void for_each_child(const AliveNode& parent, double x, Visit visit) {
    AliveNode rest{"", "", {}, {}};
    std::size_t left_over = 0;
    for (const AliveNode& child : parent.children) {
      if (width_of(child.size) < narrowest && parent.children.size() > 1) {
        rest.size += child.size, ++left_over;
        continue;
      }
      visit(child, x);
      x += width_of(child.size);
    }
    if (left_over == 0 || width_of(rest.size) < 0.05) return;
    rest.name = fmt::format("{} smaller ones", left_over);
    box(rest, x, level_below(parent), neutral, parent.name);
  }

  int level_below(const AliveNode& parent) const {
    if (&parent == &root_) return 1;
    for (const AliveNode& category : root_.children)
      if (&category == &parent) return 2;
    return 3;
  }

  void node(const AliveNode& node, double x, int level, Color color, std::string_view parent) {
    box(node, x, level, color, parent);
  }

  void box(const AliveNode& node, double x, int level, Color color, std::string_view parent) {
    const double y = caption_.height() + level * level_height, wide = width_of(node.size);
    const double share = 100 * static_cast<double>(node.size.count) /
                         static_cast<double>(std::max<std::int64_t>(1, root_.size.count));
    std::string tip = fmt::format("{}: {} ({:.1f} %)", node.name, to_text(node.size), share);
    if (!parent.empty()) tip += fmt::format("\nin {}", parent);
    if (!node.detail.empty()) tip += "\n" + node.detail;
    svg_.rect({x, y, wide, level_height - 1}, color, tip, "edge");
    const TextLook look{.size = 10, .color = text_color_on(color)};
    std::string_view name = node.name;  // within its block
    if (name.starts_with(parent) && name.substr(parent.size()).starts_with('.'))
      name.remove_prefix(parent.size() + 1);
    svg_.text(x + 3, y + 14, fitted(name, wide - 5, 10), look);
    svg_.text(x + 3, y + 27, fitted(to_text(node.size), wide - 5, 10), look);
  }

  AliveNode root_;
  double width_;
  Caption caption_;
  Svg svg_;
};

}  // namespace

std::string icicle_svg(const Recording& recording, double width) {
  return Icicle(recording, width).draw();
}

}  // namespace tidemark::exports
