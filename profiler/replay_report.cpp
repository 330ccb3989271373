// One replay from start to end: predict, check gradients, load parameters, take steps, summarize.
#include "profiler/replay_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "profiler/gradient_difference.h"
#include "profiler/initial_values.h"
#include "profiler/measured_timeline.h"
#include "profiler/null_backend.h"
#include "profiler/numbers.h"
#include "profiler/process_memory.h"
#include "simulator/cost/cost_model.h"
#include "simulator/simulate.h"

namespace tidemark::profiler {
namespace {

// Fills networks with the scenario's parameters and data.
class Loader {
 public:
  Loader(const ReplayScenario& scenario, Backend& backend)
      : scenario_(scenario), backend_(backend) {}

  /// Parameters of the strategy's network that make it the same function as vanilla's.
  NamedValues parameters_for(const Trace& trace) const {
    NamedValues values = initial_parameters(*scenario_.trace, scenario_.seed);
    // The rewritten network may have parameters of its own.
    add_initial_parameters(values, trace, scenario_.seed);
    return merge_affine(*scenario_.trace, trace, std::move(values));
  }

  void load_parameters(Replay& replay) const {
    if (scenario_.repeats_values) return load_repeated(replay);
    const NamedValues parameters = parameters_for(replay.trace());
    for_each_storage(replay.trace(), Category::Parameter, [&](TensorId id, const Tensor& tensor) {
      replay.write(id, bytes_of(parameters.at(tensor.name), tensor.dtype).data());
    });
  }

  void load_inputs(Replay& replay, std::int64_t step) const {
    const Trace& trace = replay.trace();
    for_each_storage(trace, Category::Input, [&](TensorId id, const Tensor& tensor) {
      std::vector<double> numbers;
      if (scenario_.data) numbers = scenario_.data(trace, id, step);
      if (numbers.empty()) numbers = synthetic_input(trace, id, scenario_.seed);
      replay.write(id, bytes_of(numbers, tensor.dtype).data());
    });
  }

  StepState state(std::int64_t number) const {
    return {.number = number, .seed = scenario_.seed, .learning_rate = scenario_.learning_rate};
  }

  /// Gradients of the first step, under the names and in the form that vanilla's have.
  NamedValues gradients(const PlannedStep& planned) const {
    Replay replay(planned, backend_);
    load_parameters(replay);
    load_inputs(replay, 0);
    replay.keep_gradients();
    replay.step(state(0));
    NamedValues found;
    for_each_storage(replay.trace(), Category::Parameter, [&](TensorId id, const Tensor& tensor) {
      std::vector<double> gradient = replay.gradient(id);
      if (!gradient.empty()) found[tensor.name] = std::move(gradient);
    });
    if (planned.trace == scenario_.trace) return found;
    return unmerge_gradients(*scenario_.trace, *planned.trace,
                             initial_parameters(*scenario_.trace, scenario_.seed),
                             std::move(found));
  }

 private:
  void load_repeated(Replay& replay) const {
    constexpr std::int64_t different = 1 << 16;
    const Trace& trace = replay.trace();
    for_each_storage(trace, Category::Parameter, [&](TensorId id, const Tensor& tensor) {
      const auto numbers = initial_parameter(trace, id, scenario_.seed, different);
      replay.write_again_and_again(id, bytes_of(numbers, tensor.dtype));
    });
  }

  template <typename Visit>
  static void for_each_storage(const Trace& trace, Category category, Visit visit) {
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
      const auto id = static_cast<TensorId>(t);
      if (trace[id].category == category && trace[id].storage == id) visit(id, trace[id]);
    }
  }

