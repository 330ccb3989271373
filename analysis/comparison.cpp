// Evaluates the strategies on one trace, on all cores, then adds ratios and the conclusion.
#include "analysis/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "analysis/idle_options.h"
#include "analysis/parameter_count.h"
#include "analysis/rank_report.h"
#include "analysis/remedies.h"
#include "base/parallel.h"
#include "base/quoted.h"
#include "simulator/cost/guessed_times.h"
#include "simulator/kernel_choice.h"
#include "simulator/parallel/cluster.h"
#include "simulator/parallel/collectives.h"
#include "simulator/parallel/exchanges.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/parallel/shards.h"
#include "simulator/parallel/stage_trace.h"
#include "simulator/parallel/user_buffers.h"
#include "traces/models/language_model.h"
#include "traces/replicas.h"
#include "traces/trace_builder.h"

namespace tidemark {
namespace {

using Traces = std::vector<std::shared_ptr<const Trace>>;

Traces traces_with_batch(const Scenario& scenario, std::int64_t batch) {
  if (scenario.trace) return {scenario.trace};
  StepOptions step = as_run_on(scenario.device, scenario.step);
  step.batch = batch;
  return rank_traces(scenario.model, step);
}

// The model's, of which the trace may hold a part, or codes.
void add_parameters(const Trace& trace, Comparison& comparison) {
  const Scenario& scenario = comparison.scenario;
  const Mesh& mesh = scenario.step.mesh;
  const bool is_whole =
      mesh[Axis::Tensor] * mesh[Axis::Pipeline] * mesh.experts == 1 && !scenario.step.base;
  const ParameterCount count = scenario.trace || is_whole
                                   ? count_parameters(trace)
                                   : count_parameters(scenario.model, scenario.step);
  comparison.parameters = count.all;
  comparison.trainable = count.trainable;
}

bool is_megatrons(const ModelConfig& config) {
  const auto* const bert = std::get_if<BertConfig>(&config);
  return bert ? bert->megatron : family_of(config).starts_with("megatron-");
}

// Such a config names modules that only one library has.
void note_other_code(Comparison& comparison) {
  const Scenario& scenario = comparison.scenario;
  if (scenario.trace || !is_megatrons(scenario.model.config) ||
      find_framework(scenario.step.framework).megatron)
    return;
  comparison.notes.push_back(
      fmt::format("{} is a network of Megatron-LM's, and {} are rules for other code (take "
                  "--framework megatron)",
                  printable(scenario.model.name, 200), scenario.step.framework));
}

// transformers leaves these weights out.
void note_further_tokens(Comparison& comparison) {
  const Scenario& scenario = comparison.scenario;
  const auto* const decoder = std::get_if<DecoderConfig>(&scenario.model.config);
  if (scenario.trace || !decoder || decoder->further_tokens == 0 ||
      find_framework(scenario.step.framework).megatron)
    return;
  comparison.notes.push_back(fmt::format(
      "further tokens that {} predicts ({}) are trained with --framework megatron alone",
      printable(scenario.model.name, 200), decoder->further_tokens));
}

// Nobody sends it anything, and it waits for nobody.
void note_stage_alone(Comparison& comparison) {
  const Scenario& scenario = comparison.scenario;
  if (!scenario.trace || scenario.trace->step.mesh[Axis::Pipeline] == 1) return;
  comparison.notes.push_back(fmt::format(
      "{} is of one stage: its memory is that of the pipeline's, its time has no waits for others "
      "(name the model for those)",
      printable(scenario.model.name, 200)));
}

// Per sample, into the first block, which reads [batch, tokens, width]. A convolution's channels
// are no tokens.
std::int64_t tokens_of(const Trace& trace) {
  if (trace.blocks.empty()) return 0;
  const Shape& input = trace[trace.blocks.front().input].shape;
  if (trace.family.empty() && input.rank() != 3) return 0;
  const Mesh& mesh = trace.step.mesh;
  const std::int64_t parts =
      mesh[Axis::Context] * (trace.step.sequence_parallel ? mesh[Axis::Tensor] : 1);
  return parts * numel(input) / std::max<std::int64_t>(1, input.back() * trace.step.batch);
}

void note_paged_states(const Trace& trace, Comparison& comparison) {
  const OptimizerRow& row = row_of(trace.step.optimizer);
  if (!row.is_paged) return;
  comparison.notes.push_back(
      fmt::format("states of {} lie in unified memory, outside of PyTorch's numbers: where they do "
                  "not fit beside a step, all of them cross the host link to and fro",
                  row.name));
}

void describe(const Trace& trace, Comparison& comparison) {
  const auto fused = std::ranges::find(trace.ops, OpKind::FlashAttention, &Op::kind);
  comparison.notes = kernel_notes(trace, comparison.scenario.device);
  if (fused != trace.ops.end())
    comparison.attention = attribute(trace, *fused, AttributeKey::MemoryEfficient) != 0
                               ? Attention::MemoryEfficient
                               : Attention::Flash;
  note_other_code(comparison);
  note_further_tokens(comparison);
  note_stage_alone(comparison);
  note_paged_states(trace, comparison);
  for (std::string& line : idle_options(trace.step)) comparison.notes.push_back(std::move(line));
  if (!trace.blocks.empty())
    comparison.tokens = tokens_of(trace);
  else if (!comparison.scenario.trace)  // compiled as a whole
    comparison.tokens = tokens_of(build_trace(comparison.scenario.model, comparison.scenario.step));
}

void conclude(const Traces& traces, Comparison& comparison) {
  const Scenario& scenario = comparison.scenario;
  Conclusion& conclusion = comparison.conclusion;
  conclusion = conclude(comparison.rows, scenario.device, comparison.budget.capacity);
  if (conclusion.maker == PeakMaker::Other) return;
  const auto found = std::ranges::find(comparison.rows, conclusion.smallest->strategies.front(),
                                       &Report::strategy);
  const Report& smallest = *found;
  const auto row = static_cast<std::size_t>(found - comparison.rows.begin());
  conclusion.remedies =
      find_remedies(scenario, traces, comparison.budget, scenario.strategies[row], smallest);
}

void add_batches(const Scenario& scenario, const StrategySpec& strategy, MemoryBudget budget,
                 const BatchProgress& progress, Report& row) {
  row.batches = batch_limits(scenario, strategy, budget, progress);
  if (row.batches->every == row.batches->largest || budget.allocator.expandable_segments) return;
  budget.allocator = allocator::expandable(budget.allocator);
  row.expandable_batches = batch_limits(scenario, strategy, budget, progress);
}

void note_communicators(Comparison& comparison) {
  const Bytes taken = communicator_bytes_of(comparison.scenario);
  if (taken == Bytes{}) return;
  comparison.notes.push_back(
      fmt::format("{}: NCCL's own buffers take {} of each rank, outside of PyTorch's memory",
                  interconnect_of(comparison.scenario.device)->cluster, to_text(taken)));
}

// What the rows have derived of the trace as it was asked for is not derived again.
void note_guesses(const Trace& trace, const Derived* derived, Comparison& comparison) {
  if (trace.opaque_rows.empty()) return;
  std::string note =
      note_on_guessed_times(trace, derived ? derived->needs.gradients : derive_gradients(trace));
  if (!note.empty()) comparison.notes.push_back(std::move(note));
}

// The search for the largest batch takes all cores for one strategy after the other; without it
// each core takes a strategy. Returns what was derived of the trace, if a strategy left it as it
// is.
std::shared_ptr<const Derived> add_rows(const Traces& traces,
                                        const std::function<void(std::size_t done)>& progress,
                                        const BatchProgress& batches,
                                        const std::function<bool()>& is_stopped,
                                        Comparison& comparison) {
  const Scenario& scenario = comparison.scenario;
  comparison.rows.resize(scenario.strategies.size());
  std::shared_ptr<const Derived> derived;
  std::mutex telling;
  std::size_t done = 0;
  const auto add_row = [&](std::size_t i) {
    const StrategySpec& strategy = scenario.strategies[i];
    Report& row = comparison.rows[i];
    Evaluation made =
        evaluate_ranks(traces, strategy, scenario.device, comparison.budget, scenario.step.rank);
    row = std::move(made.report);
    if (scenario.finds_largest_batch && row.applies && !(is_stopped && is_stopped()))
      add_batches(scenario, strategy, comparison.budget, batches, row);
    const std::lock_guard lock(telling);
    if (made.planned.trace == traces.front() && made.planned.derived)
      derived = made.planned.derived;
    if (progress) progress(++done);
  };
  if (!scenario.finds_largest_batch)
    parallel_for(scenario.strategies.size(), add_row);
  else
    for (std::size_t i = 0; i < scenario.strategies.size(); ++i) add_row(i);
  return derived;
}

// All but the conclusion.
Comparison rows_of(const Scenario& scenario, const Traces& traces,
                   const std::function<void(std::size_t done)>& progress,
                   const BatchProgress& batches, const std::function<bool()>& is_stopped) {
  Comparison comparison{.scenario = scenario,
                        .budget = memory_budget_of(scenario),
                        .rows = {},
                        .conclusion = {},
                        .notes = {}};
  const auto& trace = traces.front();
  add_parameters(*trace, comparison);
  describe(*trace, comparison);
  const auto derived = add_rows(traces, progress, batches, is_stopped, comparison);
  note_guesses(*trace, derived.get(), comparison);
  add_ratios(comparison.rows);
  note_communicators(comparison);
  return comparison;
}

}  // namespace

std::vector<StrategySpec> default_strategies() {
  std::vector<StrategySpec> specs;
  for (const char* text : {"vanilla", "approx-bp", "ms-bp", "lowmemorybp", "mesa", "checkpoint",
                           "checkpoint:selective", "overlap+checkpoint", "lowmemorybp+checkpoint",
                           "mesa+checkpoint", "offload", "reversible", "pareprop"})
    specs.push_back(parse_strategy(text));
  return specs;
}

std::shared_ptr<const Trace> trace_of(const Scenario& scenario) {
  const Traces traces = traces_of(scenario);
  if (traces.size() == 1) return traces.front();
  return traces[static_cast<std::size_t>(scenario.step.rank.value_or(RankClass()).stage)];
}

std::vector<std::shared_ptr<const Trace>> traces_of(const Scenario& scenario) {
  require_stage(scenario.step);
  Traces traces = traces_with_batch(scenario, scenario.step.batch);
  if (scenario.trace)
    require_codes(scenario.device, scenario.step);
  else
    require_used_options(*traces.front());
  return traces;
}

namespace {

Bytes user_buffers_of(const Scenario& scenario) {
  if (!has_user_buffers(scenario.step)) return {};
  if (scenario.trace) {  // whose blocks read parts of a sequence
    if (scenario.trace->blocks.empty()) return {};
    const Shape& part = (*scenario.trace)[scenario.trace->blocks.front().input].shape;
    if (part.rank() != 3) return {};
    const Mesh& mesh = scenario.step.mesh;
    return user_buffers(scenario.step, part[1] * mesh[Axis::Tensor] * mesh[Axis::Context], part[2]);
  }
  const auto* const decoder = std::get_if<DecoderConfig>(&scenario.model.config);
  if (!decoder)
    throw UsageError("--tp-overlap: user buffers are known of GPTs and hybrids (leave it out)");
  const std::int64_t tokens = sequence_length(scenario.step, decoder->positions, false);
  return user_buffers(scenario.step, tokens, decoder->width);
}

}  // namespace

Bytes communicator_bytes_of(const Scenario& scenario) {
  const Mesh& mesh = scenario.step.mesh;
  if (mesh.is_one()) return {};
  const Interconnect* const joined = interconnect_of(scenario.device);
  if (!joined) return {};
  Bytes sum = user_buffers_of(scenario);
  for (const auto& axis : axes)
    if (mesh[axis.value] > 1 && axis.value != Axis::Data)
      sum += communicator_bytes(*joined, group_of(mesh, axis.value, *joined));
  if (mesh[Axis::Context] > 1 && scenario.step.context_form == ContextForm::AllToAll)
    sum += all_to_all_bytes(*joined, group_of(mesh, Axis::Context, *joined));
  if (mesh.experts > 1) {
    const auto among = [&](Peers peers) {
      return group_of(scenario.step, {Pattern::AllGather, Axis::Data, {}, peers}, *joined);
    };
    const RankGroup sharing = among(Peers::SharingExperts);
    sum += scenario.step.expert_form == ExpertForm::AllGather ? communicator_bytes(*joined, sharing)
                                                              : all_to_all_bytes(*joined, sharing);
    sum += communicator_bytes(*joined, among(Peers::SameExperts));
    if (mesh.ranks_of_expert() > 1 && mesh.ranks_of_expert() < mesh[Axis::Tensor])
      sum += communicator_bytes(*joined, among(Peers::CuttingExpert));
  }
  if (replicas_of(mesh) == 1) return sum;
  const auto of = [&](Pattern pattern) {
    return communicator_bytes(*joined, group_of(scenario.step, {pattern, Axis::Data, {}}, *joined));
  };
  const bool is_hybrid = ranks_that_share(scenario.step) < replicas_of(mesh);
  return sum + of(Pattern::AllGather) + (is_hybrid ? of(Pattern::AllReduce) : Bytes{});
}

MemoryBudget memory_budget_of(const Scenario& scenario) {
  const Bytes context = scenario.device.context.value_or(Bytes{});
  const Bytes outside = context + communicator_bytes_of(scenario);
  return {scenario.budget.value_or(scenario.device.capacity - outside), scenario.allocator};
}

void add_ratios(std::vector<Report>& rows) {
  const auto vanilla = std::ranges::find(rows, reference_strategy().name, &Report::strategy);
  if (vanilla == rows.end()) return;
  const auto ratio = [](auto a, auto b) {
    return b == 0 ? 1 : static_cast<double>(a) / static_cast<double>(b);
  };
  const Report base = *vanilla;
  for (Report& row : rows) {
    if (!row.applies) continue;
    row.memory_ratio = ratio(row.allocated_peak.count, base.allocated_peak.count);
    row.time_ratio = ratio(row.step.count(), base.step.count());
    row.saved_ratio = ratio(row.units.per_op, base.units.per_op);
  }
}

Comparison compare_rows(const Scenario& scenario) {
  return rows_of(scenario, traces_of(scenario), {}, {}, {});
}

Comparison compare(const Scenario& scenario, const std::function<void(std::size_t done)>& progress,
                   const BatchProgress& batches, const std::function<bool()>& is_stopped) {
  const Traces traces = traces_of(scenario);
  Comparison comparison = rows_of(scenario, traces, progress, batches, is_stopped);
  conclude(traces, comparison);
  return comparison;
}

BatchLimits batch_limits(const Scenario& scenario, const StrategySpec& strategy,
                         const MemoryBudget& budget, const BatchProgress& progress) {
  const auto ask = [&](auto test) {
    return [&scenario, &strategy, &budget, test](std::int64_t batch) {
      return std::ranges::all_of(traces_with_batch(scenario, batch), [&](const auto& trace) {
        return test(plan_step(trace, strategy), scenario.device, budget);
      });
    };
  };
  return find_batch_limits({.may_fit = ask(may_fit), .fits = ask(fits)}, progress);
}

}  // namespace tidemark
