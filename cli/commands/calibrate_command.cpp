// `tidemark calibrate`: prints the measured device and how well it predicts other networks.
#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/text/terminal.h"
#include "cli/text/units_text.h"
#include "profiler/backends.h"
#include "profiler/calibrate.h"

namespace tidemark::cli {
namespace {

std::string held_out_text(const profiler::Calibration& calibration) {
  std::string text = "predicted beside measured, on networks that were not measured for it:\n";
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

}  // namespace

Result run_calibrate(const Options& options) {
  require_ending(options, ".json", "a device file");
  const std::unique_ptr<Backend> backend =
      profiler::find_unwatched_backend(options.backend.value_or("cpu"));
  if (backend->ground() == Ground::Addresses)
    throw UsageError(
        fmt::format("the {} backend has nothing to measure (use cpu or cuda)", backend->name()));
  std::optional<Progress> progress;
  const profiler::Calibration calibration =
      profiler::calibrate(*backend, [&](std::size_t done, std::size_t all) {
        if (!progress) progress.emplace(options, "steps", all);
        (*progress)(done);
      });
  return {write_device(calibration.device), held_out_text(calibration), ExitCode::Ok};
}

}  // namespace tidemark::cli
