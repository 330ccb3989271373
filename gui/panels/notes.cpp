// Notes and bookmarks: marks in the timeline, their list, and the field to write one in.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/input.h"
#include "gui/navigation.h"
#include "gui/panels/panels.h"
#include "gui/panels/timeline_parts.h"

// Needs imgui.h before it.
#include <imgui_stdlib.h>

namespace tidemark::gui {
namespace {

std::string moment_text(double moment) {
  return to_text(Nanoseconds{static_cast<std::int64_t>(std::round(moment))});
}

void edit(std::size_t note, ViewState& view) {
  view.edited_note = EditedNote{note, view.notes[note]};
  view.focuses_note = true;
}

void erase(std::size_t note, ViewModel& model, ViewState& view) {
  NoteList notes = view.notes;
  notes.erase(notes.begin() + static_cast<std::ptrdiff_t>(note));
  model.change_notes(std::move(notes), view);
}

void keep_edited(ViewModel& model, ViewState& view) {
  const EditedNote edited = *std::exchange(view.edited_note, std::nullopt);
  NoteList notes = view.notes;
  // It may be gone meanwhile, taken back by Ctrl + Z.
  if (edited.index && *edited.index < notes.size()) {
    notes[*edited.index] = edited.note;
  } else {
    notes.push_back(edited.note);
  }
  model.change_notes(std::move(notes), view);
}

// True if the list is another one now.
bool draw_row(std::size_t i, ViewModel& model, ViewState& view) {
  const Opened& opened = *model.shown(view);
  const Note note = view.notes[i];
  const double moment = moment_in(opened, note);
  ImGui::PushID(static_cast<int>(i));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  if (view.facts.notes++ == 0) view.facts.first_note = ImGui::GetCursorScreenPos().y;
  if (ImGui::Selectable(
          moment_text(moment).c_str(), view.cursor_time == moment,
          ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowItemOverlap))
    show_note(opened, note, view);
  number_cell(to_text(opened.memory().total_of(opened.memory().at(moment))), theme::faint);
  text_cell(title_of(note), note.text.empty() ? theme::faint : theme::text);
  ImGui::TableNextColumn();
  if (ImGui::SmallButton("edit")) edit(i, view);
  ImGui::SameLine();
  const bool is_gone = ImGui::SmallButton("delete");
  ImGui::PopID();
  if (is_gone) erase(i, model, view);
  return is_gone;
}

}  // namespace

void draw_notes(ViewModel& model, ViewState& view) {
  const OpenRecording& shown = model.recordings()[view.shown];
  const std::vector<std::size_t> order = notes_about(view.notes, shown.path);
  if (const std::size_t others = view.notes.size() - order.size(); others > 0)
    text_line(fmt::format("{} about other recordings", count_text(others, "note")), theme::faint);
  const ImGuiTableFlags flags =
      ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerV;
  if (!ImGui::BeginTable("notes", 4, flags)) return;
  const float em = ImGui::GetFontSize();
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("time", ImGuiTableColumnFlags_WidthFixed, 6 * em);
  ImGui::TableSetupColumn("live", ImGuiTableColumnFlags_WidthFixed, 6 * em);
  ImGui::TableSetupColumn("note", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, 7 * em);
  ImGui::TableHeadersRow();
  for (const std::size_t i : order)
    if (draw_row(i, model, view)) break;
  ImGui::EndTable();
}

void draw_note_editor(ViewModel& model, ViewState& view) {
  const float em = ImGui::GetFontSize();
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float width = std::min(32 * em, window.x - 2 * em);
  ImGui::SetNextWindowPos({(window.x - width) / 2, 6 * em});
  ImGui::SetNextWindowSize({width, 0});
  bool is_open = true;
  ImGui::Begin("Note", &is_open,
               ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoResize |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoMove);
  Note& note = view.edited_note->note;
  text_line("at " + moment_text(moment_in(*model.shown(view), note)), theme::faint);
  if (view.focuses_note) ImGui::SetKeyboardFocusHere();
  view.focuses_note = false;
  ImGui::SetNextItemWidth(-1);
  const bool is_entered =
      ImGui::InputTextWithHint("##text", "what is here; nothing makes a bookmark", &note.text,
                               ImGuiInputTextFlags_EnterReturnsTrue);
  text_line("Enter keeps it, Esc does not", theme::faint);
  ImGui::End();
  if (is_entered) return keep_edited(model, view);
  if (!is_open) view.edited_note.reset();
}

void draw_note_marks(ImDrawList& list, const TimelinePlaces& places, const ViewModel& model,
                     ViewState& view) {
  const Opened& opened = *model.shown(view);
  float free_from = places.time.x0;  // no text over the text before it
  for (const std::size_t i : notes_about(view.notes, model.recordings()[view.shown].path)) {
    const double moment = moment_in(opened, view.notes[i]);
    if (!places.time.range.contains(moment)) continue;
    const float x = std::floor(places.time.to_pixel(moment)) + 0.5F;
    const float r = 0.35F * places.em, y = places.memory.y1;
    list.AddLine({x, places.axis.y1}, {x, y}, ink(theme::alarm, 120));
    list.AddTriangleFilled({x, y - 2.2F * r}, {x + r, y}, {x - r, y}, ink(theme::alarm));
    ++view.facts.note_marks;
    const std::string& text = view.notes[i].text;
    const float x0 = x + r + 2, width = std::min(text_width(text), 14 * places.em);
    if (text.empty() || x0 < free_from || x0 + 3 * places.em > places.time.x1) continue;
    const Box box{x0, y - 1.35F * places.em, std::min(x0 + width + 6, places.time.x1), y - 2};
    list.AddRectFilled(box.min(), box.max(), ink(theme::plot, 210), 3);
    draw_text(list, {box.x0 + 3, box.y0, box.x1, box.y1}, text, theme::text);
    free_from = box.x1;
  }
}

}  // namespace tidemark::gui
