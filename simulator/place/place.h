// place(graph, placement): from what happens to where: lanes become streams, instances become
// buffers, dependencies across streams become events. The only folder that knows these.
#pragma once

#include "simulator/graph/joint_graph.h"
#include "simulator/plan.h"

namespace tidemark {

/// What reference implementations do otherwise. The default is the clean schedule.
struct Placement {
  bool synchronizes_host = false;      ///< the host waits for events, not the streams
  bool regions_leave_compute = false;  ///< regions alternate between two new streams, with pools
                                       ///< of their own, instead of the compute stream and one more
  bool regions_on_compute = false;     ///< nothing is recovered beside gradients
  TensorId stays = no_tensor;  ///< its values lie in memory that is there before the step and after
  bool operator==(const Placement&) const = default;
};

Placement placement_of(const Trace& trace, const Plan& plan);

/// The graph as steps: one buffer per memory, allocated at its first write and freed after its last
/// use in issue order; nodes of other lanes are waited for where what they read or write demands
/// it, and nowhere else. Linear in the number of operands.
Schedule place(const JointGraph& graph, const Placement& placement);

}  // namespace tidemark
