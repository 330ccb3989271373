// Puts bands on each other column by column, and joins what does not change.
#include "gui/panels/curve_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/navigation.h"

namespace tidemark::gui {
namespace {

// Bands that are lower than this are drawn as one, in the color of the highest of them. Categories
// are few, and each has a color; of modules and tensors hundreds would flicker from line to line.
constexpr float lowest_category = 1, lowest_band = 2;  // pixels
// Of two pixels an edge would take one: more dark than color.
constexpr float lowest_with_edge = 3;

// A part of a column: where, and whose color.
struct Layer {
  float top, bottom;
  std::size_t band;
};

// The layers of a column, from the ground up.
void stack_up(const Bands& bands, std::span<const Bytes> bytes, const Heights& height,
              std::vector<Layer>& layers) {
  const float lowest = bands.by() == CurveBy::Category ? lowest_category : lowest_band;
  layers.clear();
  Bytes below;
  float bottom = height(below);
  std::size_t highest = 0;
  Bytes most;
  for (std::size_t b = 0; b < bytes.size(); ++b) {
    if (bytes[b].count <= 0) continue;
    if (bytes[b] > most) most = bytes[b], highest = b;
    const float top = height(below += bytes[b]);
    if (bottom - top < lowest) continue;
    layers.push_back({top, bottom, highest});
    bottom = top, most = {};
  }
  if (most.count > 0 && bottom > height(below)) layers.push_back({height(below), bottom, highest});
}

bool is_dimmed(const Bands& bands, const Band& band, const Selection& selection) {
  if (selection.category && band.category) return *selection.category != *band.category;
  if (band.buffer && (selection.buffer || selection.op != no_op || selection.block >= 0))
    return !belongs_to(bands.opened(), *band.buffer, selection);
  return band.block && selection.block >= 0 && *band.block != selection.block;
}

class StackPainter {
 public:
  StackPainter(ImDrawList& list, const Bands& bands, ViewState& view)
      : list_(list), bands_(bands), view_(view), open_(bands.all().size()) {
    for (std::size_t b = 0; b < open_.size(); ++b)
      colors_.push_back(
          ink(color_of(bands, b), is_dimmed(bands, bands.all()[b], view.selection) ? 70 : 225));
  }

  void add(float x0, float x1, std::span<const Layer> layers) {
    ++column_;
    std::vector<std::size_t>& next = next_;
    next.clear();
    for (const Layer& layer : layers) {
      Open& open = open_[layer.band];
      const bool goes_on =
          open.column + 1 == column_ && open.top == layer.top && open.bottom == layer.bottom;
      if (!goes_on) {
        if (open.column + 1 == column_) draw(layer.band, x0);
        open = {x0, layer.top, layer.bottom, column_};
      }
      open.column = column_;
      next.push_back(layer.band);
    }
    for (const std::size_t band : alive_)
      if (open_[band].column != column_) draw(band, x0);
    std::swap(alive_, next_);
    end_ = x1;
  }

  void finish() {
    for (const std::size_t band : alive_) draw(band, end_);
  }

 private:
  // A band that stays where it is, since x0. `column` is the last in which it was seen.
  struct Open {
    float x0 = 0, top = 0, bottom = 0;
    std::size_t column = 0;
  };

  void draw(std::size_t band, float x1) {
    const Open& open = open_[band];
    // An edge of ground, so that equal colors stay apart.
    const bool has_edge =
        bands_.by() != CurveBy::Category && open.bottom - open.top >= lowest_with_edge;
    list_.AddRectFilled({open.x0, open.top + (has_edge ? 1 : 0)}, {x1, open.bottom}, colors_[band]);
    ++view_.facts.bands;
  }

  ImDrawList& list_;
  const Bands& bands_;
  ViewState& view_;
  std::vector<ImU32> colors_;
  std::vector<Open> open_;
  std::vector<std::size_t> alive_, next_;
  std::size_t column_ = 1;  // 0 is that of bands that were never seen
  float end_ = 0;
};

}  // namespace

// Blue to yellow by way of grey, as cividis goes, which those who see no green or no red see alike;
// without its darkest fifth, which is the ground's. Every other one is darker.
Color color_of(const Bands& bands, std::size_t band) {
  const Band& what = bands.all()[band];
  switch (bands.by()) {
    case CurveBy::Category:
      return color_of(*what.category);
    case CurveBy::Tensor:
      if (!what.buffer) return theme::folded;
      return mixed(color_of(*what.category), theme::plot, band % 2 == 0 ? 0 : 0.25);
    case CurveBy::Module:
      break;
  }
  constexpr Color first{0x2B, 0x5C, 0x9E}, middle{0x9A, 0x94, 0x86}, last{0xFF, 0xEA, 0x46};
  const double place = static_cast<double>(band) /
                       static_cast<double>(std::max<std::size_t>(1, bands.all().size() - 1));
  const Color ramp =
      place < 0.5 ? mixed(first, middle, 2 * place) : mixed(middle, last, 2 * place - 1);
  return mixed(ramp, theme::plot, band % 2 == 0 ? 0 : 0.2);
}

void draw_stack(ImDrawList& list, const TimelinePlaces& places, const Bands& bands,
                const Heights& height, ViewState& view) {
  BandBytes bytes(bands);
  StackPainter painter(list, bands, view);
  std::vector<Layer> layers;
  std::vector<Box> crest;
  visit_columns(places, bands.opened(), [&](float x0, float x1, StateId state) {
    stack_up(bands, bytes.at(state), height, layers);
    painter.add(x0, x1, layers);
    const float top = height(bands.total_of(state));
    crest.push_back({x0, top - 1, x1, top});
    ++view.facts.columns;
  });
  painter.finish();
  // The crest, so that thin layers on top are seen as height.
  for (const Box& box : crest) list.AddRectFilled(box.min(), box.max(), ink(theme::bright, 120));
}

std::optional<std::size_t> band_under(const TimelinePlaces& places, const Bands& bands,
                                      const Heights& height, ImVec2 mouse) {
  const double moment = places.time.to_value(mouse.x);
  if (!places.memory.contains(mouse) || moment < 0 || moment > bands.opened().end()) return {};
  BandBytes bytes(bands);
  std::vector<Layer> layers;
  stack_up(bands, bytes.at(state_under(places, bands.opened(), mouse.x)), height, layers);
  for (const Layer& layer : layers)
    if (mouse.y >= layer.top && mouse.y < layer.bottom) return layer.band;
  return {};
}

std::vector<std::string> lines_of(const Bands& bands, std::size_t band, StateId state) {
  const Opened& opened = bands.opened();
  const Band& what = bands.all()[band];
  BandBytes all(bands);
  const Bytes bytes = all.at(state)[band], sum = bands.total_of(state);
  std::vector<std::string> lines{what.name};
  lines.push_back(fmt::format("{}, {:.0f} % of {} at {}", to_text(bytes),
                              100 * static_cast<double>(bytes.count) /
                                  static_cast<double>(std::max<std::int64_t>(1, sum.count)),
                              to_text(sum), to_text(opened.memory().begin_of(state))));
  if (what.buffer)
    lines.push_back(
        fmt::format("{}, {}", to_string(*what.category), opened.why_alive(*what.buffer)));
  return lines;
}

}  // namespace tidemark::gui
