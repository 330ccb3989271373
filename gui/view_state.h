// What a window shows of its model: plain data with defaults. Panels read and change it, settings
// keep a part of it, and tests look at it instead of at pixels.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/planning/planning.h"
#include "gui/curve_choice.h"
#include "gui/drawing/theme.h"
#include "gui/indexes/buffer_index.h"
#include "gui/indexes/track_index.h"
#include "gui/notes.h"

namespace tidemark::gui {

enum class ColorBy : std::uint8_t { Kind, Task };
inline constexpr std::array color_names = {Named{ColorBy::Kind, std::string_view("kind")},
                                           Named{ColorBy::Task, std::string_view("task")}};
static_assert(is_in_order(color_names));

/// The lower half.
/// The front, details and what-if are tabs only where there is no room for them at the sides.
enum class Tab : std::uint8_t {
  Levers,
  Front,
  Ranks,
  LiveSet,
  Icicle,
  Addresses,
  Compare,
  Notes,
  Recordings,
  Baseline,
  Details,
  WhatIf
};
inline constexpr std::array tab_names = {Named{Tab::Levers, std::string_view("levers")},
                                         Named{Tab::Front, std::string_view("front")},
                                         Named{Tab::Ranks, std::string_view("ranks")},
                                         Named{Tab::LiveSet, std::string_view("live")},
                                         Named{Tab::Icicle, std::string_view("icicle")},
                                         Named{Tab::Addresses, std::string_view("addresses")},
                                         Named{Tab::Compare, std::string_view("compare")},
                                         Named{Tab::Notes, std::string_view("notes")},
                                         Named{Tab::Recordings, std::string_view("recordings")},
                                         Named{Tab::Baseline, std::string_view("baseline")},
                                         Named{Tab::Details, std::string_view("details")},
                                         Named{Tab::WhatIf, std::string_view("what-if")}};
static_assert(is_in_order(tab_names));

/// Of the table of levers.
enum class LeverOrder : std::uint8_t { Best, Memory, Time };
inline constexpr std::array lever_orders = {Named{LeverOrder::Best, std::string_view("best")},
                                            Named{LeverOrder::Memory, std::string_view("memory")},
                                            Named{LeverOrder::Time, std::string_view("time")}};
static_assert(is_in_order(lever_orders));

/// What was clicked; every panel marks it. Of the recording that is shown.
struct Selection {
  std::optional<RunId> run = {};
  std::optional<BufferId> buffer = {};
  OpId op = no_op;          ///< all runs of it
  std::int32_t block = -1;  ///< all of it
  std::optional<Category> category = {};

  bool is_empty() const { return *this == Selection{}; }
  bool operator==(const Selection&) const = default;
};

/// What the last frame drew: what folding left of millions.
struct FrameFacts {
  std::size_t cells = 0;                 ///< rectangles in lanes
  std::size_t runs = 0;                  ///< that they stand for
  std::size_t marks = 0;                 ///< around the selected op's runs
  std::size_t columns = 0;               ///< of the memory curve
  std::size_t bands = 0;                 ///< rectangles in its stack
  std::optional<std::size_t> band = {};  ///< under the mouse, from the ground up
  double byte_top = 0;                   ///< bytes at the upper edge of the curve
  std::size_t search_hits = 0;           ///< so far
  std::size_t causes = 0;                ///< of what is told there
  std::string headline = {};             ///< of the comparison
  bool has_open_list = false;            ///< a combo box or a menu

