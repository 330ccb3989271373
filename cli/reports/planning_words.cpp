// What is said about a plan in words, in tables and on pages: decisions, proof and advice.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/reports/print_planning.h"
#include "simulator/strategies/block_list.h"
#include "simulator/tensor_roles.h"
#include "traces/replicas.h"

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

std::string whole_text(const PlanGroup& group) {
  if (group.calls.empty()) return "all that each saves";
  return fmt::format("all but what comes of {}", fmt::join(group.calls, ", "));
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
  if (may_couple(request)) verbs.emplace_back("reconstructs");
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

// Two digits: it is a mean over networks that differ by far more.
std::string percent_text(double square) {
  const double percent = 100 * std::sqrt(square);
  return percent < 100 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.0f} %", percent);
}

std::string error_text(const GradientError& error) {
  if (error.square() == 0) return "";
  if (!std::isfinite(error.square()))
    return " How far that takes gradients from exact ones is not known: nobody has measured what "
           "all of these codes and operators do.";
  std::string parts;
  if (error.codes > 0 && error.operators > 0)
    parts = fmt::format(" (codes {}, operators {})", percent_text(error.codes),
                        percent_text(error.operators));
  return fmt::format(
      " Gradients are about {} from exact ones{}, going by small networks at the "
      "start of their training.",
      percent_text(error.square()), parts);
}

// What approximations are there for.
std::string exact_text(const Planning& planning) {
  const PlanRequest& request = planning.request;
  if (!may_approximate(request) || request.form != PlanForm::Tensors) return "";
  if (planning.error.square() == 0)
    return " Gradients are exact: nothing that approximates gains a thousandth.";
  if (!planning.exact) return "";
  const Planning::Exact& exact = *planning.exact;
  if (exact.keeps_all && !request.max_slowdown)
    return fmt::format(
        " All fits with exact gradients, too, in {}: approximations are here because they are "
        "faster, not to save memory (--allow exact approximates nothing).",
        to_text(exact.step));
  if (request.max_slowdown)
    return fmt::format(" With exact gradients {} are needed.", to_text(exact.measured));
  return fmt::format(" With exact gradients it takes {} within the same budget.",
                     to_text(exact.step));
}

std::string bound_text(const Planning& planning) {
  const std::optional<double>& most = planning.request.max_gradient_error;
  return most ? fmt::format(", gradients within {:g} % of exact ones", 100 * *most) : "";
}

// What the proof is about: the budget, or what the plan for a time needs.
Bytes proven_bytes(const Planning& planning) {
  if (!planning.request.max_slowdown) return planning.budget;
  if (!planning.stages.empty()) return most_measured(planning.stages, planning.request.measure);
  return measured(planning.comparison.rows.back(), planning.request.measure);
}

std::string certificate(const Planning& planning) {
  const std::string_view each =
      planning.joins_blocks ? "blocks by themselves or up to {} together" : "each block by itself";
  std::string text = fmt::format(
      "Proof: no plan that {} what blocks save, {}{}{}{}, takes less than {} in {}; "
      "this one is at most {} above that.",
      verbs_of(planning.request), fmt::format(fmt::runtime(each), joined_lengths.back()),
      may_overlap(planning.request) ? ", on one stream or several" : "",
      may_change_operators(planning.request) ? ", with these operators or others" : "",
      bound_text(planning), to_text(planning.lower_bound), to_text(proven_bytes(planning)),
      gap_text(planning.gap));
  if (replicas_of(planning.comparison.scenario.step.mesh) > 1)
    text += " What replicas exchange is hidden in the bound, and simulated in the plan.";
  if (planning.planned.plan.overlap)
    text +=
        " What runs again does so on streams of its own, beside the gradients of what follows it.";
  text += operators_text(planning.planned);
  text += error_text(planning.error);
  text += exact_text(planning);
  if (planning.request.form != PlanForm::Tensors) text += wrapped_blocks(planning);
  if (planning.step_of_tensors)
    text += fmt::format(" The fastest plan of tensors takes {} within the same budget.",
                        to_text(*planning.step_of_tensors));
  text += fmt::format(" Memory is tightest in the {}.", planning.binding);
  if (!planning.advice.empty())
    text += fmt::format(" Faster within the same budget: {}.", advice_text(planning, true));
  return text;
}

