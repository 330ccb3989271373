// A coupling is undone from its end: its second half first. Whoever reads last forgets.
#include "simulator/graph/region_recovery.h"

#include <algorithm>

namespace tidemark {
namespace {

bool is_any(const std::vector<bool>& ops, const Region& region) {
  const auto end = ops.begin() + static_cast<std::ptrdiff_t>(index(region.end));
  return std::find(ops.begin() + static_cast<std::ptrdiff_t>(index(region.begin)), end, true) !=
         end;
}

}  // namespace

bool is_checkpoint(const Recovery& recovery, const Region& region) {
  return is_any(recovery.reruns, region) && !is_any(recovery.inverts, region);
}

RegionRecovery::RegionRecovery(const Trace& trace, const Plan& plan, const Derived& derived,
                               GraphBuilder& graph, SavedValues& values, ForwardNodes& nodes,
                               const std::vector<NodeId>& done)
    : trace_(trace),
      plan_(plan),
      needs_(derived.needs),
      recovery_(derived.recovery),
      held_(last_held_uses(trace, derived.needs)),
      graph_(graph),
      values_(values),
      nodes_(nodes),
      done_(done) {}

void RegionRecovery::recover(const Region& region, Lane lane, OpId at) {
  position_ = at;
  stop_ = end_of_reruns(trace_, needs_, region.begin, region.end);
  const bool names_inputs = find_framework(trace_.step.framework).holds_locals;
  if (names_inputs && is_checkpoint(recovery_, region)) name_inputs(region);
  recover_ops(index(region.split), index(region.end), lane);
  recover_ops(index(region.begin), index(region.split), lane);
  if (plan_.quirks.holds_unread) let_go_of_unread(region);
}

// The last of the tensors that a checkpoint's function saved is released, and with it all that it
// holds: the gradients of the first op that packs any.
OpId RegionRecovery::end_of_function(const Region& region) const {
  OpId until = no_op;
  for (OpId op = region.end; op != no_op; op = last_that_packs(trace_, needs_, region.begin, op))
    until = op;
  return until;
}

// What a policy keeps and nobody reads.
void RegionRecovery::let_go_of_unread(const Region& region) {
  const OpId until = end_of_function(region);
  for (std::size_t i = index(region.begin); i < index(region.end); ++i) {
    for (const TensorId output : trace_.outputs(trace_.ops[i])) {
      if (!is_kept_for_recovery(plan_, output) || needs_.uses[index(output)] > 0) continue;
      if (values_.present.reads_to_come(output) == 0) continue;
      values_.present.name(output, until);
      if (values_.present.count_read(output)) values_.forget(output, position_);
    }
  }
}

// A checkpoint names what its function was called with.
void RegionRecovery::name_inputs(const Region& region) {
  const OpId until = end_of_function(region);
  for (std::size_t i = index(region.begin); i < index(region.end); ++i) {
    if (!recovery_.reruns[i]) continue;
    for (const TensorId input : trace_.inputs(trace_.ops[i])) {
      const TensorId storage = trace_[input].storage;
      const OpId producer = needs_.producer[index(storage)];
      if (producer != no_op && producer < region.begin) values_.present.name(storage, until);
    }
  }
}

void RegionRecovery::recover_ops(std::size_t begin, std::size_t end, Lane lane) {
  for (std::size_t i = begin; i < end; ++i) {
    if (recovery_.reruns[i]) rerun(i, end, lane);
    if (recovery_.inverts[i]) invert(i, end, lane);
    for (const TensorId storage : held_(i))  // the function returns: its variables go
      if (values_.present.reads_to_come(storage) == 0) values_.forget(storage, position_);
  }
  for (const TensorId storage : left_)
    if (values_.present.reads_to_come(storage) == 0) values_.forget(storage, position_);
  left_.clear();
}

void RegionRecovery::rerun(std::size_t i, std::size_t end, Lane lane) {
  const Op& op = trace_.ops[i];
  if (!plan_.rerun_after.empty() && plan_.rerun_after[i] != no_op)
    graph_.order(done_[index(plan_.rerun_after[i])], lane);
  nodes_.append(Task::Recompute, static_cast<OpId>(i), lane);
  for (const TensorId input : trace_.inputs(op)) read(trace_[input].storage, i, end);
  for (const TensorId output : trace_.outputs(op))
    if (values_.present.reads_to_come(output) == 0 && trace_[output].storage == output)
      let_go(output, i, end);
}

void RegionRecovery::read(TensorId storage, std::size_t at, std::size_t end) {
  if (values_.present.count_read(storage)) let_go(storage, at, end);
}

// While ops run again, their local variables hold values as before, and so do those that were still
// to be read where the function is left, or that it returns to one that names them.
void RegionRecovery::let_go(TensorId storage, std::size_t at, std::size_t end) {
  const OpId held = trace_[storage].held_until, read = needs_.last_read[index(storage)];
  if (held != no_op && index(held) > at && index(held) < end) return;
  const bool is_returned =
      held != no_op && index(held) >= end && trace_[held].block != trace_.ops[end - 1].block;
  if (is_returned) return left_.push_back(storage);
  if (read != no_op && read >= stop_ && index(read) < end) return left_.push_back(storage);
  values_.forget(storage, position_);
}

void RegionRecovery::invert(std::size_t i, std::size_t end, Lane lane) {
  const Op& op = trace_.ops[i];
  const TensorId shortcut = trace_[trace_.inputs(op)[0]].storage;
  const TensorId branch = trace_[trace_.inputs(op)[1]].storage;
  const TensorId sum = trace_[trace_.outputs(op)[0]].storage;
  values_.ensure_present(sum, lane);
  values_.ensure_present(branch, lane);
  PresentValues& present = values_.present;
  if (!present.is_present(shortcut) && present.reads_to_come(shortcut) > 0) {
    operation_.clear();
    operation_.read(present.of(sum));
    operation_.read(present.of(branch));
    operation_.write(present.write(shortcut));
    graph_.append(Task::Reconstruct, lane, static_cast<OpId>(i), operation_);
  }
  read(sum, i, end);
  read(branch, i, end);
}

}  // namespace tidemark
