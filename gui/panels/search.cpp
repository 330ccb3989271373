// Find an op or a tensor by a part of its name.
#include <fmt/format.h>

#include <algorithm>

#include "gui/input.h"
#include "gui/panels/panels.h"

// Needs imgui.h before it.
#include <imgui_stdlib.h>

namespace tidemark::gui {
namespace {

// The buffer of the tensor that is alive at the cursor, or else its first.
std::optional<BufferId> buffer_of(const Opened& opened, TensorId tensor, const ViewState& view) {
  const TensorId storage = opened.trace()[tensor].storage;
  std::optional<BufferId> first;
  for (std::size_t b = 0; b < opened.schedule().buffers.size(); ++b) {
    const Buffer& buffer = opened.schedule().buffers[b];
    if (buffer.tensor != storage || buffer.role == Role::Gradient) continue;
    const auto id = static_cast<BufferId>(b);
    if (opened.buffers().is_alive(id, view.cursor)) return id;
    if (!first) first = id;
  }
  return first;
}

void choose(const Opened& opened, const Hit& hit, ViewState& view) {
  if (hit.op != no_op) {
    select_op(hit.op, view);
    if (const auto runs = opened.runs_of(hit.op); !runs.empty())
      select_run(opened, RunId{runs.front()}, view);
  } else if (const auto buffer = buffer_of(opened, hit.tensor, view)) {
    select_buffer(opened, *buffer, view);
  } else {
    view.notice = opened.trace()[hit.tensor].name + " has no memory of its own in this step";
  }
  reveal(opened, view);
  view.shows_search = false;
}

// "op, linear" or "tensor, 148 MiB", at the right of the line above.
void draw_kind(const Opened& opened, const Hit& hit) {
  const std::string text =
      hit.op != no_op
          ? fmt::format("op, {}", operation_name(opened.trace(), opened.trace()[hit.op]))
          : fmt::format("tensor, {}", to_text(size(opened.trace()[hit.tensor])));
  ImGui::SameLine(std::max(0.0F, ImGui::GetContentRegionMax().x - text_width(text) - 4));
  text_line(text, theme::faint);
}

void draw_hits(const Opened& opened, const Search& search, ViewState& view) {
  const auto& hits = search.hits();
  for (std::size_t i = 0; i < hits.size(); ++i) {
    const bool is_op = hits[i].op != no_op;
    const std::string& name =
        is_op ? opened.trace()[hits[i].op].name : opened.trace()[hits[i].tensor].name;
    const std::string text = fmt::format("  {}##{}", name, i);
    const bool is_chosen = i == view.search_choice;
    if (ImGui::Selectable(text.c_str(), is_chosen)) choose(opened, hits[i], view);
    draw_kind(opened, hits[i]);
    // The list follows the choice, but only while keys move it: else it could not be scrolled.
    if (is_chosen && (repeats(Key::Down) || repeats(Key::Up))) ImGui::SetScrollHereY();
  }
  if (search.count() > hits.size())
    text_line(fmt::format("and {} more: type more of the name", search.count() - hits.size()),
              theme::faint);
}

}  // namespace

void draw_search(ViewModel& model, ViewState& view) {
  const Opened& opened = *model.shown(view);
  const Search& search = model.search();
  const float em = ImGui::GetFontSize();
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float width = std::min(40 * em, window.x - 2 * em);
  ImGui::SetNextWindowPos({(window.x - width) / 2, 4 * em});
  ImGui::SetNextWindowSize({width, std::min(24 * em, window.y - 6 * em)});
  ImGui::Begin("Search", &view.shows_search,
               ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoResize |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoMove);
  // Typing begins at once.
  if (view.focuses_search) ImGui::SetKeyboardFocusHere();
  view.focuses_search = false;
  ImGui::SetNextItemWidth(-1);
  if (ImGui::InputTextWithHint("##text", "a part of the name of an op or tensor", &view.search))
    view.search_choice = 0;
  const std::size_t hits = search.hits().size();
  if (repeats(Key::Down) && view.search_choice + 1 < hits) ++view.search_choice;
  if (repeats(Key::Up) && view.search_choice > 0) --view.search_choice;
  text_line(view.search.empty() ? std::string("Enter goes to the chosen one, Esc closes")
                                : fmt::format("{} found{}", search.count(),
                                              search.is_complete() ? "" : " so far ..."),
            theme::faint);
  ImGui::BeginChild("hits");
  draw_hits(opened, search, view);
  ImGui::EndChild();
  if (was_pressed(Key::Enter) && view.search_choice < hits)
    choose(opened, search.hits()[view.search_choice], view);
  ImGui::End();
}

}  // namespace tidemark::gui
