// One replay from start to end: predict, check gradients, load parameters, take steps, summarize.
#include "profiler/replay_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profiler/gradient_difference.h"
#include "profiler/initial_values.h"
#include "profiler/measured_timeline.h"
#include "profiler/null_backend.h"
#include "profiler/numbers.h"
#include "profiler/process_memory.h"
#include "simulator/cost/cost_model.h"
#include "traces/error.h"

namespace tidemark {
namespace {

// Fills networks with the question's parameters and data.
class Loader {
 public:
  Loader(const ReplayQuestion& question, Backend& backend)
      : question_(question), backend_(backend) {}

  /// Parameters of the strategy's network that make it the same function as vanilla's.
  NamedValues parameters_for(const Trace& trace) const {
    NamedValues values = initial_parameters(*question_.trace, question_.seed);
    // The rewritten network may have parameters of its own.
    add_initial_parameters(values, trace, question_.seed);
    return merge_affine(*question_.trace, trace, std::move(values));
  }

  void load_parameters(Replay& replay) const {
    const NamedValues parameters = parameters_for(replay.trace());
    for_each_storage(replay.trace(), Category::Parameter, [&](TensorId id, const Tensor& tensor) {
      replay.write(id, bytes_of(parameters.at(tensor.name), tensor.dtype).data());
    });
  }

  void load_inputs(Replay& replay, std::int64_t step) const {
    const Trace& trace = replay.trace();
    for_each_storage(trace, Category::Input, [&](TensorId id, const Tensor& tensor) {
      std::vector<double> numbers;
      if (question_.data) numbers = question_.data(trace, id, step);
      if (numbers.empty()) numbers = synthetic_input(trace, id, question_.seed);
      replay.write(id, bytes_of(numbers, tensor.dtype).data());
    });
  }

  StepState state(std::int64_t number) const {
    return {.number = number,
            .seed = question_.seed,
            .adamw = question_.trace->step.optimizer == Optimizer::AdamW,
            .learning_rate = question_.learning_rate};
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
    if (planned.trace == question_.trace) return found;
    return unmerge_gradients(*question_.trace, *planned.trace,
                             initial_parameters(*question_.trace, question_.seed),
                             std::move(found));
  }

 private:
  template <typename Visit>
  static void for_each_storage(const Trace& trace, Category category, Visit visit) {
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
      const auto id = static_cast<TensorId>(t);
      if (trace[id].category == category && trace[id].storage == id) visit(id, trace[id]);
    }
  }

  const ReplayQuestion& question_;
  Backend& backend_;
};

// A coupled network is another function than vanilla's: it has only itself to be compared with.
bool is_rewired(const StrategySpec& strategy) {
  return std::ranges::any_of(strategy.components, [](const StrategySpec::Component& component) {
    return component.row->is_another_network;
  });
}

// Two steps. Nothing if somebody stopped the replay between them.
std::optional<GradientComparison> check_gradients(const ReplayQuestion& question,
                                                  const Loader& loader, const PlannedStep& planned,
                                                  const std::function<bool()>& stop) {
  const bool rewired = is_rewired(question.strategy);
  const auto& trace = rewired ? planned.trace : question.trace;
  const PlannedStep kept{trace, keep_everything(*trace), ""};
  const NamedValues found = loader.gradients(planned);
  if (stop && stop()) return {};
  return GradientComparison{rewired ? "the same network with all activations kept"
                                    : std::string(reference_strategy().name),
                            rewired, gradient_difference(found, loader.gradients(kept))};
}

ReplayNumbers predicted_numbers(const Answer& answer) {
  const Report& report = answer.report;
  return {.live_peak = report.live_peak,
          .at_peak = report.at_peak,
          .planned = report.planned,
          .step = report.step,
          .overlap = report.overlap,
          .recompute = report.recompute,
          .hidden_recompute = report.hidden_recompute};
}

ReplayNumbers measured_numbers(const Schedule& schedule, const Timeline& timeline, Bytes arena) {
  const Peak most = peak(schedule, timeline);
  return {.live_peak = most.bytes,
          .at_peak = most.by_category,
          .planned = arena,
          .step = timeline.duration,
          .overlap = timeline.overlap,
          .recompute = recovery(schedule, timeline),
          .hidden_recompute = hidden_recovery(schedule, timeline)};
}

// The steps of one replay, and what of them goes into the report.
class Session {
 public:
  Session(const ReplayQuestion& question, Backend& backend, const ReplayProgress& progress,
          const std::function<bool()>& stop)
      : question_(question), backend_(backend), progress_(progress), stop_(stop) {}

