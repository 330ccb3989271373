// Evaluates a strategy beside vanilla, then finds its peak, who is alive there and why.
#include "analysis/explanation.h"

#include <algorithm>

#include "analysis/export/stacks.h"
#include "analysis/pipeline_timeline.h"
#include "simulator/needs.h"

namespace tidemark {
namespace {

Nanoseconds first_run(const Evaluation& evaluation, Task task) {
  for (const TimedRun& run : evaluation.timeline.runs) {
    const Run* step = std::get_if<Run>(&evaluation.schedule.steps[run.step]);
    if (step && step->task == task) return run.begin;
  }
  return evaluation.timeline.duration;
}

Phase phase_of(Task task) {
  if (task == Task::Optimizer) return Phase::Optimizer;
  return task == Task::Forward || task == Task::Quantize ? Phase::Forward : Phase::Backward;
}

// Of the run for which the buffer is allocated.
Phase phase_of(const Schedule& schedule, BufferId buffer) {
  const auto allocates = [&](const Step& step) {
    const auto* allocate = std::get_if<Allocate>(&step);
    return allocate && allocate->buffer == buffer;
  };
  const StreamId stream = schedule[buffer].stream;
  const auto first = std::ranges::find_if(schedule.steps, allocates);
  for (auto step = first; step != schedule.steps.end(); ++step)
    if (const Run* run = std::get_if<Run>(&*step); run && run->stream == stream)
      return phase_of(run->task);
  return Phase::Optimizer;
}

void find_peak(Explanation& explanation, const Peak& top) {
  const Timeline& timeline = explanation.evaluation.timeline;
  explanation.backward_begin = std::min(first_run(explanation.evaluation, Task::Seed),
                                        first_run(explanation.evaluation, Task::Backward));
  explanation.optimizer_begin = first_run(explanation.evaluation, Task::Optimizer);
  if (top.event >= timeline.memory.size()) return;  // before the first run
  const MemoryEvent& event = timeline.memory[top.event];
  explanation.peak_time = event.time;
  explanation.peak_phase = phase_of(explanation.evaluation.schedule, event.buffer);
}

void describe_decision(const Plan& plan, const Needs& needs, const Buffer& buffer,
                       AliveBuffer& alive) {
  if (buffer.persistent) alive.decision = "persistent";
  const bool holds_value = buffer.role == Role::Value || buffer.role == Role::Codes;
  if (buffer.persistent || buffer.tensor == no_tensor || !holds_value) return;
  const std::size_t t = index(buffer.tensor);
  const bool is_saved = needs.uses[t] > 0 || plan.decisions[t].action != Action::Keep;
  alive.decision = is_saved ? to_string(plan.decisions[t].action) : "not saved";
  if (is_saved) alive.reason = plan.reasons[plan.decisions[t].reason];
}

// Buffers of several weights have the name of the first. Megatron-LM's dummies of gradients are of
// one; ZeRO's partition is of parts of them.
std::string shared_of(const Trace& trace, const Buffer& buffer) {
  const bool is_named = buffer.role == Role::Temporary && buffer.tensor != no_tensor &&
                        trace[buffer.tensor].category == Category::Parameter;
  if (!is_named) return "";
  if (buffer.category == Category::Communication) return "a buffer";
  const std::optional<Sharding> sharing = sharing_of(trace.step);
  if (buffer.category != Category::Gradient || !sharing) return "";
  if (is_zero(sharing->kind)) return "gradients";
  return buffer.size > size(trace[buffer.tensor]) ? "main gradients" : "";
}

void list_alive(Explanation& explanation, const Peak& top, const Needs& needs) {
  const auto& [planned, schedule, timeline, report] = explanation.evaluation;
  const std::vector<std::string> blocks = exports::blocks_by_tensor(*planned.trace);
  const std::vector<std::string_view> lines = lines_by_tensor(*planned.trace);
  for (const BufferId id : alive_after(schedule, timeline, top.event)) {
    const Buffer& buffer = schedule[id];
    AliveBuffer alive{"", buffer.role, buffer.category, buffer.size, "", "", ""};
    if (buffer.tensor != no_tensor) {
      alive.tensor = (*planned.trace)[buffer.tensor].name;
      alive.block = blocks[index(buffer.tensor)];
      alive.line = lines[index(buffer.tensor)];
      alive.shared = shared_of(*planned.trace, buffer);
    }
    describe_decision(planned.plan, needs, buffer, alive);
    explanation.alive.push_back(std::move(alive));
  }
  std::ranges::stable_sort(explanation.alive, std::greater(), &AliveBuffer::size);
}

void group_decisions(Explanation& explanation, const Needs& needs) {
  const Trace& trace = *explanation.evaluation.planned.trace;
  const Plan& plan = explanation.evaluation.planned.plan;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const Tensor& tensor = trace.tensors[t];
    if (tensor.storage != static_cast<TensorId>(t) || tensor.category == Category::Parameter)
      continue;
    if (needs.uses[t] == 0 && plan.decisions[t].action == Action::Keep) continue;
    const std::string& reason = plan.reasons[plan.decisions[t].reason];
    auto group = std::ranges::find_if(explanation.decisions, [&](const DecisionGroup& known) {
      return known.action == plan.decisions[t].action && known.reason == reason;
    });
    if (group == explanation.decisions.end())
      group = explanation.decisions.insert(group, {plan.decisions[t].action, reason, 0, {}});
    ++group->tensors;
    group->bytes += size(tensor);
  }
  std::ranges::stable_sort(explanation.decisions, std::greater(), &DecisionGroup::bytes);
}

}  // namespace

Explanation explain(const Scenario& scenario) {
  const StrategySpec strategy = scenario.strategies.front();
  Scenario both = scenario;
  if (strategy.text != reference_strategy().name)
    both.strategies = {parse_strategy(reference_strategy().name), strategy};
  Explanation explanation;
  explanation.comparison = compare(both);
  explanation.evaluation =
      evaluate_on_pipeline_clock(traces_of(scenario), strategy, scenario.device,
                                 explanation.comparison.budget, scenario.step.rank);
  Report& report = explanation.evaluation.report;
  if (!report.applies) return explanation;
  report = explanation.comparison.rows.back();  // with what was saved against vanilla
  const Peak top = peak(explanation.evaluation.schedule, explanation.evaluation.timeline);
  const std::shared_ptr<const Derived> derived = derived_of(explanation.evaluation.planned);
  find_peak(explanation, top);
  list_alive(explanation, top, derived->needs);
  group_decisions(explanation, derived->needs);
  return explanation;
}

std::vector<Bytes> live_curve(const Schedule& schedule, const Timeline& timeline,
                              std::size_t columns) {
  std::vector<Bytes> highest;
  for (const BytesByCategory& bytes : exports::stacked_curve(schedule, timeline, columns))
    highest.push_back(total(bytes));
  return highest;
}

}  // namespace tidemark