// Of a pipeline.
std::string certificate_of_stages(const Planning& planning) {
  const std::string_view each =
      planning.joins_blocks ? "blocks by themselves or up to {} together" : "each block by itself";
  std::string text = fmt::format(
      "Proof: no plans that keep or recompute what blocks of the stages save, {}, take less than "
      "{} together in {} on each; these are at most {} above that.",
      fmt::format(fmt::runtime(each), joined_lengths.back()), to_text(planning.lower_bound),
      to_text(proven_bytes(planning)), gap_text(planning.gap));
  if (replicas_of(planning.comparison.scenario.step.mesh) > 1)
    text += " What replicas exchange is hidden in the bound, and simulated in the plans.";
  return text;
}

std::string refusal_of_time(double slowdown) {
  return fmt::format("No plan is at most {:g} % slower than vanilla.", 100 * slowdown);
}

std::string refusal_of_stages(const Planning& planning) {
  if (planning.request.max_slowdown) return refusal_of_time(*planning.request.max_slowdown);
  std::vector<std::string> without;
  for (const StagePlan& stage : planning.stages)
    if (!stage.is_feasible)
      without.push_back(
          fmt::format("{} needs {} at least ({})", to_text(*stage.report.rank),
                      to_text(measured(stage.report, planning.request.measure)),
                      stage.binding == "optimizer step"
                          ? fmt::format("the optimizer step holds {}", to_text(stage.rest))
                          : fmt::format("memory is tightest in the {}", stage.binding)));
  return fmt::format("No plan keeps to {} {} on every stage: {}.", to_text(planning.budget),
                     to_string(planning.request.measure), fmt::join(without, ", "));
}

// Of the smallest plan, which keeps to the budget where only fragmentation is in its way.
std::string miss(Bytes budget, const Report& smallest) {
  if (smallest.over_budget > Bytes{})
    return fmt::format("The budget of {} is missed by {}.", to_text(budget),
                       to_text(smallest.over_budget));
  return "Fragmentation keeps every plan out of the device's memory.";
}

std::string refusal(const Planning& planning) {
  if (planning.request.max_slowdown) return refusal_of_time(*planning.request.max_slowdown);
  const Report& row = planning.comparison.rows.back();
  const bool is_rest = planning.binding == "optimizer step";
  std::string text = fmt::format(
      "{} No plan below {} {}: {}.", miss(planning.budget, row),
      to_text(measured(row, planning.request.measure)), to_string(planning.request.measure),
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

}  // namespace

std::string operators_text(const PlannedStep& planned) {
  std::string text;
  for (const auto& [row, arguments] : planned.rewrites) {
    if (row->is_another_network) {
      text += fmt::format(" The network is another one, with coupled blocks ({}): {}.", row->source,
                          row->caution);
      continue;
    }
    const std::optional<BlockList> blocks = blocks_of(arguments);
    const bool is_some = blocks && blocks->size() < planned.trace->blocks.size();
    text += fmt::format(" Operators are those of {} in {} ({}; {}).", row->name,
                        is_some ? fmt::format("blocks {}", to_text(*blocks)) : "every block",
                        row->summary, row->source);
  }
  return text;
}

std::vector<GroupLine> group_lines(const Planning& planning, const PlanGroup& group) {
  if (!is_changed(group)) return {{"keep", "all"}};
  std::vector<GroupLine> lines;
  if (!group.operators.empty())
    lines.push_back({"operators", fmt::format("{}", fmt::join(group.operators, ", "))});
  for (const PlanGroup::Decided& decided : group.decided)
    lines.push_back({action_text(decided), planning.request.form != PlanForm::Tensors
                                               ? whole_text(group)
                                               : tensors_text(decided.tensors)});
  return lines;
}

std::string group_name(const PlanGroup& group) {
  if (group.first == group.last) return group.first;
  if (!group.is_block) return fmt::format("{} to {}", group.first, group.last);
  if (group.joined == 1) return fmt::format("{} to {} ({})", group.first, group.last, group.stages);
  return fmt::format("{} to {} ({}, {} as one)", group.first, group.last, group.stages,
                     group.joined);
}

std::string planning_words(const Planning& planning) {
  if (!planning.stages.empty())
    return planning.feasible ? certificate_of_stages(planning) : refusal_of_stages(planning);
  return planning.feasible ? certificate(planning) : refusal(planning);
}

}  // namespace tidemark::cli