  ReplayAnswer run() && {
    predict();
    if (!report().applies) return std::move(answer_);
    if (question_.checks_gradients && computes()) {
      report().gradients = check_gradients(question_, loader_, answer_.predicted.planned, stop_);
      if (is_stopped()) return std::move(answer_);
    }
    const std::optional<Bytes> baseline = resident_memory();
    Replay replay(answer_.predicted.planned, backend_);
    if (computes()) loader_.load_parameters(replay);
    const bool is_observed = backend_.ground() == Ground::Process && reset_resident_peak();
    take_steps(replay);
    const std::optional<Bytes> most = resident_peak();
    if (is_observed && baseline && most) report().resident = *most - *baseline;
    report().workspace = replay.workspace(), report().host_memory = replay.host_memory();
    summarize(replay);
    return std::move(answer_);
  }

 private:
  ReplayReport& report() { return answer_.report; }
  bool computes() const { return backend_.ground() != Ground::Addresses; }

  bool is_stopped() {
    const std::int64_t checks = question_.checks_gradients && computes() ? 1 : 0;
    if (progress_) progress_(++done_, checks + question_.warm_up + question_.steps);
    return stop_ && stop_();
  }

  void predict() {
    const Bytes memory = backend_.capacity();
    const Room room{.capacity = memory.count > 0 ? memory : question_.device.capacity};
    answer_.predicted = answer(question_.trace, question_.strategy, question_.device, room);
    report().strategy = question_.strategy.text;
    report().backend = backend_.name(), report().description = backend_.description();
    report().device = question_.device.name;
    report().steps_asked = question_.steps;
    report().reason = answer_.predicted.planned.refusal;
    report().applies = report().reason.empty();
    if (!report().applies) return;
    report().predicted = predicted_numbers(answer_.predicted);
    if (!computes()) charge();
  }

  void charge() {
    const Schedule& schedule = answer_.predicted.schedule;
    const CostModel costs(*answer_.predicted.planned.trace, question_.device);
    std::vector<Charge> charges(schedule.steps.size());
    for (const TimedRun& timed : answer_.predicted.timeline.runs) {
      const Run* run = std::get_if<Run>(&schedule.steps[timed.step]);
      const int kernels = run ? costs.of(schedule, *run).kernels : costs.of_copy({}).kernels;
      charges[timed.step] = {kernels * question_.device.host_launch, timed.end - timed.begin};
    }
    backend_.charge(std::move(charges));
  }

  void take_steps(Replay& replay) {
    for (std::int64_t i = 0; i < question_.warm_up + question_.steps; ++i) {
      // Synthetic inputs are the same in each step, and stay where they are.
      if (computes() && (i == 0 || question_.data)) loader_.load_inputs(replay, i);
      ReplayedStep step = replay.step(loader_.state(i));
      if (!std::isfinite(step.loss))
        throw InputError(fmt::format("step {}: the loss is {} (try another --precision or --seed)",
                                     i, step.loss));
      if (computes()) report().losses.push_back(step.loss);
      if (i >= question_.warm_up) timelines_.push_back(std::move(step.timeline));
      if (is_stopped()) return;
    }
  }

  void summarize(const Replay& replay) {
    report().steps_timed = std::ssize(timelines_);
    if (timelines_.empty()) return;
    std::ranges::sort(timelines_, {}, &Timeline::duration);
    report().fastest = timelines_.front().duration;
    report().slowest = timelines_.back().duration;
    answer_.measured = std::move(timelines_[timelines_.size() / 2]);
    report().measured =
        measured_numbers(replay.schedule(), *answer_.measured, replay.arena_memory());
  }

  const ReplayQuestion& question_;
  Backend& backend_;
  const ReplayProgress& progress_;
  const std::function<bool()>& stop_;
  const Loader loader_{question_, backend_};
  ReplayAnswer answer_;
  std::vector<Timeline> timelines_;
  std::int64_t done_ = 0;
};

}  // namespace

std::optional<double> ReplayNumbers::hidden_share() const {
  if (recompute <= Nanoseconds{0}) return {};
  return static_cast<double>(hidden_recompute.count()) / static_cast<double>(recompute.count());
}

ReplayAnswer replay(const ReplayQuestion& question, Backend& backend,
                    const ReplayProgress& progress, const std::function<bool()>& stop) {
  return Session(question, backend, progress, stop).run();
}

}  // namespace tidemark
