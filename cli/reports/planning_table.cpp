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

std::string action_text(const PlanGroup::Decided& decided) {
  if (decided.bits == 0) return std::string(to_string(decided.action));
  return fmt::format("{}, {} bits", to_string(decided.action), decided.bits);
}

std::string whole_text(const PlanGroup& group) {
  if (group.calls.empty()) return "all that each saves";
  return fmt::format("all but what comes of {}", fmt::join(group.calls, ", "));
}

std::string draw_groups(const Planning& planning, const Style& style) {
  Bytes largest;
  Nanoseconds longest{};
  for (const PlanGroup& group : planning.groups) {
    largest = std::max(largest, group.saved);
    longest = std::max(longest, group.extra);
  }
  const bool is_whole = planning.request.form != PlanForm::Tensors;
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
                     {action_text(decided)},
                     {is_whole ? whole_text(group) : tensors_text(decided.tensors)}});
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

// What plans of the class do with what blocks save.
std::string verbs_of(const PlanRequest& request) {
  std::vector<std::string> verbs = {"keeps"};
  if (!code_bits_of(request).empty()) verbs.emplace_back("codes");
  if (may_offload(request)) verbs.emplace_back("offloads");
  return fmt::format("{} or recomputes", fmt::join(verbs, ", "));
}

// "--optimizer-form fused (19.2 GiB, 181 ms)".
std::string advice_text(const Planning& planning, bool is_feasible) {
  std::vector<std::string> texts;
  for (const Advice& advice : planning.advice)
    if (advice.is_feasible == is_feasible)
      texts.push_back(fmt::format("{} ({}, {})", advice.option, to_text(advice.measured),
                                  to_text(advice.step)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string certificate(const Planning& planning) {
  const Report& row = planning.comparison.rows.back();
  const Bytes bytes =
      planning.request.max_slowdown ? measured(row, planning.request.measure) : planning.budget;
  const std::string_view each =
      planning.joins_blocks ? "blocks by themselves or up to {} together" : "each block by itself";
  std::string text = fmt::format(
      "Proof: no plan that {} what blocks save, {}, takes less than {} in {}; "
      "this one is at most {} above that.",
      verbs_of(planning.request), fmt::format(fmt::runtime(each), joined_lengths.back()),
      to_text(planning.lower_bound), to_text(bytes), gap_text(planning.gap));
  if (planning.request.form != PlanForm::Tensors) text += wrapped_blocks(planning);
  if (planning.step_of_tensors)
    text += fmt::format(" The fastest plan of tensors takes {} within the same budget.",
                        to_text(*planning.step_of_tensors));
  text += fmt::format(" Memory is tightest in the {}.", planning.binding);
  if (!planning.advice.empty())
    text += fmt::format(" Faster within the same budget: {}.", advice_text(planning, true));
  return text;
}

std::string refusal(const Planning& planning) {
  if (planning.request.max_slowdown)
    return fmt::format("No plan is at most {:g} % slower than vanilla.",
                       100 * *planning.request.max_slowdown);
  const Report& row = planning.comparison.rows.back();
  const bool is_rest = planning.binding == "optimizer step";
  std::string text = fmt::format(
      "No plan below {} {}: {}.", to_text(measured(row, planning.request.measure)),
      to_string(planning.request.measure),
      is_rest
          ? fmt::format("the optimizer step holds {}, whatever blocks keep", to_text(planning.rest))
          : fmt::format("memory is tightest in the {}", planning.binding));
  if (const std::string within = advice_text(planning, true); !within.empty())
    text +=
        fmt::format(" With one of these a plan keeps to {}: {}.", to_text(planning.budget), within);
  if (const std::string lower = advice_text(planning, false); !lower.empty())
    text += fmt::format(" These lower it, but not enough by themselves: {}.", lower);
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

std::string draw_forms(const Planning& planning, const Style& style) {
  const Report& vanilla = planning.comparison.rows.front();
  const SizeUnit size(vanilla.allocated_peak);
  const TimeUnit time(vanilla.step);
  TextTable table;
  table.add_column({"form", Align::Left});
  table.add_column({"allocated", Align::Right, 10, std::string(size.name())});
  table.add_column({"step", Align::Right, 10, std::string(time.name())});
  table.add_column({"change"});
  table.add_column({"what to write", Align::Wrapped});
  for (const EmittedForm& form : planning.forms) {
    if (form.paste.empty()) {
      table.add_row({{form.name}, {}, {}, {}, {"nothing of this form keeps to it"}});
      continue;
    }
    const double slowdown = static_cast<double>(form.step.count()) /
                            static_cast<double>(std::max<std::int64_t>(1, vanilla.step.count()));
    table.add_row({{form.name},
                   {size(form.allocated)},
                   {time(form.step)},
                   {change_text(slowdown)},
                   {form.paste}});
  }
  return fmt::format("\nThe same budget, as other programs let you write it:\n{}",
                     table.draw(style));
}

}  // namespace

std::string group_name(const PlanGroup& group) {
  if (group.first == group.last) return group.first;
  if (!group.is_block) return fmt::format("{} to {}", group.first, group.last);
  if (group.joined == 1) return fmt::format("{} to {} ({})", group.first, group.last, group.stages);
  return fmt::format("{} to {} ({}, {} as one)", group.first, group.last, group.stages,
                     group.joined);
}

std::string planning_table(const Planning& planning, const Style& style) {
  std::string text;
  for (const std::string& line : describe_scenario(planning.comparison)) text += line + "\n";
  text += style.paint("All numbers are predicted.", Ink::Dim) + "\n\n";
  text += comparison_rows(planning.comparison, style, "json") + "\n";
  if (!planning.groups.empty()) text += draw_groups(planning, style) + "\n";
  text += wrapped_text(planning.feasible ? certificate(planning) : refusal(planning), style.width);
  text += cautions_text(planning.comparison, style);
  if (!planning.front.empty()) text += draw_front(planning, style);
  if (!planning.forms.empty()) text += draw_forms(planning, style);
  return style.unicode ? text : to_ascii(text);
}

}  // namespace tidemark::cli