  const ReplayScenario& scenario_;
  Backend& backend_;
};

// A coupled network is another function than vanilla's: it has only itself to be compared with.
bool is_rewired(const StrategySpec& strategy) {
  return std::ranges::any_of(strategy.components, [](const StrategySpec::Component& component) {
    return component.row->is_another_network;
  });
}

// Two steps. Nothing if somebody stopped the replay between them.
std::optional<GradientComparison> check_gradients(const ReplayScenario& scenario,
                                                  const Loader& loader, const PlannedStep& planned,
                                                  const std::function<bool()>& stop) {
  const bool rewired = is_rewired(scenario.strategy);
  const auto& trace = rewired ? planned.trace : scenario.trace;
  const PlannedStep kept{trace, keep_everything(*trace), ""};
  const NamedValues found = loader.gradients(planned);
  if (stop && stop()) return {};
  return GradientComparison{rewired ? "the same network with all activations kept"
                                    : std::string(reference_strategy().name),
                            rewired, gradient_difference(found, loader.gradients(kept))};
}

ReplayNumbers predicted_numbers(const Evaluation& evaluation) {
  const Report& report = evaluation.report;
  return {.live_peak = report.live_peak,
          .at_peak = report.at_peak,
          .planned = report.planned,
          .step = report.step,
          .overlap = report.overlap,
          .recovery = report.recovery};
}

Timeline median(std::vector<Timeline> timelines) {
  std::ranges::sort(timelines, {}, &Timeline::duration);
  return std::move(timelines[timelines.size() / 2]);
}

ReplayNumbers measured_numbers(const Schedule& schedule, const Timeline& timeline, Bytes arena) {
  const Peak most = peak(schedule, timeline);
  return {.live_peak = most.bytes,
          .at_peak = most.by_category,
          .planned = arena,
          .step = timeline.duration,
          .overlap = timeline.overlap,
          .recovery = {}};
}

// The steps of one replay, and what of them goes into the report.
class Session {
 public:
  Session(const ReplayScenario& scenario, Backend& backend, const ReplayProgress& progress,
          const std::function<bool()>& stop)
      : scenario_(scenario), backend_(backend), progress_(progress), stop_(stop) {}

  ReplayEvaluation run() && {
    predict();
    if (!report().applies) return std::move(evaluation_);
    if (scenario_.checks_gradients && computes()) {
      report().gradients =
          check_gradients(scenario_, loader_, evaluation_.predicted.planned, stop_);
      if (is_stopped()) return std::move(evaluation_);
    }
    run_planned();
    if (overlaps() && !was_stopped_) run_on_one_stream();
    return std::move(evaluation_);
  }

 private:
  ReplayReport& report() { return evaluation_.report; }
  bool computes() const { return backend_.ground() != Ground::Addresses; }

  bool overlaps() const { return evaluation_.predicted.schedule.streams > 1; }

  bool is_stopped() {
    const std::int64_t checks = scenario_.checks_gradients && computes() ? 1 : 0;
    const std::int64_t steps =
        scenario_.warm_up + scenario_.steps + (times_whole_steps() ? steps_run_by_run : 0);
    if (progress_) progress_(++done_, checks + (overlaps() ? 2 : 1) * steps);
    return was_stopped_ = stop_ && stop_();
  }

  void predict() {
    const Bytes memory = backend_.capacity();
    const MemoryBudget budget{.capacity = memory.count > 0 ? memory : scenario_.device.capacity};
    evaluation_.predicted = evaluate(scenario_.trace, scenario_.strategy, scenario_.device, budget);
    report().strategy = scenario_.strategy.text;
    report().backend = backend_.name(), report().description = backend_.description();
    report().device = scenario_.device.name;
    report().steps_asked = scenario_.steps;
    report().reason = evaluation_.predicted.planned.refusal;
    report().applies = report().reason.empty();
    if (!report().applies) return;
    report().predicted = predicted_numbers(evaluation_.predicted);
  }

  // What runs no kernels takes the times that are predicted.
  void charge(const Schedule& schedule, const Timeline& timeline) {
    if (computes()) return;
    const PlannedStep& planned = evaluation_.predicted.planned;
    const std::shared_ptr<const Derived> derived = derived_of(planned);
    const CostModel costs(*planned.trace, derived->needs, scenario_.device);
    std::vector<Charge> charges(schedule.steps.size());
    for (const TimedRun& timed : timeline.runs) {
      const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
      const int kernels = run ? costs.of(schedule, *run).kernels : costs.of_copy({}).kernels;
      charges[timed.step] = {kernels * scenario_.device.host_launch, timed.end - timed.begin};
    }
    backend_.charge(std::move(charges));
  }

  void run_planned() {
    charge(evaluation_.predicted.schedule, evaluation_.predicted.timeline);
    const std::optional<Bytes> baseline = resident_memory();
    Replay replay(evaluation_.predicted.planned, backend_);
    if (computes()) loader_.load_parameters(replay);
    const bool is_observed = backend_.ground() == Ground::Process && reset_resident_peak();
    take_steps(replay);
    const std::optional<Bytes> most = resident_peak();
    if (is_observed && baseline && most) report().resident = *most - *baseline;
    report().workspace = replay.workspace(), report().host_memory = replay.host_memory();
    summarize(replay);
  }

