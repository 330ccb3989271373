// Example, 1f1b, the first of three stages, four micro-batches:
//   F0 F1 F2 B0 F3 B1 B2 B3     others: 2 while F2, B0, F3 and B1 run
// With three micro-batches F3 is missing, and B1 has one other beside it.
#include "simulator/planner/in_flight.h"

#include <algorithm>

#include "simulator/parallel/pipeline_actions.h"

namespace tidemark {

BatchesInFlight in_flight_of(const StepOptions& step) {
  const std::int64_t stages = step.mesh[Axis::Pipeline], batches = step.accumulate.count;
  if (stages == 1) return {};
  const std::int64_t ahead = forwards_ahead(step.schedule.value_or(PipelineSchedule()), stages,
                                            step.rank.value_or(RankClass()).stage);
  if (ahead < batches - 1) return {ahead, ahead};
  return {batches - 1, std::max<std::int64_t>(0, batches - 2)};
}

// 1f1b takes the last stage's micro-batches so.
std::shared_ptr<const Trace> one_after_another(const std::shared_ptr<const Trace>& trace,
                                               std::int64_t most) {
  const std::int64_t stages = trace->step.mesh[Axis::Pipeline];
  if (trace->step.accumulate.count <= most && stages == 1) return trace;
  auto few = std::make_shared<Trace>(*trace);
  few->step.accumulate.count = std::min(few->step.accumulate.count, most);
  if (stages == 1) return few;
  few->step.rank = RankClass{stages - 1};
  few->step.schedule = PipelineSchedule();
  return few;
}

}  // namespace tidemark
