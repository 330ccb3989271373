// Tries levers as the command line does, and changes inputs by what their names say.
#include "gui/levers.h"

#include <algorithm>

namespace tidemark::gui {
namespace {

constexpr std::string_view conf = "--alloc-conf ";

std::shared_ptr<const LeverTable> try_all(const LeverQuestion& question,
                                          const Levers::Watch& watch) {
  try {
    auto table = std::make_shared<const LeverTable>(try_levers(
        question.scenario, question.strategy,
        [&](const LeverTable& part) { watch.show(std::make_shared<const LeverTable>(part)); },
        watch.is_outdated));
    if (watch.is_outdated()) throw Outdated();
    return table;
  } catch (const InputError&) {  // what is wrong is said where the step itself is predicted
    return nullptr;
  }
}

// The window keeps the allocator's settings as they are typed.
void pull(const Lever& lever, WhatIf& what_if) {
  if (!lever.option.starts_with(conf)) return lever.set(what_if.scenario);
  if (!what_if.allocator.empty()) what_if.allocator += ',';
  what_if.allocator += lever.option.substr(conf.size());
}

void pull_option(const std::vector<Lever>& all, const TriedLever& tried, WhatIf& what_if) {
  const auto lever = std::ranges::find(all, tried.name, &Lever::option);
  if (lever != all.end()) pull(*lever, what_if);
}

// "checkpoint" and "lowmemorybp+checkpoint" are "checkpoint+lowmemorybp".
std::string joined(const std::string& a, const std::string& b) {
  std::string text = a;
  for (std::size_t begin = 0; begin < b.size();) {
    const std::size_t end = std::min(b.find('+', begin), b.size());
    const std::string part = b.substr(begin, end - begin);
    if (("+" + text + "+").find("+" + part + "+") == text.npos) text += "+" + part;
    begin = end + 1;
  }
  return text;
}

}  // namespace

std::vector<const TriedLever*> levers_named(const LeverTable& table,
                                            std::span<const std::string> names) {
  std::vector<const TriedLever*> found;
  for (const std::string& name : names)
    if (const auto lever = std::ranges::find(table.tried, name, &TriedLever::name);
        lever != table.tried.end())
      found.push_back(&*lever);
  return found;
}

Levers::Levers() : Newest(try_all) {}

WhatIf with(const WhatIf& what_if, std::span<const TriedLever* const> levers) {
  WhatIf changed = what_if;
  const std::vector<Lever> options = levers_of(scenario_of(what_if));
  std::string strategy;
  for (const TriedLever* lever : levers) {
    switch (lever->kind) {
      case LeverKind::Strategy:
        strategy = strategy.empty() ? lever->name : joined(strategy, lever->name);
        break;
      case LeverKind::Plan:
        changed.planned = PlanChoice{lever->budget};
        break;
      case LeverKind::Option:
        pull_option(options, *lever, changed);
        break;
    }
  }
  if (strategy.empty()) return changed;
  const auto offers = offered(what_if);  // a plan file is no name that can be parsed
  const auto offer = std::ranges::find(offers, strategy, &StrategySpec::text);
  changed.strategies.front() = offer == offers.end() ? parse_strategy(strategy) : *offer;
  changed.planned.reset();
  return changed;
}

WhatIf imagined(const WhatIf& what_if, const LeverTable& table,
                std::span<const TriedLever* const> levers) {
  WhatIf changed = with(what_if, levers);
  changed.strategies.resize(1);
  for (const TriedLever* lever : levers)
    for (const FrontPoint& point : table.plans.points)
      if (lever->kind == LeverKind::Plan && changed.planned && point.budget == lever->budget)
        changed.strategies.front() = strategy_of(point);
  return changed;
}

Imagined::Imagined()
    : Newest([](const WhatIf& what_if, const Watch&) -> std::shared_ptr<const Prediction> {
        try {
          return std::make_shared<const Prediction>(predict(what_if).front());
        } catch (const InputError&) {  // a plan of other inputs, for one
          return nullptr;
        }
      }) {}

}  // namespace tidemark::gui