  // To know what the second stream hides.
  void run_on_one_stream() {
    PlannedStep planned = evaluation_.predicted.planned;
    planned.plan = on_one_stream(std::move(planned.plan));
    planned.derived.reset();
    Replay replay(planned, backend_);
    charge(replay.schedule(), simulate(replay.trace(), replay.schedule(), scenario_.device));
    if (computes()) loader_.load_parameters(replay);
    take_steps(replay);
    if (was_stopped_) return;
    report().measured.recovery =
        recovery_time(replay.schedule(), median(std::move(timelines_)), *evaluation_.measured);
    if (times_whole_steps())
      report().measured.recovery->hidden = median_duration() - report().measured.step;
  }

  // Where clocks between runs cost time, steps are timed as a whole; some more tell what the time
  // went to.
  void take_steps(Replay& replay) {
    timelines_.clear(), durations_.clear(), taken_ = 0;
    backend_.time_by(Timing::WholeStep);
    while (taken_ < scenario_.warm_up + scenario_.steps && !was_stopped_) take_step(replay);
    backend_.time_by(Timing::EachRun);
    if (!times_whole_steps() || durations_.empty()) return;
    do take_step(replay);
    while (!was_stopped_ && std::ssize(timelines_) < steps_run_by_run);
  }

  void take_step(Replay& replay) {
    const std::int64_t i = taken_++;
    // Synthetic inputs are the same in each step, and stay where they are.
    if (computes() && (i == 0 || scenario_.data)) loader_.load_inputs(replay, i);
    ReplayedStep step = replay.step(loader_.state(i));
    if (!std::isfinite(step.loss))
      throw InputError(
          fmt::format("step {}: the loss is {} (try another --precision or --seed)", i, step.loss));
    const bool was_asked_for = i < scenario_.warm_up + scenario_.steps;
    if (computes() && !evaluation_.measured && was_asked_for) report().losses.push_back(step.loss);
    if (i >= scenario_.warm_up) {
      const std::optional<Nanoseconds> whole = backend_.step_time();
      if (was_asked_for) durations_.push_back(whole.value_or(step.timeline.duration));
      if (!whole) timelines_.push_back(std::move(step.timeline));
    }
    is_stopped();
  }

  void summarize(const Replay& replay) {
    report().remark = backend_.remark();
    report().steps_timed = std::ssize(durations_);
    if (timelines_.empty()) return;
    const auto [fastest, slowest] = std::ranges::minmax(durations_);
    report().fastest = fastest, report().slowest = slowest;
    evaluation_.measured = median(std::move(timelines_));
    report().measured =
        measured_numbers(replay.schedule(), *evaluation_.measured, replay.arena_memory());
    if (times_whole_steps()) report().run_by_run = report().measured.step;
    report().measured.step = median_duration();
    if (!overlaps())
      report().measured.recovery = recovery_time(replay.schedule(), *evaluation_.measured);
  }

  Nanoseconds median_duration() {
    std::ranges::sort(durations_);
    return durations_[durations_.size() / 2];
  }

  static constexpr std::int64_t steps_run_by_run = 3;  // of which the median is shown
  bool times_whole_steps() const { return backend_.ground() == Ground::Device; }

  const ReplayScenario& scenario_;
  Backend& backend_;
  const ReplayProgress& progress_;
  const std::function<bool()>& stop_;
  const Loader loader_{scenario_, backend_};
  ReplayEvaluation evaluation_;
  std::vector<Timeline> timelines_;
  std::vector<Nanoseconds> durations_;  ///< of the steps that were asked for
  std::int64_t taken_ = 0, done_ = 0;
  bool was_stopped_ = false;
};

}  // namespace

std::optional<double> ReplayNumbers::hidden_share() const {
  if (!recovery || recovery->alone <= Nanoseconds{0}) return {};
  return static_cast<double>(recovery->hidden.count()) /
         static_cast<double>(recovery->alone.count());
}

ReplayEvaluation replay(const ReplayScenario& scenario, Backend& backend,
                        const ReplayProgress& progress, const std::function<bool()>& stop) {
  return Session(scenario, backend, progress, stop).run();
}

}  // namespace tidemark::profiler
