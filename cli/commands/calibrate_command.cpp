// `tidemark calibrate`: prints the measured device, or one fitted to timed steps, and how well it
// predicts.
#include <fmt/format.h>

#include "analysis/rate_fit.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/commands/scenario.h"
#include "cli/commands/timed_steps.h"
#include "cli/text/terminal.h"
#include "cli/text/units_text.h"
#include "profiler/backends.h"
#include "profiler/calibrate.h"

namespace tidemark::cli {
namespace {

// At most 64 lines of what is typed.
constexpr FileKindRow steps_file{FileKind::Settings, "a file of timed steps", Bytes{1 << 20},
                                 "docs/replay.md shows one"};

std::string held_out_text(const profiler::Calibration& calibration) {
  std::string text =
      calibration.held_out.empty()
          ? "no other network was there to be predicted\n"
          : "predicted beside measured, on networks that were not measured for it:\n";
  for (const profiler::HeldOut& step : calibration.held_out) {
    const TimeUnit unit(std::max(step.predicted, step.measured));
    text += fmt::format(
        "  {}: {} {} predicted, {} measured ({})\n", step.step, unit(step.predicted), unit.name(),
        unit(step.measured),
        change_text(static_cast<double>(step.predicted.count()) /
                    static_cast<double>(std::max<std::int64_t>(1, step.measured.count()))));
  }
  if (!calibration.left_out.empty())
    text += fmt::format("left out, because {} has too little memory: {}\n",
                        calibration.device.title, fmt::join(calibration.left_out, "; "));
  return text;
}

double ratio(Nanoseconds predicted, Nanoseconds measured) {
  return static_cast<double>(predicted.count()) / static_cast<double>(measured.count());
}

std::string fit_text(const RateFit& fit, const std::vector<TimedStep>& steps) {
  std::string text = "of the device's own:";
  for (const RateFit::Rate& rate : fit.rates)
    text += fmt::format(" {} {:.2f}{}", rate.name, rate.factor,
                        &rate == &fit.rates.back() ? "\n" : ",");
  text += "predicted beside measured, before and with the fit, and by a fit to all other steps:\n";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Nanoseconds measured = steps[i].measured;
    const TimeUnit unit(measured);
    const RateFit::Step& step = fit.steps[i];
    text += fmt::format("  {} {} measured, {} before, {} fitted, {} left out: {}\n", unit(measured),
                        unit.name(), change_text(ratio(step.before, measured)),
                        change_text(ratio(step.fitted, measured)),
                        change_text(ratio(step.left_out, measured)), steps[i].asked);
  }
  return text;
}

// On a device that differs in rates. Where it cannot be said, the step's place is.
Nanoseconds predicted(const TimedStep& step, const Device& device) {
  Scenario scenario = step.scenario;
  scenario.device = device;
  scenario.device.interconnect = step.scenario.device.interconnect;
  Report row;
  try {
    row = compare_rows(scenario).rows.front();
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", step.place, error.what()));
  }
  if (!row.applies)
    throw InputError(
        fmt::format("{}: {} does not apply: {}", step.place, row.strategy, row.reason));
  return row.step;
}

Result run_fit(const Options& options) {
  if (options.backend) throw UsageError("--from measures nothing (leave --backend out)");
  if (step_of(options).precision)
    throw UsageError("--from has the precision of each step (leave --precision out)");
  const std::vector<TimedStep> steps =
      read_timed_steps(read_file(*options.timed, steps_file), *options.timed);
  std::vector<Nanoseconds> measured;
  for (const TimedStep& step : steps) measured.push_back(step.measured);
  const StepPredictor predict = [&](const Device& device, std::size_t i) {
    return predicted(steps[i], device);
  };
  const RateFit fit = fit_rates(steps.front().scenario.device, measured, predict);
  return {write_device(fit.device), fit_text(fit, steps), ExitCode::Ok};
}

}  // namespace

Result run_calibrate(const Options& options) {
  require_ending(options, ".json", "a device file");
  if (options.timed) return run_fit(options);
  const std::unique_ptr<Backend> backend =
      profiler::find_unwatched_backend(options.backend.value_or("cpu"));
  if (backend->ground() == Ground::Addresses)
    throw UsageError(
        fmt::format("the {} backend has nothing to measure (use cpu or cuda)", backend->name()));
  std::optional<Progress> progress;
  const profiler::Calibration calibration = profiler::calibrate(
      *backend, step_of(options).precision, [&](std::size_t done, std::size_t all) {
        if (!progress) progress.emplace(options, "steps", all);
        (*progress)(done);
      });
  return {write_device(calibration.device), held_out_text(calibration), ExitCode::Ok};
}

}  // namespace tidemark::cli
