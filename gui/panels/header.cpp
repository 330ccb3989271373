// The row of numbers and choices: what the step takes, and all that is not the default.
#include "gui/header.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/drawing/widgets.h"
#include "gui/panels/panels.h"
#include "gui/step_text.h"
#include "simulator/cost/usual_device.h"

namespace tidemark::gui {
namespace {

// On the same line where it fits, else on the next.
class Flow {
 public:
  void next(float width) {
    const float gap = 0.9F * ImGui::GetFontSize();
    if (!is_first_ && ImGui::GetItemRectMax().x + gap + width < right_) ImGui::SameLine(0, gap);
    is_first_ = false;
  }

 private:
  float right_ = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  bool is_first_ = true;
};

float width_of(const Gauge& gauge) {
  const float gap = 0.4F * ImGui::GetFontSize();
  return text_width(gauge.name) + gap +
         text_width(gauge.widest.empty() ? gauge.value : gauge.widest);
}

void draw_gauge(const Gauge& gauge) {
  const float right = ImGui::GetCursorScreenPos().x + width_of(gauge);
  ImGui::BeginGroup();
  text_line(gauge.name, theme::faint);
  ImGui::SameLine(0, 0.4F * ImGui::GetFontSize());
  text_line(gauge.value, gauge.is_too_much ? theme::alarm : theme::bright);
  if (!gauge.change.empty()) {
    ImGui::SameLine(0, 0.5F * ImGui::GetFontSize());
    text_line(gauge.change, gauge.is_more ? theme::alarm : theme::accent);
  }
  // Room for what it may say later.
  ImGui::SameLine(0, 0);
  ImGui::Dummy({std::max(0.0F, right - ImGui::GetCursorScreenPos().x), 1});
  ImGui::EndGroup();
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", gauge.meaning.c_str());
}

bool choose_strategy(WhatIf& what_if) {
  for (const StrategySpec& spec : offered(what_if)) {
    if (!ImGui::Selectable(spec.text.c_str(), spec.text == what_if.strategies.front().text))
      continue;
    what_if.strategies.front() = spec;
    what_if.planned.reset();
    return true;
  }
  return false;
}

// Back to what it is where nothing is said.
void reset(const std::string& key, WhatIf& what_if) {
  if (key == "strategy") {
    what_if.strategies.front() = parse_strategy(reference_strategy().name);
    what_if.planned.reset();
  } else if (key == "device") {
    what_if.scenario.device = find_device(std::string(usual_device));
  } else if (key == "budget") {
    what_if.scenario.budget.reset();
  } else if (key == "allocator") {
    what_if.allocator.clear();
  } else {
    what_if.scenario.step = without(key, what_if.scenario.step);
  }
}

bool change(const Chip& chip, WhatIf& what_if, ViewState& view) {
  if (ImGui::Selectable("default")) {
    reset(chip.key, what_if);
    return true;
  }
  if (chip.key == "strategy") return choose_strategy(what_if);
  return draw_input(chip.key, what_if.scenario.step, view);
}

void draw_chip(const Chip& chip, ViewModel& model, ViewState& view) {
  ImGui::PushID(chip.text.c_str());
  if (ImGui::SmallButton(chip.text.c_str())) ImGui::OpenPopup("chip");
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("not the default: click to change it");
  if (begin_menu("chip")) {
    WhatIf what_if = *model.what_if();
    if (change(chip, what_if, view)) {
      model.ask(std::move(what_if), view);
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopID();
}

void draw_label(const Chip& chip) { text_line(chip.text, theme::faint); }

}  // namespace

void draw_header(ViewModel& model, ViewState& view) {
  const Opened& opened = *model.shown(view);
  const Report* report = model.report_of(view.shown);
  const bool is_prediction = model.is_prediction(view.shown);
  Flow flow;
  for (const Gauge& gauge :
       gauges_of(opened, report, is_prediction ? model.report_before() : nullptr)) {
    flow.next(width_of(gauge));
    draw_gauge(gauge);
  }
  const float chip_frame = 2 * ImGui::GetStyle().FramePadding.x;
  for (const Chip& chip : is_prediction ? chips_of(*model.what_if()) : chips_of(opened.recording)) {
    flow.next(text_width(chip.text) + chip_frame);
    is_prediction ? draw_chip(chip, model, view) : draw_label(chip);
  }
  if (report && !report->caution.empty()) {
    const std::string caution = "⚠ " + report->caution;
    flow.next(text_width(caution));
    fitted_line(caution, theme::alarm);
    view.facts.caution = ImGui::GetItemRectMax().y;
  }
}

}  // namespace tidemark::gui
