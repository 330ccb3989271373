// The inputs of a prediction. Whatever changes here is predicted again in the same frame.
#include <fmt/format.h>

#include <algorithm>

#include "gui/drawing/widgets.h"
#include "gui/panels/panels.h"
#include "gui/usual_numbers.h"
#include "simulator/strategies/block_list.h"
#include "traces/presets.h"

// Needs imgui.h before it.
#include <imgui_stdlib.h>

namespace tidemark::gui {
namespace {

constexpr std::int64_t largest_batch_offered = 4096;
constexpr std::int64_t longest_sequence_offered = 131'072;
// Multiples of 32 pixels suit the patches and windows of every preset.
constexpr std::int64_t image_grain = 32, largest_image_offered = 1024;

bool sees_images(const Model& model) { return tidemark::sees_images(model.config); }

// What the config itself says: pixels of an image, or positions of a text.
std::int64_t usual_size(const Model& model) {
  return std::visit(
      [](const auto& config) {
        if constexpr (requires { config.sees; }) {
          return config.sees ? config.image : config.positions;
        } else if constexpr (requires { config.image; }) {
          return config.image;
        } else if constexpr (requires { config.positions; }) {
          return std::min<std::int64_t>(config.positions, 2048);
        } else {
          return std::int64_t{512};  // of relative positions: what T5 was trained with
        }
      },
      model.config);
}

void label(std::string_view text) {
  text_line(text, theme::faint);
  ImGui::SetNextItemWidth(-1);
}

// Logarithmic: from 1 to 2 is as much of a change as from 1000 to 2000.
bool slide(const char* id, std::int64_t& value, std::int64_t least, std::int64_t most,
           const char* format) {
  return ImGui::SliderScalar(id, ImGuiDataType_S64, &value, &least, &most, format,
                             ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp);
}

// Snaps to what people use, with a step down and up beside it; any number can be typed.
bool slide_usual(const char* id, std::int64_t& value, std::int64_t least, std::int64_t most,
                 const char* format) {
  const float button = ImGui::GetFrameHeight(), gap = 3;
  ImGui::SetNextItemWidth(-2 * (button + gap));
  bool changed = slide(id, value, least, most, format);
  if (changed && !ImGui::GetIO().WantTextInput) value = std::clamp(usual_near(value), least, most);
  if (ImGui::IsItemHovered() && !ImGui::IsItemActive())
    ImGui::SetTooltip("Ctrl + click: type a number");
  ImGui::PushID(id);
  ImGui::SameLine(0, gap);
  if (ImGui::Button("−", {button, 0})) value = usual_before(value), changed = true;
  ImGui::SameLine(0, gap);
  if (ImGui::Button("+", {button, 0})) value = usual_after(value), changed = true;
  ImGui::PopID();
  value = std::clamp(value, least, most);
  return changed;
}

// A combo box of a table of names; with `usual` for "as the model or framework has it".
template <typename Table, typename Enum>
bool choose_name(const char* id, const Table& table, const char* usual,
                 std::optional<Enum>& value) {
  bool changed = false;
  const std::string now =
      value ? std::string(table[static_cast<std::size_t>(*value)].name) : std::string(usual);
  if (!begin_choice(id, now)) return false;
  if (ImGui::Selectable(usual, !value)) value.reset(), changed = true;
  for (const auto& row : table)
    if (ImGui::Selectable(std::string(row.name).c_str(), value == row.value))
      value = row.value, changed = true;
  ImGui::EndCombo();
  return changed;
}

bool choose_model(Scenario& scenario) {
  label("model");
  if (!begin_choice("##model", scenario.model.name, ImGuiComboFlags_HeightLarge)) return false;
  bool changed = false;
  for (const Model& model : known_models()) {
    if (!ImGui::Selectable(model.name.c_str(), model.name == scenario.model.name)) continue;
    scenario.model = model;
    // What another model was asked with may be no size that this one can have.
    scenario.step.image.reset(), scenario.step.sequence.reset(), scenario.step.head.reset();
    scenario.step.target_sequence.reset();
    changed = true;
  }
  ImGui::EndCombo();
  return changed;
}

bool choose_size(Scenario& scenario) {
  const bool is_image = sees_images(scenario.model);
  auto& chosen = is_image ? scenario.step.image : scenario.step.sequence;
  std::int64_t size = chosen.value_or(usual_size(scenario.model));
  label(is_image ? "image" : "sequence");
  if (!is_image) {
    if (!slide_usual("##sequence", size, 16, longest_sequence_offered, "%lld tokens")) return false;
    chosen = size;
    return true;
  }
  std::int64_t steps = std::max<std::int64_t>(1, size / image_grain);
  const std::string shown = fmt::format("{} pixels", size);
  if (!slide("##image", steps, 1, largest_image_offered / image_grain, shown.c_str())) return false;
  chosen = steps * image_grain;
  return true;
}

bool choose_step(Scenario& scenario, ViewState& view) {
  if (scenario.trace) {
    label("step");
    text_line(scenario.model.title);
    text_line("a trace file: one step as it is", theme::faint);
    return false;
  }
  bool changed = choose_model(scenario);
  label("batch");
  changed |= slide_usual("##batch", scenario.step.batch, 1, largest_batch_offered,
                         scenario.step.batch == 1 ? "%lld sample" : "%lld samples");
  changed |= choose_size(scenario);
  label("precision");
  StepOptions usual = scenario.step;
  usual.precision.reset();
  const std::string default_precision = fmt::format("{} (default)", to_string(precision_of(usual)));
  changed |=
      choose_name("##precision", precisions, default_precision.c_str(), scenario.step.precision);
  label("attention");
  changed |= choose_name("##attention", attentions, "what PyTorch picks (default)",
                         scenario.step.attention);
  changed |= draw_other_inputs(scenario.step, view);
  return changed;
}

bool choose_device(Scenario& scenario) {
  bool changed = false;
  label("device");
  if (begin_choice("##device", scenario.device.title, ImGuiComboFlags_HeightLarge)) {
    for (const Device& device : known_devices())
      if (ImGui::Selectable(device.title.c_str(), device.name == scenario.device.name))
        scenario.device = device, changed = true;
    ImGui::EndCombo();
  }
  bool has_budget = scenario.budget.has_value();
  if (ImGui::Checkbox("budget", &has_budget)) {
    scenario.budget =
        has_budget ? std::optional(memory_budget_of(scenario).capacity) : std::nullopt;
    changed = true;
  }
  if (!scenario.budget) return changed;
  std::int64_t mib = std::max<std::int64_t>(1, scenario.budget->count >> 20);
  const std::int64_t most = std::max<std::int64_t>(mib, scenario.device.capacity.count >> 20);
  ImGui::SetNextItemWidth(-1);
  if (slide("##budget", mib, 64, most, to_text(*scenario.budget).c_str()))
    scenario.budget = Bytes{mib << 20}, changed = true;
  return changed;
}

// What was chosen last replaces what contradicts it.
void choose(StrategySpec::Component& component, const StrategyArguments::Chosen& newest) {
  auto& chosen = component.arguments.chosen;
  std::erase_if(chosen, [&](const auto& other) { return other.name == newest.name; });
  chosen.push_back(newest);
  if (!contradiction_in(*component.row, component.arguments).empty()) chosen = {newest};
}

// Along the numbers that the option takes, or up to a few times the usual one.
bool choose_number(StrategySpec::Component& component, const StrategyOption& option) {
  const std::int64_t number = component.arguments.number(option.name()).value_or(option.usual);
  ImGui::SetNextItemWidth(-1);
  const std::string id = fmt::format("##{} {}", option.name(), component.row->name);
  const std::string_view unit = option.unit.substr(0, option.unit.size() - (number == 1 ? 1 : 0));
  if (option.among.empty()) {
    std::int64_t chosen = number;
    const std::string shown = fmt::format("{} %lld {}", option.name(), unit);
    const std::int64_t most = std::max<std::int64_t>(24, 4 * option.usual);
    if (!slide(id.c_str(), chosen, option.least, most, shown.c_str())) return false;
    choose(component, {std::string(option.name()), chosen});
    return true;
  }
  auto place = std::ranges::find(option.among, number) - option.among.begin();
  const std::string shown = fmt::format("{} {} {}", option.name(), number, unit);
  if (!slide(id.c_str(), place, 0, std::ssize(option.among) - 1, shown.c_str())) return false;
  choose(component, {std::string(option.name()), option.among[static_cast<std::size_t>(place)]});
  return true;
}

bool choose_flag(StrategySpec::Component& component, const StrategyOption& option) {
  bool has = component.arguments.has(option.name());
  if (!ImGui::Checkbox(std::string(option.text).c_str(), &has)) return false;
  if (has) {
    choose(component, {std::string(option.name()), {}});
  } else {
    std::erase_if(component.arguments.chosen,
                  [&](const auto& chosen) { return chosen.name == option.name(); });
  }
  return true;
}

bool choose_options(StrategySpec& spec) {
  if (spec.plan) return false;  // the file says all
  bool changed = false;
  for (auto& component : spec.components)
    for (const StrategyOption& option : component.row->options) {
      if (takes_blocks(option)) continue;  // for plans to choose
      changed |=
          option.takes_number() ? choose_number(component, option) : choose_flag(component, option);
    }
  if (changed) spec.text = strategy_text(spec.components);
  return changed;
}

bool choose_strategy(WhatIf& what_if, ViewModel& model, ViewState& view) {
  StrategySpec& chosen = what_if.strategies.front();
  bool changed = false;
  label("strategy");
  if (begin_choice("##strategy", chosen.text, ImGuiComboFlags_HeightLarge)) {
    // First, because no strategy is faster in its bytes.
    if (ImGui::Selectable("plan for a budget", what_if.planned.has_value()))
      what_if.planned = PlanChoice{memory_budget_of(what_if.scenario).capacity}, changed = true;
    for (const StrategySpec& spec : offered(what_if))
      if (ImGui::Selectable(spec.text.c_str(), !what_if.planned && spec.text == chosen.text))
        chosen = spec, what_if.planned.reset(), changed = true;
    ImGui::EndCombo();
  }
  if (!what_if.planned) return choose_options(chosen) || changed;
  return draw_plan_choice(*what_if.planned, model, view) || changed;
}

bool choose_second(WhatIf& what_if) {
  label("compared with");
  const bool has_second = what_if.strategies.size() > 1;
  const std::string now = has_second ? what_if.strategies[1].text : "nothing";
  if (!begin_choice("##second", now, ImGuiComboFlags_HeightLarge)) return false;
  bool changed = false;
  if (ImGui::Selectable("nothing", !has_second)) what_if.strategies.resize(1), changed = true;
  for (const StrategySpec& spec : offered(what_if)) {
    if (!ImGui::Selectable(spec.text.c_str(), has_second && spec.text == now)) continue;
    what_if.strategies.resize(2);
    what_if.strategies[1] = spec;
    changed = true;
  }
  ImGui::EndCombo();
  return changed;
}

// The other settings of the allocator: what PYTORCH_CUDA_ALLOC_CONF says, letter by letter. What
// cannot be read yet is told below, and the picture stays.
bool type_allocator(std::string& text) {
  label("allocator settings");
  return ImGui::InputTextWithHint("##allocator", "as in PYTORCH_CUDA_ALLOC_CONF", &text);
}

void say_problem(const ViewModel& model) {
  if (!model.problem().empty()) text_wrapped(model.problem(), theme::alarm);
}

// What is shown may be a file that was dropped meanwhile: its numbers are not of these inputs.
void tell_what_is_shown(const ViewModel& model, ViewState& view) {
  if (model.is_prediction(view.shown)) return;
  text_wrapped("These inputs are not of what is shown, " + model.recordings()[view.shown].name,
               theme::alarm);
  if (ImGui::Button("Show their prediction", {-1, 0})) model.show(0, view);
}

}  // namespace

void draw_what_if(ViewModel& model, ViewState& view) {
  if (!model.what_if()) return;
  // A copy: a change that makes no step is told and the picture stays.
  WhatIf what_if = *model.what_if();
  const std::size_t before = what_if.strategies.size();
  tell_what_is_shown(model, view);
  bool changed = choose_step(what_if.scenario, view);
  changed |= choose_strategy(what_if, model, view);
  changed |= choose_second(what_if);
  changed |= choose_device(what_if.scenario);
  changed |= type_allocator(what_if.allocator);
  if (changed) {
    if (!model.is_prediction(view.shown)) model.show(0, view);
    model.ask(what_if, view);
    // Who chooses a second strategy wants to see it.
    if (what_if.strategies.size() == 2 && before == 1) view.against = 1;
  }
  say_problem(model);
  if (!model.command_of) return;
  if (ImGui::Button("Copy as command line", {-1, 0})) {
    const std::string command = model.command_of(*model.what_if());
    ImGui::SetClipboardText(command.c_str());
    view.notice = "copied: " + command;
  }
}

}  // namespace tidemark::gui
