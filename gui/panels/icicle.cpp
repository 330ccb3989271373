// The live set as an icicle: all of it on top, then categories, blocks and ops, each as wide as its
// bytes. In the order of the model, so that nothing jumps while the cursor moves.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "gui/panels/panels.h"

namespace tidemark::gui {
namespace {

struct Node {
  std::string_view level;  ///< "category"
  std::string name;
  Bytes bytes;
  std::size_t buffers = 0;
  Color color;
  Selection selects = {};
};

class Icicle {
 public:
  Icicle(const Opened& opened, const LiveSet& live, Box box, ViewState& view)
      : opened_(opened),
        live_(live),
        box_(box),
        view_(view),
        em_(ImGui::GetFontSize()),
        list_(*ImGui::GetWindowDrawList()) {}

  void draw() {
    draw_node({"", "alive", live_.bytes, live_.count, theme::folded}, 0, Bytes{}, false);
    Bytes at;
    for (auto it = live_.blocks.begin(); it != live_.blocks.end();) {
      const Category category = live_.shares[it->first].category;
      const auto end = std::find_if(it, live_.blocks.end(), [&](const LiveBlock& block) {
        return live_.shares[block.first].category != category;
      });
      draw_category(category, {it, end}, at);
      it = end;
    }
  }

  const std::optional<Node>& hovered() const { return hovered_; }

 private:
  void draw_category(Category category, std::span<const LiveBlock> blocks, Bytes& at) {
    Node node{"category", std::string(to_string(category)), {}, 0, color_of(category)};
    for (const LiveBlock& block : blocks) node.bytes += block.bytes, node.buffers += block.buffers;
    node.selects.category = category;
    draw_node(node, 1, at, view_.selection.category == category);
    for (const LiveBlock& block : blocks) {
      draw_block(block, at);
      at += block.bytes;
    }
  }

  // A block and its ops. What is narrower than half a pixel is left to its parent's color.
  void draw_block(const LiveBlock& block, Bytes at) {
    if (width_of(block.bytes) < 0.5F) return;  // nor are its ops looked at
    const LiveShare& first = live_.shares[block.first];
    Node node{"block", opened_.block_name(first.block), block.bytes, block.buffers,
              mixed(color_of(first.category), theme::ground, first.block % 2 == 0 ? 0.2 : 0.3)};
    node.selects.block = first.block;
    draw_node(node, 2, at, first.block >= 0 && view_.selection.block == first.block);
    for (std::size_t i = block.first; i < block.last; ++i) {
      draw_op(live_.shares[i], at);
      at += live_.shares[i].bytes;
    }
  }

  void draw_op(const LiveShare& share, Bytes at) {
    Node node{"op", "", share.bytes, share.buffers,
              mixed(color_of(share.category), theme::ground, 0.42)};
    node.selects.op = share.op;
    if (width_of(share.bytes) > 2 * em_) node.name = op_name(share);
    draw_node(node, 3, at, share.op != no_op && view_.selection.op == share.op, &share);
  }

  std::string op_name(const LiveShare& key) const {
    if (key.op == no_op) return "(from outside)";
    std::string_view name = opened_.trace()[key.op].name;
    const std::string block = opened_.block_name(key.block) + ".";
    if (name.starts_with(block)) name.remove_prefix(block.size());
    return std::string(name);
  }

  float width_of(Bytes bytes) const {
    return box_.width() *
           static_cast<float>(static_cast<double>(bytes.count) /
                              static_cast<double>(std::max<std::int64_t>(1, live_.bytes.count)));
  }

  void draw_node(const Node& node, int level, Bytes at, bool is_marked,
                 const LiveShare* key = nullptr) {
    const float row = std::min(box_.height() / 4, 5 * em_);
    const float y = box_.y0 + static_cast<float>(level) * row;
    const Box place{box_.x0 + width_of(at), y, box_.x0 + width_of(at) + width_of(node.bytes),
                    y + row - 1};
    const bool is_hovered = ImGui::IsItemHovered() && place.contains(ImGui::GetIO().MousePos);
    if (is_hovered) {
      hovered_ = node;
      if (key) hovered_->name = op_name(*key);
    }
    if (place.width() < 0.5F) return;  // the parent's colour stands for it
    const Color color = is_hovered ? mixed(node.color, theme::bright, 0.2) : node.color;
    list_.AddRectFilled(place.min(), {std::max(place.x0 + 0.5F, place.x1 - 1), place.y1},
                        ink(color));
    if (is_marked) list_.AddRect(place.min(), place.max(), ink(theme::bright), 0, 0, 2);
    if (place.width() <= 2 * em_) return;
    const std::string with_bytes = fmt::format("{}  {}", node.name, to_text(node.bytes));
    const bool has_room = text_width(with_bytes) < place.width() - 8;
    draw_text(list_, {place.x0 + 4, place.y0, place.x1 - 4, place.y1},
              has_room ? with_bytes : node.name, text_color_on(color));
  }

  const Opened& opened_;
  const LiveSet& live_;
  Box box_;
  ViewState& view_;
  float em_;
  ImDrawList& list_;
  std::optional<Node> hovered_;
};

void draw_node_tooltip(const Node& node, const LiveSet& live) {
  ImGui::BeginTooltip();
  text_line(node.level.empty() ? node.name : fmt::format("{} {}", node.level, node.name),
            theme::bright);
  const double share = static_cast<double>(node.bytes.count) /
                       static_cast<double>(std::max<std::int64_t>(1, live.bytes.count));
  text_line(fmt::format("{} in {}, {:.1f} % of what is alive", to_text(node.bytes),
                        count_text(node.buffers, "buffer"), 100 * share));
  ImGui::EndTooltip();
}

}  // namespace

void draw_icicle(ViewModel& model, ViewState& view) {
  const Opened& opened = *model.shown(view);
  if (model.live().owner() != &opened) return text_line("counting ...", theme::faint);
  const LiveSet& live = model.live().current();
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  if (room.x < 1 || room.y < 1) return;
  ImGui::InvisibleButton("icicle", room);
  Icicle icicle(opened, live, {at.x, at.y, at.x + room.x, at.y + room.y}, view);
  icicle.draw();
  const auto& hovered = icicle.hovered();
  if (!hovered) return;
  draw_node_tooltip(*hovered, live);
  if (!ImGui::IsItemClicked()) return;
  view.selection = hovered->selects;
  reveal(opened, view);
}

}  // namespace tidemark::gui
