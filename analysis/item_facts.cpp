// Looks an op or tensor up by name and gathers its readers, lives and runs; hints at near names.
#include "analysis/item_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "simulator/cost/guessed_times.h"
#include "simulator/needs.h"

namespace tidemark {
namespace {

// When buffers of the storage appear and disappear; what is not freed stays until the end.
std::vector<Life> lives_of(const Evaluation& evaluation, TensorId storage) {
  std::vector<Life> lives;
  std::vector<std::size_t> life_of(evaluation.schedule.buffers.size());
  for (std::size_t b = 0; b < evaluation.schedule.buffers.size(); ++b) {
    const Buffer& buffer = evaluation.schedule.buffers[b];
    if (buffer.tensor != storage) continue;
    lives.push_back(
        {buffer.role, buffer.size, buffer.persistent, {}, evaluation.timeline.duration});
    life_of[b] = lives.size();
  }
  for (const MemoryEvent& event : evaluation.timeline.memory) {
    const std::size_t life = life_of[index(event.buffer)];
    if (life > 0) (event.appears ? lives[life - 1].begin : lives[life - 1].end) = event.time;
  }
  std::ranges::stable_sort(lives, {}, &Life::begin);
  return lives;
}

std::string recovery_of(const Trace& trace, const Plan& plan, OpId producer) {
  if (producer == no_op) return "";
  for (const Region& region : plan.regions)
    if (region.begin <= producer && producer < region.end)
      return fmt::format("{} to {}", trace[region.begin].name,
                         trace.ops[index(region.end) - 1].name);
  return "";
}

void find_readers(const Trace& trace, const Needs& needs, TensorId id, TensorFacts& facts) {
  const TensorId storage = trace[id].storage;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    const auto inputs = trace.inputs(op);
    const std::string operation(operation_name(trace, op));
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (inputs[k] == id) facts.readers.push_back({op.name, operation, static_cast<int>(k)});
    for (Operands bits = needs.saved[i]; bits != 0; bits &= bits - 1) {
      const int bit = __builtin_ctz(bits);
      if (trace[operand(trace, op, bit)].storage == storage)
        facts.holders.push_back({op.name, operation, bit});
    }
  }
}

TensorFacts tensor_facts(const Evaluation& evaluation, TensorId id) {
  const Trace& trace = *evaluation.planned.trace;
  const Plan& plan = evaluation.planned.plan;
  const std::shared_ptr<const Derived> derived = derived_of(evaluation.planned);
  const Needs& needs = derived->needs;
  const Tensor& tensor = trace[id];
  const TensorId storage = tensor.storage;
  TensorFacts facts;
  facts.tensor = tensor;
  facts.storage = trace[storage].name;
  facts.storage_size = size(trace[storage]);
  const OpId producer = needs.producer[index(storage)];
  if (producer != no_op) {
    facts.producer = trace[producer].name;
    facts.line = line_of(trace, trace[producer]);
  }
  find_readers(trace, needs, id, facts);
  facts.action = plan.decisions[index(storage)].action;
  facts.is_saved = tensor.category != Category::Parameter &&
                   (needs.uses[index(storage)] > 0 || facts.action != Action::Keep);
  facts.reason = plan.reasons[plan.decisions[index(storage)].reason];
  const bool recovers = facts.action == Action::Recompute || facts.action == Action::Reconstruct;
  if (recovers) facts.recovery = recovery_of(trace, plan, producer);
  facts.lives = lives_of(evaluation, storage);
  return facts;
}

OpFacts op_facts(const Evaluation& evaluation, const Device& device, OpId id) {
  const Trace& trace = *evaluation.planned.trace;
  const Op& op = trace[id];
  OpFacts facts;
  facts.name = op.name;
  facts.kind = op.kind;
  if (op.block >= 0) facts.block = trace.blocks[static_cast<std::size_t>(op.block)].name;
  facts.line = line_of(trace, op);
  const std::shared_ptr<const Derived> derived = derived_of(evaluation.planned);
  const Needs& needs = derived->needs;
  const Operands held = needs.saved[index(id)];
  if (const OpaqueRow* row = opaque_row(trace, op)) facts.row = *row;
  facts.is_time_guessed = is_time_guessed(trace, op, needs.gradients[index(id)]);
  for (int bit = 0; bit < 32; ++bit)
    if (const TensorId tensor = operand(trace, op, bit); tensor != no_tensor)
      facts.operands.push_back({bit, trace[tensor], (held >> bit & 1) != 0});
  const CostModel costs(trace, needs, device);
  for (const TimedRun& timed : evaluation.timeline.runs) {
    const Run* run = std::get_if<Run>(&evaluation.schedule.steps[timed.step]);
    if (run && run->op == id)
      facts.runs.push_back(
          {run->task, timed.stream, timed.begin, timed.end, costs.of(evaluation.schedule, *run)});
  }
  return facts;
}

// The nearest name, then names that contain what was typed.
std::string near_names(const Trace& trace, std::string_view name) {
  constexpr std::size_t most = 5;
  std::vector<std::string_view> known;
  for (const Op& op : trace.ops) known.push_back(op.name);
  for (const Tensor& tensor : trace.tensors) known.push_back(tensor.name);
  std::string text;
  if (const auto near = nearest_name(name, known); !near.empty())
    text = fmt::format("did you mean {}? ", tidemark::quoted(near));
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  std::erase_if(known, [&](std::string_view other) { return other.find(name) == other.npos; });
  if (known.empty()) return text + "tidemark trace MODEL lists all";
  std::string list;
  for (std::size_t i = 0; i < std::min(most, known.size()); ++i)
    list += (i == 0 ? "" : ", ") + printable(known[i]);
  if (known.size() > most) list += fmt::format(" and {} more", known.size() - most);
  return text + "it is part of: " + list;
}

}  // namespace

NamedItem item_named(const Trace& trace, std::string_view name) {
  NamedItem item;
  const auto op = std::ranges::find(trace.ops, name, &Op::name);
  if (op != trace.ops.end()) item.op = static_cast<OpId>(op - trace.ops.begin());
  const auto tensor = std::ranges::find(trace.tensors, name, &Tensor::name);
  if (tensor != trace.tensors.end())
    item.tensor = static_cast<TensorId>(tensor - trace.tensors.begin());
  if (item.op == no_op && item.tensor == no_tensor)
    throw UsageError(fmt::format("no tensor or op is called {} ({})", tidemark::quoted(name),
                                 near_names(trace, name)));
  return item;
}

ItemFacts find_item(const Evaluation& evaluation, const Device& device, std::string_view name) {
  const NamedItem item = item_named(*evaluation.planned.trace, name);
  ItemFacts facts;
  if (item.op != no_op) facts.op = op_facts(evaluation, device, item.op);
  if (item.tensor != no_tensor) facts.tensor = tensor_facts(evaluation, item.tensor);
  return facts;
}

std::string operand_text(int operand) {
  return operand < 16 ? fmt::format("input {}", operand) : fmt::format("output {}", operand - 16);
}

}  // namespace tidemark
