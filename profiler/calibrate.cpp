// Takes the median time by kind and work from replays, then predicts held-out steps.
#include "profiler/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "profiler/calibration_steps.h"
#include "profiler/replay_report.h"
#include "simulator/cost/cost_model.h"
#include "simulator/cost/curve_keys.h"
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

/// Beside the arena a device holds CUDA's context, about 0.5 GiB on an H100, and the kernels'
/// scratch. Assumed.
constexpr Bytes beside_the_arena{std::int64_t{1} << 30};

class Calibrator {
 public:
  Calibrator(Backend& backend, std::optional<Precision> precision,
             const std::function<void(std::size_t, std::size_t)>& progress)
      : backend_(backend), precision_(precision), progress_(progress) {}

  Calibration run() && {
    const std::vector<CalibrationStep> steps = wanted(calibration_steps(backend_.ground()));
    const std::vector<CalibrationStep> held_out = wanted(held_out_steps(backend_.ground()));
    if (steps.empty())
      throw UsageError(
          fmt::format("no step is measured in {} (give fp32, bf16, amp-fp16 or amp-bf16)",
                      to_string(*precision_)));
    all_ = steps.size() * calibration_strategies.size() + held_out.size();
    result_.device = measure_device(backend_);
    clock_cost_ = clock_cost(backend_);
    for (const CalibrationStep& step : steps)
      for (const char* strategy : calibration_strategies)
        if (const auto evaluation = replayed(step, strategy)) sample(*evaluation);
    result_.device.curves = std::move(samples_).curves();
    for (const CalibrationStep& step : held_out)
      if (const auto evaluation = replayed(step, std::string(reference_strategy().name)))
        result_.held_out.push_back(
            {step.name, evaluation->report.predicted.step, evaluation->report.measured.step});
    return std::move(result_);
  }

 private:
  std::vector<CalibrationStep> wanted(std::vector<CalibrationStep> steps) const {
    std::erase_if(steps, [&](const CalibrationStep& step) {
      return precision_ && precision_of(step.trace.step) != *precision_;
    });
    return steps;
  }

  /// Nothing where the strategy does not apply, or the device has no room.
  std::optional<ReplayEvaluation> replayed(const CalibrationStep& step,
                                           const std::string& strategy) {
    if (progress_) progress_(++done_, all_);
    ReplayScenario scenario;
    scenario.trace = std::make_shared<const Trace>(step.trace);
    scenario.strategy = parse_strategy(strategy);
    scenario.device = result_.device;
    scenario.steps = 3;
    scenario.warm_up = usual_warm_up(backend_.ground());
    scenario.checks_gradients = false;
    scenario.repeats_values = true;
    if (!fits(scenario)) {
      result_.left_out.push_back(fmt::format("{}, {}", step.name, strategy));
      return {};
    }
    ReplayEvaluation evaluation = replay(scenario, backend_);
    if (!evaluation.measured) return {};
    return evaluation;
  }

  bool fits(const ReplayScenario& scenario) const {
    if (backend_.ground() != Ground::Device) return true;
    const MemoryBudget all{.capacity = backend_.capacity()};
    const Evaluation planned = evaluate(scenario.trace, scenario.strategy, scenario.device, all);
    return planned.report.planned + beside_the_arena <= backend_.capacity();
  }

  void sample(const ReplayEvaluation& evaluation) {
    const Schedule& schedule = evaluation.predicted.schedule;
    const PlannedStep& planned = evaluation.predicted.planned;
    const std::shared_ptr<const Derived> derived = derived_of(planned);
    const CostModel costs(*planned.trace, derived->needs, result_.device);
    for (const TimedRun& timed : evaluation.measured->runs) {
      const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
      if (!run) continue;
      const auto promised = static_cast<double>(costs.of(schedule, *run).time.count());
      const auto time = static_cast<double>((timed.end - timed.begin - clock_cost_).count());
      if (promised <= 0 || time <= 0) continue;
      const CurveKeys keys = curve_keys(*planned.trace, schedule, *run);
      samples_.add(keys.kind, promised, time);
      if (keys.alike != keys.kind) samples_.add(keys.alike, promised, time);
    }
  }

  Backend& backend_;
  std::optional<Precision> precision_;
  const std::function<void(std::size_t, std::size_t)>& progress_;
  std::size_t done_ = 0, all_ = 0;
  Nanoseconds clock_cost_{};
  Samples samples_;
  Calibration result_{.device = {}, .held_out = {}, .left_out = {}};
};

}  // namespace

Calibration calibrate(Backend& backend, std::optional<Precision> precision,
                      const std::function<void(std::size_t, std::size_t)>& progress) {
  return Calibrator(backend, precision, progress).run();
}

}  // namespace tidemark::profiler
