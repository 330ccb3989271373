// A plan for people: beside vanilla, decisions by blocks, the certificate in words, the front.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/reports/print_comparison.h"
#include "cli/reports/print_planning.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"
#include "cli/text/wrapping.h"
#include "simulator/tensor_roles.h"

namespace tidemark::cli {
namespace {

// Without what goes with a tensor that is named ("norm1" stands for its mean and variance, too),
// and with one name for all experts.
std::string tensors_text(const std::vector<std::string>& names) {
  const auto goes_with_another = [&](const std::string& name) {
    return std::ranges::any_of(names, [&](const std::string& other) {
      return name.starts_with(other) && name.size() > other.size() && name[other.size()] == '.';
    });
  };
  struct Role {
    std::string name, only;
    std::size_t count = 1;
  };
  std::vector<Role> roles;
  for (const std::string& name : names) {
    if (goes_with_another(name)) continue;
    std::string role = role_of(name);
    const auto known = std::ranges::find(roles, role, &Role::name);
    if (known == roles.end())
      roles.push_back({std::move(role), name});
    else
      ++known->count;
  }
  std::vector<std::string> shown;
  for (const auto& [role, only, count] : roles)
    shown.push_back(count == 1 ? only : fmt::format("{} ({})", role, count));
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::string draw_groups(const Planning& planning, const Style& style) {
  Bytes largest;
  Nanoseconds longest{};
  for (const PlanGroup& group : planning.groups) {
    largest = std::max(largest, group.saved);
    longest = std::max(longest, group.extra);
  }
  const bool is_whole = planning.request.form == PlanForm::Blocks;
  const SizeUnit size(largest);
  const TimeUnit time(longest);
  TextTable table;
  table.add_column({"blocks", Align::Left});
  table.add_column({"saves", Align::Right, 10, std::string(size.name())});
  table.add_column({"costs", Align::Right, 10, std::string(time.name())});
  table.add_column({"decision", Align::Left});
  table.add_column({"tensors", Align::Wrapped});
  for (const PlanGroup& group : planning.groups) {
    std::string name = group_name(group), saves, costs;
    if (!group.decided.empty()) saves = size(group.saved), costs = time(group.extra);
    if (group.decided.empty()) table.add_row({{name}, {}, {}, {"keep"}, {"all"}});
    for (const PlanGroup::Decided& decided : group.decided)
      table.add_row({{std::exchange(name, {})},
                     {std::exchange(saves, {})},
                     {std::exchange(costs, {})},
                     {std::string(to_string(decided.action))},
                     {is_whole ? "all that each saves" : tensors_text(decided.tensors)}});
  }
  return table.draw(style);
}

std::string gap_text(double gap) { return fmt::format("{:.2f} %", std::max(0.0, 100 * gap)); }

// What to type into the model's code.
std::string wrapped_blocks(const Planning& planning) {
  std::vector<std::string> names;
  for (const PlanGroup& group : planning.groups)
    if (!group.decided.empty()) names.push_back(group_name(group));
  if (names.empty()) return " No block has to be wrapped.";
  return fmt::format(" Wrap in torch.utils.checkpoint: {}.", fmt::join(names, ", "));
}

std::string certificate(const Planning& planning) {
  const Report& row = planning.comparison.rows.back();
  const Bytes bytes =
      planning.request.max_slowdown ? measured(row, planning.request.measure) : planning.budget;
  std::string text = fmt::format(
      "Proof: no plan that keeps or recomputes what blocks save, each block by itself, takes less "
      "than {} in {}; this one is at most {} above that.",
      to_text(planning.lower_bound), to_text(bytes), gap_text(planning.gap));
  if (planning.request.form == PlanForm::Blocks) text += wrapped_blocks(planning);
  return text + fmt::format(" Memory is tightest in the {}.", planning.binding);
}

std::string refusal(const Planning& planning) {
  const Report& row = planning.comparison.rows.back();
  std::string text;
  if (planning.request.max_slowdown) {
    text = fmt::format("No plan is at most {:g} % slower than vanilla.",
                       100 * *planning.request.max_slowdown);
  } else {
    text = fmt::format("No plan keeps to {}: the smallest has {} {}, tightest in the {}.",
                       to_text(planning.budget), to_text(measured(row, planning.request.measure)),
                       to_string(planning.request.measure), planning.binding);
  }
  if (planning.rest > planning.budget)
    text += fmt::format(" The optimizer step alone holds {}, whatever blocks keep.",
                        to_text(planning.rest));
  for (const Remedy& remedy : planning.advice)
    text += fmt::format(" {} would need {}{}.", remedy.option, to_text(remedy.allocated),
                        remedy.allocated <= planning.budget ? ", which is within it" : "");
  return text;
}

std::string draw_front(const Planning& planning, const Style& style) {
  const Report& vanilla = planning.comparison.rows.front();
  const SizeUnit size(planning.front.back().budget);
  const TimeUnit time(planning.front.front().report.step);
  TextTable table;
  const std::string measure(to_string(planning.request.measure));
  table.add_column({measure, Align::Right, 10, std::string(size.name())});
  table.add_column({"", Align::Bar, 6});
  table.add_column({"change"});
  table.add_column({"step", Align::Right, 10, std::string(time.name())});
  table.add_column({"change"});
  const auto whole = static_cast<double>(measured(vanilla, planning.request.measure).count);
  for (const FrontPoint& point : planning.front) {
    const double share = static_cast<double>(point.budget.count) / whole;
    const double slowdown = static_cast<double>(point.report.step.count()) /
                            static_cast<double>(std::max<std::int64_t>(1, vanilla.step.count()));
    table.add_row({{size(point.budget)},
                   {"", Ink::Bar, std::min(share, 1.0)},
                   {change_text(share)},
                   {time(point.report.step)},
                   {change_text(slowdown)}});
  }
  return fmt::format("\nThe front, {} of its {} points:\n{}", planning.front.size(),
                     planning.front_size, table.draw(style));
}

}  // namespace

std::string group_name(const PlanGroup& group) {
  if (group.first == group.last) return group.first;
  if (!group.is_block) return fmt::format("{} to {}", group.first, group.last);
  return fmt::format("{} to {} ({})", group.first, group.last, group.stages);
}

std::string planning_table(const Planning& planning, const Style& style) {
  std::string text;
  for (const std::string& line : describe_scenario(planning.comparison)) text += line + "\n";
  text += style.paint("All numbers are predicted.", Ink::Dim) + "\n\n";
  text += comparison_rows(planning.comparison, style, "json") + "\n";
  if (!planning.groups.empty()) text += draw_groups(planning, style) + "\n";
  text += wrapped_text(planning.feasible ? certificate(planning) : refusal(planning), style.width);
  if (!planning.front.empty()) text += draw_front(planning, style);
  return style.unicode ? text : to_ascii(text);
}

}  // namespace tidemark::cli
