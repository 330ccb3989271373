// `tidemark plan`: the fastest plan within a budget, or the smallest within a time.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "analysis/export/pictures.h"
#include "analysis/planning/planning.h"
#include "base/error.h"
#include "base/files.h"
#include "base/quoted.h"
#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/commands/interrupt.h"
#include "cli/commands/scenario.h"
#include "cli/reports/print_planning.h"
#include "simulator/plan_json.h"

namespace tidemark::cli {
namespace {

constexpr std::size_t front_points = 24;

// "10%" is 0.1. Without the sign it would be a guess.
double parse_share(std::string_view option, std::string_view text, std::string_view whole,
                   std::string_view example) {
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || (unit != "%" && unit != " %") || !std::isfinite(percent) ||
      percent < 0 || percent > 1e6)
    throw UsageError(fmt::format("{}: {} is no share of {} (write {})", option,
                                 tidemark::quoted(text), whole, example));
  return percent / 100;
}

double parse_error(std::string_view text, const PlanRequest& request) {
  constexpr std::string_view option = "--max-gradient-error";
  if (!may_approximate(request))
    throw UsageError(fmt::format(
        "{}: gradients are exact without --allow lossy or anything (add one of them)", option));
  const double error = parse_share(option, text, "the gradients", "5%");
  if (error == 0)
    throw UsageError(fmt::format(
        "{} {}: nothing approximate is left then (leave it out, and lossy)", option, text));
  return error;
}

// "exact,offload": exact is always allowed. "all" is what many would type for anything.
std::vector<Allowed> parse_allowed(std::string_view list) {
  std::vector<Allowed> found;
  while (true) {
    const std::size_t end = list.find(',');
    if (list.substr(0, end) == "all")
      throw UsageError("unknown allowance 'all' (did you mean 'anything'?)");
    found.push_back(parse_name(allowances, "allowance", list.substr(0, end)));
    if (end == std::string_view::npos) return found;
    list.remove_prefix(end + 1);
  }
}

PlanRequest request_of(const Options& options, const Scenario& scenario) {
  if (options.budget && options.max_slowdown)
    throw UsageError(
        "--budget asks for the least time, --max-slowdown for the least memory (give one of them)");
  PlanRequest request{.budget = scenario.budget};
  if (options.measure) request.measure = parse_name(measures, "measure", *options.measure);
  if (options.form) request.form = parse_name(plan_forms, "form", *options.form);
  if (options.max_slowdown)
    request.max_slowdown = parse_share("--max-slowdown", *options.max_slowdown, "a step", "10%");
  if (options.allow) request.allowed = parse_allowed(*options.allow);
  if (options.max_gradient_error)
    request.max_gradient_error = parse_error(*options.max_gradient_error, request);
  if (options.host_budget) {
    if (!may_offload(request))
      throw UsageError("--host-budget: nothing goes to the host without --allow exact,offload");
    request.host_budget = parse_size(*options.host_budget, "--host-budget");
  }
  if (may_offload(request) && scenario.device.host_link_bytes_per_second <= 0)
    throw UsageError(fmt::format("--allow offload: nothing is known of {}'s link to the host",
                                 scenario.device.title));
  request.lists_forms = options.forms;
  if (options.front) request.front_points = front_points;
  return request;
}

std::string print(const Planning& planning, Format format, const Options& options) {
  return written_as(format,
                    {{Format::Json, [&] { return planning_json(planning); }},
                     {Format::Html, [&] { return planning_html(planning); }},
                     {Format::Svg, [&] { return exports::fronts_svg(fronts_picture(planning)); }},
                     {Format::Table, [&] { return planning_table(planning, style_of(options)); }}});
}

std::string save_plan(const Planning& planning, const Options& options) {
  const std::string& path = *options.plan_out;
  if (!planning.feasible)
    return fmt::format("{}: not written, because no plan keeps the budget\n", printable(path, 200));
  write_file(path, plan_text(planning));
  return fmt::format("{}: written; tidemark compare {}{}{} --plan {} shows it beside the others\n",
                     printable(path, 200), shell_quoted(options.subject), as_typed(options, "step"),
                     as_typed(options, "device"), shell_quoted(path));
}

std::string save_script(const Planning& planning, const Options& options) {
  const std::string& path = *options.python_out;
  if (!planning.feasible)
    return fmt::format("{}: not written, because no plan keeps the budget\n", printable(path, 200));
  write_file(path, checkpoint_script(planning));
  return fmt::format("{}: written; its apply(model) wraps the blocks\n", printable(path, 200));
}

Planning watched_plan(const Scenario& scenario, const PlanRequest& request,
                      const Options& options) {
  const Interrupt interrupt;
  const Progress progress(options, "", 0);
  return plan_within(scenario, request,
                     {.tell = [&](std::string_view what) { progress.within(what); },
                      .is_stopped = [&] { return interrupt.came(); }});
}

}  // namespace

Result run_plan(const Options& options) {
  const Format format = format_of(options, for_plan);
  const Scenario scenario = scenario_of(options);
  PlanRequest request = request_of(options, scenario);
  if (format == Format::Svg || format == Format::Html) request.front_points = front_points;
  if (options.python_out && request.form == PlanForm::Tensors)
    throw UsageError(
        "--python-out: PyTorch wraps blocks or keeps calls, not single tensors (add --form policy "
        "or --form blocks)");
  if (options.python_out && scenario.step.mesh[Axis::Pipeline] > 1)
    throw UsageError("--python-out: not for a pipeline, whose stages have a plan each");
  for (const auto& path : {options.plan_out, options.python_out})
    if (path) require_writable(*path);
  const Planning planning = watched_plan(scenario, request, options);
  Result result{print(planning, format, options), notes_on(scenario), ExitCode::Ok};
  if (planning.is_stopped) result.notes += "stopped: the best plan that was found by then\n";
  if (options.plan_out) result.notes += save_plan(planning, options);
  if (options.python_out) result.notes += save_script(planning, options);
  if (options.require_fit && !planning.feasible) result.exit_code = ExitCode::DoesNotFit;
  return result;
}

}  // namespace tidemark::cli
