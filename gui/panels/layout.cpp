// Advances slow work by a slice, then divides the window among bar, panels, timeline and tabs.
#include "gui/panels/layout.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <utility>

#include "gui/input.h"
#include "gui/keyboard.h"
#include "gui/panels/panels.h"
#include "gui/session.h"
#include "traces/presets.h"

namespace tidemark::gui {
namespace {

constexpr ImGuiWindowFlags root_flags =
    ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
    ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNavFocus |
    ImGuiWindowFlags_NoScrollWithMouse;

// Widths in units of the font. Below the first, panels at the sides become tabs.
constexpr float wide_enough = 72;
constexpr float what_if_width = 20;
constexpr float details_width = 24;

// Buffers and names to examine per frame: some milliseconds.
constexpr std::size_t slice = 50'000;

// Lower than this there is room for the timeline alone.
constexpr float high_enough = 24;

// What stands beside the timeline; the rest is offered as tabs.
struct Sides {
  bool can_ask, has_what_if, has_details, has_ranks, has_notes, has_several, has_baseline;
};

Sides sides_of(const ViewModel& model, const ViewState& view, float em) {
  const bool is_wide = ImGui::GetIO().DisplaySize.x >= wide_enough * em;
  const bool can_ask = model.what_if().has_value();
  return {can_ask,
          can_ask && is_wide && view.shows_what_if,
          is_wide,
          model.ranks_of(view.shown) != nullptr,
          !view.notes.empty(),
          model.recordings().size() > 1,
          !model.baseline_path().empty()};
}

void draw_lower_tab(ViewModel& model, ViewState& view, Tab tab) {
  switch (tab) {
    case Tab::Levers:
      return draw_levers(model, view);
    case Tab::Front:
      return draw_front(model, view);
    case Tab::Ranks:
      return draw_ranks(model, view);
    case Tab::LiveSet:
      return draw_live_set(model, view);
    case Tab::Icicle:
      return draw_icicle(model, view);
    case Tab::Addresses:
      return draw_address_map(model, view);
    case Tab::Compare:
      return draw_compare(model, view);
    case Tab::Notes:
      return draw_notes(model, view);
    case Tab::Recordings:
      return draw_recordings(model, view);
    case Tab::Baseline:
      return draw_baseline(model, view);
    case Tab::Details:
      return draw_details(model, view);
    case Tab::WhatIf:
      return draw_what_if(model, view);
  }
}

bool is_offered(Tab tab, const Sides& sides) {
  if (tab == Tab::Levers) return sides.can_ask;
  if (tab == Tab::Front) return sides.can_ask && !sides.has_details;
  if (tab == Tab::Ranks) return sides.has_ranks;
  if (tab == Tab::Notes) return sides.has_notes;
  if (tab == Tab::Recordings) return sides.has_several;
  if (tab == Tab::Baseline) return sides.has_baseline;
  if (tab == Tab::Details) return !sides.has_details;
  if (tab == Tab::WhatIf) return sides.can_ask && !sides.has_what_if;
  return true;
}

void draw_tabs(ViewModel& model, ViewState& view, const Sides& sides) {
  constexpr std::array titles = {"Levers",     "Front",     "Ranks",   "Live set",
                                 "Icicle",     "Addresses", "Compare", "Notes",
                                 "Recordings", "Baseline",  "Details", "What if"};
  static_assert(titles.size() == tab_names.size());
  if (view.wanted_tab && !is_offered(*view.wanted_tab, sides)) view.wanted_tab.reset();
  if (!ImGui::BeginTabBar("tabs", ImGuiTabBarFlags_FittingPolicyScroll)) return;
  for (const auto& [tab, name] : tab_names) {
    if (!is_offered(tab, sides)) continue;
    const bool is_wanted = view.wanted_tab == tab;
    const ImGuiTabItemFlags flags = is_wanted ? ImGuiTabItemFlags_SetSelected : 0;
    if (!ImGui::BeginTabItem(titles[static_cast<std::size_t>(tab)], nullptr, flags)) continue;
    view.tab = tab;
    if (is_wanted) view.wanted_tab.reset();
    draw_lower_tab(model, view, tab);
    ImGui::EndTabItem();
  }
  ImGui::EndTabBar();
}

// A handle between the halves.
void draw_splitter(ViewState& view, float height) {
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::InvisibleButton("splitter", {width, 0.5F * em});
  const bool is_hot = ImGui::IsItemHovered() || ImGui::IsItemActive();
  if (ImGui::IsItemActive())
    view.lower_share =
        std::clamp(view.lower_share - ImGui::GetIO().MouseDelta.y / height,
                   static_cast<float>(least_lower_share), static_cast<float>(most_lower_share));
  const float x = at.x + width / 2, y = at.y + 0.25F * em;
  ImGui::GetWindowDrawList()->AddLine({x - 2 * em, y}, {x + 2 * em, y},
                                      ink(is_hot ? theme::accent : theme::line), 3);
}

void draw_right_of_what_if(ViewModel& model, ViewState& view, const Sides& sides) {
  const float em = ImGui::GetFontSize();
  const float height = ImGui::GetContentRegionAvail().y;
  if (height < high_enough * em) {
    view.wanted_tab.reset();
    return draw_timeline(model, view);
  }
  // Nine lines: a heading of a table and enough rows to be a table.
  const float lower = std::max(9 * em, view.lower_share * height);
  ImGui::BeginChild("timeline", {0, height - lower - 0.5F * em - ImGui::GetStyle().ItemSpacing.y},
                    false, ImGuiWindowFlags_NoScrollWithMouse);
  draw_timeline(model, view);
  ImGui::EndChild();
  draw_splitter(view, height);
  ImGui::BeginChild("lower", {sides.has_details ? -details_width * em : 0, 0}, false);
  draw_tabs(model, view, sides);
  ImGui::EndChild();
  if (!sides.has_details) return;
  ImGui::SameLine();
  ImGui::BeginChild("details", {0, 0}, true);
  // Beside the levers their front, until something is selected.
  const bool has_front =
      sides.can_ask && view.tab == Tab::Levers && !view.range && view.selection.is_empty();
  has_front ? draw_front(model, view) : draw_details(model, view);
  ImGui::EndChild();
}

void draw_line_of_empty(std::string_view text) {
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  draw_text(*ImGui::GetWindowDrawList(), {at.x, at.y, at.x + width, at.y + 1.4F * em}, text,
            theme::faint, Align::Center);
  ImGui::Dummy({1, 1.3F * em});
}

// Models to start with, as many in a row as there is room for.
void pick_model(ViewModel& model, ViewState& view) {
  const float em = ImGui::GetFontSize(), width = 13 * em;
  const float room = ImGui::GetContentRegionAvail().x;
  const int columns = std::max(1, static_cast<int>(room / (width + 8)));
  int column = 0;
  for (const Model& known : known_models()) {
    if (column++ % columns != 0) ImGui::SameLine();
    if (!ImGui::Button(fitted(known.name, width - em).c_str(), {width, 0})) continue;
    view.notice = model.start(known.name, view);
    return;
  }
}

void offer_last_session(ViewModel& model, ViewState& view) {
  if (!view.last_session) return;
  const float em = ImGui::GetFontSize(), room = ImGui::GetContentRegionAvail().x;
  const std::string text = fitted("Go on: " + describe(*view.last_session), room - 4 * em);
  ImGui::SetCursorPosX((ImGui::GetWindowWidth() - text_width(text) - 2 * em) / 2);
  view.facts.last_session = ImGui::GetCursorScreenPos().y;
  if (ImGui::Button(text.c_str(), {text_width(text) + 2 * em, 0}))
    open_session(*view.last_session, model, view);
}

void draw_empty(ViewModel& model, ViewState& view) {
  draw_line_of_empty("Nothing is open.");
  draw_line_of_empty(
      "Drop a timeline, snapshot, config.json, trace or session here. Ctrl + Q closes.");
  offer_last_session(model, view);
  if (!model.baseline_path().empty()) return draw_baseline(model, view);
  if (!model.inputs_of) return;
  draw_line_of_empty("Or start with a model:");
  pick_model(model, view);
}

// At the bottom: what is being read, or else what happened last.
void draw_notice(const ViewModel& model, const ViewState& view, float em) {
  const std::string text = model.loading().is_busy() ? model.loading().text() : view.notice;
  if (text.empty()) return;
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const float width = std::min(size.x - 2 * em, text_width(text) + 1.6F * em);
  const Box box{(size.x - width) / 2, size.y - 2.4F * em, (size.x + width) / 2, size.y - 0.8F * em};
  ImDrawList& list = *ImGui::GetForegroundDrawList();
  list.AddRectFilled(box.min(), box.max(), ink(theme::field, 245), 4);
  list.AddRect(box.min(), box.max(), ink(theme::accent, 160), 4);
  draw_text(list, {box.x0 + 0.6F * em, box.y0, box.x1 - 0.6F * em, box.y1}, text, theme::text,
            Align::Center);
}

void draw_contents(ViewModel& model, ViewState& view, float em) {
  const Sides sides = sides_of(model, view, em);
  draw_top_bar(model, view);
  draw_header(model, view);
  if (sides.has_what_if) {
    ImGui::BeginChild("what-if", {what_if_width * em, 0}, true);
    draw_what_if(model, view);
    ImGui::EndChild();
    ImGui::SameLine();
  }
  ImGui::BeginChild("right", {0, 0}, false, ImGuiWindowFlags_NoScrollWithMouse);
  draw_right_of_what_if(model, view, sides);
  ImGui::EndChild();
}

}  // namespace

void draw_frame(ViewModel& model, ViewState& view) {
  const float em = ImGui::GetFontSize();
  // Tests read what this frame drew, not what an earlier one did.
  view.facts = {.has_open_list = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup)};
  view.hovered_lever.clear();
  if (view.closes) model.close(*std::exchange(view.closes, std::nullopt), view);
  if (std::string problem = model.take_opened(view); !problem.empty()) view.notice = problem;
  model.follow_front(view);
  go_on_opening(model, view);
  // A notice stays until the hands do something else: nobody reads at a fixed speed.
  if (ImGui::IsMouseClicked(0)) {
    view.notice.clear();
    ++view.gesture;
    model.forget_before();
  }
  use_keyboard(model, view);
  if (!model.is_empty()) {
    model.follow_axis(view);
    // A slice of the slow work per frame: a frame stays short however large the recording is.
    model.live().look(model.shown(view), view.cursor);
    model.live().advance(slice);
    model.search().look_for(model.shown(view), view.shows_search ? view.search : "");
    model.search().advance(slice);
    view.facts.search_hits = model.search().count();
  }
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
  ImGui::Begin("tidemark", nullptr, root_flags);
  if (model.is_empty()) {
    draw_empty(model, view);
  } else {
    draw_contents(model, view, em);
  }
  ImGui::End();
  ImGui::PopStyleVar();
  if (model.what_if()) model.imagine_levers(view);
  if (!model.is_empty() && view.shows_search) draw_search(model, view);
  if (!model.is_empty() && view.edited_note) draw_note_editor(model, view);
  if (view.saving) draw_saving(view);
  if (view.shows_help) draw_help(view);
  if (view.export_path.empty()) draw_notice(model, view, em);
}

}  // namespace tidemark::gui
