// Writes each component with its flags and its every=K, joined as parse_strategy() reads them.
#include "gui/strategy_text.h"

#include <fmt/format.h>

namespace tidemark::gui {

std::string strategy_text(const StrategySpec& spec) {
  std::string text;
  for (const auto& component : spec.components) {
    if (!text.empty()) text += '+';
    text += component.row->name;
    char separator = ':';
    const auto add = [&](std::string_view option) {
      text += separator;
      text += option;
      separator = ',';
    };
    for (const std::string& flag : component.arguments.flags) add(flag);
    if (component.arguments.every) add(fmt::format("every={}", *component.arguments.every));
  }
  return text;
}

}  // namespace tidemark::gui
