// The working set of each gradient: what must be there beside what other stages keep.
#include <algorithm>
#include <limits>

#include "simulator/cost/scratch.h"
#include "simulator/graph/inner_tensors.h"
#include "simulator/planner/exchange_runs.h"
#include "simulator/planner/survey.h"

namespace tidemark {
namespace {

constexpr std::uint32_t undecided = 0xffffffff;

struct Indexes {
  std::vector<std::uint32_t> stage_of_op, decided_in;  ///< by op; by tensor: or undecided
};

// Inputs that may have codes are for their stage to decide about, too.
Indexes index_of(const Trace& trace, const Stages& stages,
                 const std::vector<std::int64_t>& least_bytes) {
  Indexes found;
  found.stage_of_op.resize(trace.ops.size());
  found.decided_in.assign(trace.tensors.size(), undecided);
  for (std::uint32_t s = 0; s < stages.all.size(); ++s) {
    for (std::size_t i = index(stages.all[s].begin); i < index(stages.all[s].end); ++i)
      found.stage_of_op[i] = s;
    const Stage& stage = stages.all[s];
    for (const TensorId storage : stage.decided) found.decided_in[index(storage)] = s;
    for (std::size_t k = 0; k < stage.inputs.size(); ++k)
      if (const std::size_t input = index(stage.inputs[k]);
          stage.needed_here[k] && least_bytes[input] < rounded(size(trace.tensors[input])))
        found.decided_in[input] = s;
  }
  return found;
}

std::uint32_t decided_in(const Indexes& indexes, const Buffer& buffer) {
  const bool is_value = buffer.role == Role::Value && buffer.tensor != no_tensor;
  return is_value ? indexes.decided_in[index(buffer.tensor)] : undecided;
}

// What ranks gather and reduce is there when a stage first needs it, which is for plans to say.
bool comes_and_goes(const Buffer& buffer) {
  return !buffer.persistent && buffer.role == Role::Temporary &&
         buffer.category == Category::Communication;
}

/// Ops whose gradients read a storage: the first, and the last, which has its gradient first.
struct Readers {
  std::size_t first = std::numeric_limits<std::size_t>::max(), last = 0;

  bool are_around(std::size_t op) const { return first <= op && op <= last; }
};

// By tensor.
std::vector<Readers> readers_of(const Trace& trace, const Schedule& schedule) {
  std::vector<Readers> readers(trace.tensors.size());
  for (const Step& step : schedule.steps) {
    const auto* run = std::get_if<Run>(&step);
    if (!run || run->op == no_op || run->task != Task::Backward) continue;
    for (const BufferId read : schedule.reads(*run)) {
      if (schedule[read].tensor == no_tensor || schedule[read].role != Role::Value) continue;
      Readers& its = readers[index(schedule[read].tensor)];
      its.first = std::min(its.first, index(run->op));
      its.last = std::max(its.last, index(run->op));
    }
  }
  return readers;
}

// The most of each op, whose gradients are taken from the last op to the first.
void note(OpId op, std::int64_t bytes, const std::vector<TensorId>& there,
          std::vector<AtGradient>& stage) {
  auto known = std::ranges::find(stage, op, &AtGradient::op);
  if (known == stage.end()) known = stage.insert(known, {op, bytes});
  known->bytes = std::max(known->bytes, bytes);
  for (const TensorId value : there)
    if (std::ranges::find(known->there, value) == known->there.end()) known->there.push_back(value);
}

}  // namespace

std::vector<std::vector<AtGradient>> least_backward(const Trace& trace, const Stages& stages,
                                                    const Schedule& schedule, const Survey& kept,
                                                    const Device& device, const Counted& counted,
                                                    const std::vector<std::int64_t>& least_bytes) {
  const Indexes indexes = index_of(trace, stages, least_bytes);
  const std::vector<Readers> readers = readers_of(trace, schedule);
  std::vector<std::vector<AtGradient>> least(stages.all.size());
  std::vector<std::int64_t> entry = {kept.before};
  for (const StageCost& stage : kept.stages) entry.push_back(entry.back() + stage.first.kept);
  std::vector<std::vector<TensorId>> decided(stages.all.size());  // present, by stage
  std::vector<TensorId> others;                                   // likewise, of all
  std::int64_t now = rounded(counted.besides);
  const auto change = [&](const Buffer& buffer, std::int64_t sign) {
    if (comes_and_goes(buffer)) return;
    now += sign * rounded(buffer.size);
    const bool is_value = buffer.role == Role::Value && !buffer.persistent;
    if (!is_value || buffer.tensor == no_tensor) return;
    const std::uint32_t s = decided_in(indexes, buffer);
    std::vector<TensorId>& present = s == undecided ? others : decided[s];
    if (sign > 0)
      present.push_back(buffer.tensor);
    else
      std::erase(present, buffer.tensor);
  };
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.persistent) change(buffer, 1);
  for (const Step& step : schedule.steps) {
    if (const auto* allocate = std::get_if<Allocate>(&step)) change(schedule[allocate->buffer], 1);
    if (const auto* free = std::get_if<Free>(&step)) change(schedule[free->buffer], -1);
    const auto* run = std::get_if<Run>(&step);
    if (!run || run->op == no_op || is_of_exchange(*run)) continue;
    if (run->task == Task::Forward) continue;
    const std::uint32_t s = indexes.stage_of_op[index(run->op)];
    std::int64_t beyond = 0;
    for (const TensorId storage : decided[s]) {
      beyond += rounded(size(trace[storage]));
      if (readers[index(storage)].are_around(index(run->op))) beyond -= least_bytes[index(storage)];
    }
    const Scratch scratch = counted.scratch ? scratch_of(trace, schedule, *run, device) : Scratch{};
    std::int64_t taken = 0;
    for (const Bytes request : scratch.requests()) taken += rounded(request);
    if (run->task == Task::Backward)
      taken -= rounded(saved_by_running_again(trace, trace[run->op]));
    note(run->op, now + taken - entry[s] - beyond, others, least[s]);
  }
  return least;
}

}  // namespace tidemark
