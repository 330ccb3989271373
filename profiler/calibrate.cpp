// Takes the median time by kind and work from small replays, then predicts held-out steps.
#include "profiler/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "profiler/calibration_steps.h"
#include "profiler/replay_report.h"
#include "simulator/cost/cost_model.h"
#include "simulator/simulate.h"

namespace tidemark::profiler {
namespace {

/// Measured times by kind of run and by work, in bins that are half as wide as a doubling.
class Samples {
 public:
  void add(const std::string& key, double work, double time) {
    const auto bin = static_cast<int>(std::floor(2 * std::log2(work)));
    bins_[key][bin].push_back({work, time});
  }

  std::map<std::string, Curve, std::less<>> curves() && {
    std::map<std::string, Curve, std::less<>> result;
    for (auto& [key, bins] : bins_)
      for (auto& [bin, points] : bins) {
        std::ranges::sort(points, {}, [](const CurvePoint& p) { return p.time / p.work; });
        result[key].push_back(points[points.size() / 2]);
      }
    return result;
  }

 private:
  std::map<std::string, std::map<int, std::vector<CurvePoint>>> bins_;
};

ReplayEvaluation replayed(const Trace& trace, const std::string& strategy, const Device& device,
                          Backend& backend) {
  ReplayScenario scenario;
  scenario.trace = std::make_shared<const Trace>(trace);
  scenario.strategy = parse_strategy(strategy);
  scenario.device = device;
  scenario.steps = 3;
  scenario.checks_gradients = false;
  return replay(scenario, backend);
}

void sample(const ReplayEvaluation& evaluation, const Device& device, Samples& samples) {
  const Schedule& schedule = evaluation.predicted.schedule;
  const PlannedStep& planned = evaluation.predicted.planned;
  const std::shared_ptr<const Derived> derived = derived_of(planned);
  const CostModel costs(*planned.trace, derived->needs, device);
  for (const TimedRun& timed : evaluation.measured->runs) {
    const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
    if (!run) continue;
    const double work = CostModel::work_of(costs.of(schedule, *run));
    const auto time = static_cast<double>((timed.end - timed.begin).count());
    if (work > 0 && time > 0) samples.add(costs.curve_key(schedule, *run), work, time);
  }
}

}  // namespace

Calibration calibrate(Backend& backend,
                      const std::function<void(std::size_t, std::size_t)>& progress) {
  const std::vector<CalibrationStep> steps = calibration_steps(), held_out = held_out_steps();
  const std::size_t all = steps.size() * calibration_strategies.size() + held_out.size();
  std::size_t done = 0;
  const auto advance = [&] {
    if (progress) progress(++done, all);
  };
  Calibration result{.device = measure_device(backend), .held_out = {}};
  Samples samples;
  for (const CalibrationStep& step : steps)
    for (const char* strategy : calibration_strategies) {
      const ReplayEvaluation evaluation = replayed(step.trace, strategy, result.device, backend);
      if (evaluation.measured) sample(evaluation, result.device, samples);
      advance();
    }
  result.device.curves = std::move(samples).curves();
  for (const CalibrationStep& step : held_out) {
    const ReplayEvaluation evaluation =
        replayed(step.trace, std::string(reference_strategy().name), result.device, backend);
    if (evaluation.measured)
      result.held_out.push_back(
          {step.name, evaluation.report.predicted.step, evaluation.report.measured.step});
    advance();
  }
  return result;
}

}  // namespace tidemark::profiler
