// The parts of the timeline, which share one time axis.
#pragma once

#include "gui/drawing/paint.h"
#include "gui/model.h"
#include "gui/time_map.h"

namespace tidemark::gui {

/// Where things are in this frame.
struct TimelinePlaces {
  struct Lane {
    const Opened* opened;
    std::size_t stream;
    Box box;
    std::optional<std::size_t> stage = {};  ///< of another class of ranks than the one shown
  };

  Box all;      ///< the others are parts of it, from top to bottom:
  Box key;      ///< what the colors of the lanes mean
  Box axis;     ///< moments
  Box phases;   ///< forward, backward, optimizer
  Box modules;  ///< blocks, and what is in them
  Box reading;  ///< bytes by category at a moment
  Box memory;   ///< the curve
  Box mini_map;
  /// Of what is shown, of the other classes of ranks, then of what it is compared with.
  std::vector<Lane> lanes;
  std::size_t ranks_without_room = 0;  ///< classes that have no lanes here
  Axis time;                           ///< of the plot: right of the labels
  /// Of those whose moments are elsewhere on the axis.
  std::vector<std::pair<const Opened*, TimeMap>> maps;
  /// Of what is shown, then of all that lies over it.
  std::vector<std::shared_ptr<const Bands>> curves;
  float em = 13;

  /// Null for what came since the places were made.
  const Bands* find_curve(const Opened& opened) const;
  const Bands& curve_of(const Opened& opened) const;
  const TimeMap& map_of(const Opened& opened) const;
  float x_of(const Opened& opened, double moment) const {
    return time.to_pixel(map_of(opened).to_axis(moment));
  }
  double moment_at(const Opened& opened, float x) const {
    return map_of(opened).to_own(time.to_value(x));
  }
  /// Where bytes are written: left of the curve.
  Box byte_axis() const { return {all.x0, memory.y0, time.x0, memory.y1}; }
  /// All that the time axis goes through.
  Box time_area() const { return {time.x0, all.y0, time.x1, all.y1}; }
};

/// A is shown, B compared with it, then the others.
constexpr char recording_letter(std::size_t i) { return static_cast<char>('A' + i); }

/// What the mouse is over.
struct Hovered {
  std::optional<TimelinePlaces::Lane> lane = {};
  std::optional<RunId> run = {};
  Cell cell{0, 0};  ///< positions in the lane
};

Color color_of(const Opened& opened, RunId run, ColorBy by);
/// Names and colours, for the key under the lanes.
std::vector<KeyEntry> color_key(const Opened& opened, ColorBy by);

void draw_phases(ImDrawList& list, const TimelinePlaces& places, const ViewModel& model,
                 const ViewState& view);
/// Null where none is.
const Phase* phase_under(const TimelinePlaces& places, const Opened& opened, ImVec2 mouse);
/// "forward", "12.3 ms, 31 % of the step", "B: 15.1 ms, 1.23 times as long"
std::vector<std::string> lines_of(const Phase& phase, const ViewModel& model,
                                  const ViewState& view);

/// Are there modules to tell apart?
bool has_modules(const Opened& opened);
void draw_modules(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                  const ViewState& view);
/// Null where none is.
const Module* module_under(const TimelinePlaces& places, const Opened& opened, ImVec2 mouse);

void draw_lane(ImDrawList& list, const TimelinePlaces& places, const TimelinePlaces::Lane& lane,
               ViewState& view);
Hovered hovered_in(const TimelinePlaces& places, ImVec2 mouse);
/// In the lane of a class of ranks also where none is.
void draw_run_tooltip(const Hovered& hovered, const Ranks* ranks);

/// Low lanes of the other classes, the tightest first, in [top, top + room). Returns where they
/// end.
float place_rank_lanes(const Ranks& ranks, float top, float room, TimelinePlaces& places);
void draw_rank_labels(ImDrawList& list, const TimelinePlaces& places, const Ranks& ranks);
/// "pp2: 9.81 GiB allocated, fits, waits 12.3 % of the time"
std::string line_of(const Ranks& ranks, std::size_t stage);

void draw_memory_curve(ImDrawList& list, const TimelinePlaces& places, const ViewModel& model,
                       ViewState& view);
/// What the band under the mouse is.
void draw_band_tooltip(const TimelinePlaces& places, const Opened& opened, const ViewState& view);
/// The state that stands highest in the pixel column.
StateId state_under(const TimelinePlaces& places, const Opened& opened, float x);

/// The bytes of each category under the mouse, or at the cursor, and of what is compared.
std::vector<KeyEntry> reading_of(const TimelinePlaces& places, const ViewModel& model,
                                 const ViewState& view);

/// On a ground of its own: lines of moments end above it and go on below.
void draw_reading(ImDrawList& list, const TimelinePlaces& places, const ViewModel& model,
                  const ViewState& view);
/// Of the curve of the i-th that is overlaid: white, then greys, because hues mean categories.
Color outline_color(std::size_t i);

/// Of what is shown.
void draw_note_marks(ImDrawList& list, const TimelinePlaces& places, const ViewModel& model,
                     ViewState& view);

void use_hands(const TimelinePlaces& places, const Hovered& hovered, ViewModel& model,
               ViewState& view);

void draw_mini_map(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                   const ViewState& view);

/// From the selected op to what it writes and the last that reads it; from a tensor to its users.
void draw_relations(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                    const ViewState& view);

}  // namespace tidemark::gui
