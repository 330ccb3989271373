// Reads a field as text, makes the step anew with one text changed, and lists a field's choices.
#include "gui/step_text.h"

#include <algorithm>
#include <array>

namespace tidemark::gui {
namespace {

constexpr std::array<std::string_view, 5> drawn_elsewhere = {"batch", "sequence", "image",
                                                             "precision", "attention"};

bool is_switch(const StepField& field) { return field.switches.front().value.empty(); }

}  // namespace

std::vector<const StepField*> other_fields() {
  std::vector<const StepField*> fields;
  for (const StepField& field : step_fields())
    if (std::ranges::find(drawn_elsewhere, field.key) == drawn_elsewhere.end())
      fields.push_back(&field);
  return fields;
}

std::string typed(const StepField& field, const StepOptions& step) {
  const auto value = field.value(step);
  return value ? to_text(*value) : "";
}

// Fields cannot be unset one by one: all others are said again.
StepOptions with_typed(const StepField& field, const StepOptions& step, std::string_view text) {
  StepOptions anew;
  for (const StepField& other : step_fields()) {
    const std::string said = other.key == field.key ? std::string(text) : typed(other, step);
    if (!said.empty()) other.read_text(other, anew, said);
  }
  return anew;
}

StepOptions without(std::string_view key, const StepOptions& step) {
  for (const StepField& field : step_fields())
    if (field.key == key) return with_typed(field, step, "");
  return step;
}

std::vector<StepChoice> choices_of(const StepField& field) {
  std::vector<StepChoice> choices;
  for (const std::string_view name : field.choices())
    choices.push_back({std::string(name), std::string(name)});
  if (is_switch(field))
    for (const bool is_on : {true, false})
      choices.push_back({in_words(field, is_on), to_text(is_on)});
  const bool can_be_unset = !field.value({});
  if (!choices.empty() && can_be_unset) choices.insert(choices.begin(), {"default", ""});
  return choices;
}

}  // namespace tidemark::gui