  std::size_t live_rows = 0;     ///< of the live set
  std::size_t front_points = 0;  ///< of the front that is drawn
  std::size_t range_rows = 0;    ///< kinds in the table of the range
  std::size_t levers = 0;        ///< that are listed
  std::size_t notes = 0;         ///< that are listed
  std::size_t note_marks = 0;    ///< of them in the picture
  float first_note = 0;          ///< where the first of the list is, from the top
  std::size_t experiments = 0;   ///< of the baseline, that are listed
  float first_experiment = 0;    ///< where the first of them is, from the top
  std::size_t recordings = 0;    ///< that are listed, with what each holds
  float first_recording = 0;     ///< where the first of them is, from the top
  std::size_t ranks = 0;         ///< classes that are listed
  float first_rank = 0;          ///< where the first of them is, from the top
  std::size_t passes = 0;        ///< boxes in the picture of the pipeline
  std::size_t rank_lanes = 0;    ///< of classes of ranks that are not the one shown
  float first_rank_lane = 0;     ///< where the first of them is, from the top
  float first_lever = 0;         ///< where the first of them is, from the top; 0 = none is
  float last_session = 0;        ///< where it is offered, from the top; 0 = it is not
  float plan_slider = 0;  ///< where the slider along the front is, from the top; 0 = there is none
  float covered = 0;      ///< pixels of the curve that are hidden by its labels
  /// Where the caution of what is shown ends, from the top; 0 = none is said.
  float caution = 0;
  /// Where the timeline is, in pixels: the time axis from left to right, the top of the
  /// modules, of the first lane, the curve, the mini-map.
  float left = 0, right = 0, modules = 0, lanes = 0, memory_top = 0, memory_bottom = 0,
        mini_map = 0;
};

/// Of the height, for the lower half.
inline constexpr double least_lower_share = 0.15, most_lower_share = 0.75;

struct Session;

/// A note that is being written.
struct EditedNote {
  std::optional<std::size_t> index = {};  ///< which; nothing = a new one
  Note note;
};

/// What is asked about a session before it is saved.
struct SaveDialog {
  std::string name;
  bool is_refused = false;  ///< a file of this name is there that is not ours
};

struct ViewState {
  std::uint64_t gesture = 0;  ///< counts what hands begin: clicks and keys that change something
  Range visible;              ///< of time, in ns
  double end = 1;  ///< of the time axis: what is compared may last longer than what is shown
  std::size_t shown = 0;
  std::optional<std::size_t> against = {};  ///< compared with this one
  bool aligns_phases = false;               ///< while they are compared: of all that lies over it

  StateId cursor = 0;                    ///< whose live set is listed
  double curve_top = 0;                  ///< bytes; holds while a button is down
  CurveChoice curve;                     ///< what is stacked
  std::optional<Range> bytes = {};       ///< visible; else from 0 to what is highest
  double cursor_time = 0;                ///< a moment of that state
  std::optional<double> hover = {};      ///< the moment under the mouse
  std::optional<Range> range = {};       ///< dragged, for statistics
  std::optional<double> drag_from = {};  ///< while dragging
  Selection selection;

  Range addresses;  ///< visible in the address map, in bytes
  ColorBy color_by = ColorBy::Kind;
  ThemeChoice theme = ThemeChoice::Auto;
  Theme desktop_theme = Theme::Dark;
  Measure measure = Measure::Allocated;  ///< of levers and of the front
  LeverOrder lever_order = LeverOrder::Best;
  std::vector<std::string> marked = {};    ///< levers that are collected, by name
  std::string hovered_lever = {};          ///< under the mouse; "" = none is
  bool groups_blocks = true;               ///< in the live set
  std::set<std::string> open_groups = {};  ///< of them
  std::string live_filter = {};
  Tab tab = Tab::Levers;
  std::optional<Tab> wanted_tab = {};  ///< to be opened in the next frame
  float lower_share = 0.38F;           ///< of the height, for the lower half
  bool shows_what_if = true;
  bool shows_help = false;
  bool shows_search = false;
  bool focuses_search = false;
  std::string search;
  std::size_t search_choice = 0;
  NoteList notes;
  std::optional<EditedNote> edited_note = {};
  bool focuses_note = false;
  std::string session_path;               ///< where the session is kept; "" = nowhere yet
  std::string session_text;               ///< as it was read or written last
  std::optional<SaveDialog> saving = {};  ///< while the dialog is open
  bool focuses_saving = false;
  std::string wants_session;                    ///< a file to keep the session in, after this frame
  bool replaces_session = false;                ///< whatever is there
  std::shared_ptr<const Session> last_session;  ///< that the empty window offers
  std::shared_ptr<const Session> opening;       ///< whose view comes when its recordings are there
  std::string notice;        ///< one line at the bottom: what was exported, what went wrong
  std::string wants_export;  ///< a file to write, when the menu that asked for it is gone
  std::string export_path;   ///< the file that this frame is to be written to
  std::optional<std::size_t> closes = {};  ///< the recording that the next frame does without
  bool wants_to_close = false;

  FrameFacts facts;
};

/// The one to draw in.
Theme theme_of(const ViewState& view);

}  // namespace tidemark::gui
