// Example: x1 is Recompute, x2 is Keep.
//   forward    x0 ─f1─► x1 ─f2─► x2     nothing reads this x1 after f2
//   backward   b2 needs x1: f1 runs again and makes version 1 of it, then b2
// Each storage has a count of reads to come; whoever brings the count to zero releases it.
#include "simulator/graph/micro_batch.h"

#include <algorithm>

namespace tidemark {

static_assert(region_lanes.size() == most_lanes);
MicroBatch::MicroBatch(const Trace& trace, const Plan& plan, const Derived& derived,
                       GraphBuilder& graph, NamedInstances& names, SavedValues& values,
                       PresentGradients& gradients, OptimizerNodes& optimizer)
    : trace_(trace),
      plan_(plan),
      derived_(derived),
      graph_(graph),
      names_(names),
      values_(values),
      gradients_(gradients),
      optimizer_(optimizer),
      forward_(trace, graph, values),
      backward_(trace, plan, derived.needs, graph, values, gradients),
      ends_(last_forward_uses(trace, derived.needs)) {
  if (!plan.regions.empty())
    recovery_.emplace(trace, plan, derived, graph, values, forward_, done_);
  if (!plan.rerun_after.empty()) done_.resize(trace.ops.size(), no_node);
}

void MicroBatch::append() {
  for (std::size_t i = 0; i < trace_.ops.size(); ++i) forward(static_cast<OpId>(i));
  backward();
  join();
}

// The loop's variable, until another loss is there or the step is over.
void MicroBatch::end_loss() {
  if (loss_ != no_instance) graph_.release(loss_);
}

void MicroBatch::forward(OpId op) {
  if (values_.offloaded) values_.offloaded->before_forward(op);
  if (!is_view(trace_[op].kind)) forward_.append(Task::Forward, op, Lane::Compute);
  if (trace_.update && derived_.needs.producer[index(trace_.loss)] == op) {
    end_loss();
    loss_ = values_.present.of(trace_[trace_.loss].storage);
  }
  if (values_.coded) values_.coded->quantize_operands(index(op));
  for (const TensorId storage : ends_(index(op))) values_.end_forward(storage);
}

void MicroBatch::backward() {
  position_ = static_cast<OpId>(trace_.ops.size());
  if (values_.offloaded) values_.offloaded->before_backward();
  const Needs& needs = derived_.needs;
  const auto is_zero = [](std::uint32_t gradients) { return gradients == 0; };
  if (!std::ranges::all_of(needs.gradients, is_zero))
    gradients_.seed(needs.producer[index(trace_[trace_.loss].storage)]);
  Lane lane = Lane::Compute;  // of ops outside of regions
  std::size_t region = plan_.regions.size();
  for (std::size_t op = trace_.ops.size(); op > 0;) {
    if (region > 0 && index(plan_.regions[region - 1].end) == op) {
      lane = backward_region(--region);
      op = index(plan_.regions[region].begin);
    } else {
      gradients_of(static_cast<OpId>(--op), lane);
    }
  }
  if (trace_.update) gradients_.end_seed();  // backward() has it for an argument
}

void MicroBatch::gradients_of(OpId op, Lane lane) {
  position_ = op;
  if (values_.offloaded) values_.offloaded->before_gradients(op);
  if (derived_.needs.gradients[index(op)] != 0) {
    backward_.append(op, lane);
    optimizer_.after_backward(op, lane);
  }
  if (!done_.empty()) done_[index(op)] = graph_.last_node(lane);
  names_.end(op);
}

void MicroBatch::gradients_of(OpId begin, OpId end, Lane lane) {
  for (std::size_t op = index(end); op-- > index(begin);) gradients_of(static_cast<OpId>(op), lane);
}

// A checkpoint runs again when the first of its saved tensors is asked for: gradients that read
// none come before, those of the ops behind the last that packs any. But what they read has to be
// there: the number that something is scaled by may be made again, too.
OpId MicroBatch::end_of_askers(const Region& region) const {
  if (!is_checkpoint(derived_.recovery, region)) return region.end;
  const Needs& needs = derived_.needs;
  const OpId last = last_that_packs(trace_, needs, region.begin, region.end);
  const std::size_t first = last == no_op ? index(region.begin) : index(last) + 1;
  std::size_t op = index(region.end);
  while (op > first && finds_its_operands(op - 1)) --op;
  return static_cast<OpId>(op);
}

bool MicroBatch::finds_its_operands(std::size_t op) const {
  bool finds_all = true;
  for_each_operand(trace_, trace_.ops[op], derived_.needs.saved[op],
                   [&](TensorId storage, TensorId) {
                     finds_all = finds_all && values_.present.is_present(storage);
                   });
  return finds_all;
}

// On one lane: recover, then gradients. With several, a region that follows another of its chain is
// recovered on the next lane, which waits for the gradients that had it last: beside the gradients
// on other lanes and of what stands between. In issue order the two cases do not differ. Returns
// the lane of the ops before the region: that of its gradients, until the chain ends.
Lane MicroBatch::backward_region(std::size_t region) {
  const Region& current = plan_.regions[region];
  const OpId asked = end_of_askers(current);
  const bool is_beside = plan_.overlap && is_chained(region);
  gradients_of(asked, current.end, is_beside ? lane_of(turn_) : Lane::Compute);
  if (!plan_.overlap) {
    recovery_->recover(current, Lane::Compute, position_);
    gradients_of(current.begin, asked, Lane::Compute);
    return Lane::Compute;
  }
  if (is_beside)
    recover_beside(current);
  else
    start_chain(current);
  const Lane lane = lane_of(turn_);
  graph_.order(gradients_done_, lane);
  gradients_of(current.begin, asked, lane);
  gradients_done_ = graph_.last_node(lane);
  return region > 0 && is_chained(region - 1) ? lane : Lane::Compute;
}

Lane MicroBatch::lane_of(std::size_t turn) const { return region_lanes[turn % plan_.lanes]; }

// All lanes start after what was appended before.
void MicroBatch::start_chain(const Region& region) {
  turn_ = 0;
  gradients_done_ = graph_.last_node(Lane::Compute);
  for (std::size_t turn = 0; turn < plan_.lanes; ++turn)
    graph_.order(gradients_done_, lane_of(turn));
  recovery_->recover(region, lane_of(0), position_);
  recovered_ = graph_.last_node(lane_of(0));
}

void MicroBatch::recover_beside(const Region& region) {
  gradients_done_ = graph_.last_node(lane_of(turn_));  // of what stands between, too
  const Lane beside = lane_of(++turn_);
  graph_.order(recovered_, beside);
  recovery_->recover(region, beside, position_);
  recovered_ = graph_.last_node(beside);
}

// Is this region recovered beside the gradients of the one after it?
bool MicroBatch::is_chained(std::size_t region) const {
  return region + 1 < plan_.regions.size() &&
         plan_.regions[region].chain == plan_.regions[region + 1].chain;
}

// What comes next follows all lanes.
void MicroBatch::join() {
  for (const Lane lane : graph_.graph().lanes)
    if (lane != Lane::Compute) graph_.order(graph_.last_node(lane), Lane::Compute);
}

}  // namespace tidemark
