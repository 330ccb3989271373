// What is there before the step; forward and backward of each micro-batch; the update. The
// techniques are parts that a plan without them does not have:
//   coded_values.h      quantization          offloaded_values.h   offload, with prefetch distance
//   region_recovery.h   recovery of regions   accumulation.h       gradient accumulation
//   optimizer_nodes.h   the update, at the end or inside the backward
// Behind them, passes: the order in which a pipeline stage takes its micro-batches, and what ranks
// of a job exchange (simulator/parallel/{pipeline_order,share}.h).
// Tested by differentiate_test.cpp, lower_test.cpp and any_plan_property_test.cpp.
#include "simulator/graph/differentiate.h"

#include <utility>

#include "simulator/graph/accumulation.h"
#include "simulator/parallel/pipeline_order.h"
#include "simulator/parallel/share.h"

namespace tidemark {
namespace {

void place_external(const Trace& trace, const Needs& needs, PresentValues& values) {
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (needs.producer[t] == no_op && trace[id].storage == id) values.place(id);
  }
}

}  // namespace

JointGraph differentiate(const Trace& trace, const Plan& plan) {
  return differentiate(trace, plan, derive(trace, plan));
}

JointGraph differentiate(const Trace& trace, const Plan& plan, const Derived& derived) {
  CHECK(derived.recovery.defects.empty());
  GraphBuilder graph(trace.tensors.size(), trace.ops.size(), trace.operands.size());
  graph.use(plan.encodings);
  NamedInstances names(trace.ops.size(), graph);
  SavedValues values(trace, plan, derived, graph, names);
  PresentGradients gradients(trace, plan, derived.needs, graph, names);
  OptimizerNodes optimizer(trace, derived.needs, graph, values.present, gradients);
  MicroBatch batch(trace, plan, derived, graph, names, values, gradients, optimizer);

  for (std::size_t turn = 0; plan.overlap && !plan.regions.empty() && turn < plan.lanes; ++turn)
    graph.use(region_lanes[turn]);
  place_external(trace, derived.needs, values.present);
  optimizer.place_state();
  if (values.coded) values.coded->place_ranges();
  accumulate({written_micro_batches(trace.step)}, derived, values, batch);
  optimizer.append();
  batch.end_loss();
  return share_among_ranks(trace, order_micro_batches(trace, std::move(graph).finish()));
}

}  // namespace tidemark
