// What each stage of a chain costs in a schedule: the terms whose sums are the step's memory and
// time.
#pragma once

#include <vector>

#include "simulator/cost/cost_model.h"
#include "simulator/planner/load.h"
#include "simulator/planner/stages.h"
#include "simulator/schedule.h"

namespace tidemark {

/// Which bytes a planner counts: those of tensors, in issue order, each rounded to 512; with or
/// without what the framework's kernels and libraries take beside.
struct Counted {
  bool scratch = false;
  Bytes besides;  ///< there all the time
  /// Passes of the step that take what the second one takes; a schedule of many has one of them.
  std::int64_t like_second = 1;
};

/// As PyTorch's allocator rounds a request at least.
inline std::int64_t rounded(Bytes size) { return round_up(size.count, 512); }

/// Of one stage in one of the step's passes over the trace; a step that accumulates has several.
struct StagePass {
  std::int64_t kept = 0;     ///< by which its forward raises what is there when all forwards end
  std::int64_t late = 0;     ///< what its forward leaves beside, and a later stage's forward frees:
                             ///< casts that autocast holds to its end
  std::int64_t input = 0;    ///< of what the block begins with: what its forward does not keep
  std::int64_t forward = 0;  ///< its forward's maximum, above what is there before
  std::int64_t backward = 0;   ///< its backward's maximum, above what is there before
  std::int64_t gradients = 0;  ///< there before its backward, beside what forwards have left:
                               ///< gradients of parameters and of its output
};

struct StageCost {
  StagePass first, later;  ///< of the later passes: of each the maximum
  Load load = {};          ///< all runs of all passes
  std::int64_t time = 0;   ///< … of what counts, in ns
  /// ns of the first pass's forward, with what ranks exchange on its stream.
  std::int64_t forward_ns = 0;
};

struct Survey {
  std::vector<StageCost> stages;
  std::int64_t before = 0;        ///< bytes before the first stage's forward in the first pass …
  std::int64_t before_later = 0;  ///< … and by how many more in later ones
  std::int64_t rest = 0;          ///< the most outside of stages: optimizer
  Load rest_load = {};
  std::int64_t rest_time = 0;  ///< … of what counts, in ns
  std::int64_t launches = 0;   ///< ns that the host needs to launch all kernels
  bool has_later = false;
};

/// Times are those of what counts.
void count_in(Survey& survey, Resource resource);

/// Of what no gradient needs, and reruns of several stages may read (Stage::shared_reads): whether
/// it stays is for no stage alone to say.
enum class Shared : std::uint8_t {
  AsScheduled,  ///< there while the schedule has it
  Held,         ///< there until the first of its readers has had its backward, as if that reads it
};

/// A schedule on one stream, counted in time.
Survey survey(const Trace& trace, const Stages& stages, const Schedule& schedule,
              const CostModel& costs, const Device& device, const Counted& counted,
              Shared shared = Shared::AsScheduled);

/// What is there at least while an op has its gradient, above what is there before its stage's
/// forward. What the stage keeps for gradients that all come later is there beside that.
struct AtGradient {
  OpId op{};
  std::int64_t bytes = 0;
  std::vector<TensorId> there = {};  ///< in any case: values about which nobody decides
};

/// By stage, of all its gradients, whatever is decided about it: of the schedule that keeps
/// everything, without those of its decided storages that nobody needs yet, and with `least_bytes`,
/// by tensor, of those that some gradient needs now, or has needed and another one will. Of all
/// passes, above the first one's entry.
std::vector<std::vector<AtGradient>> least_backward(const Trace& trace, const Stages& stages,
                                                    const Schedule& schedule, const Survey& kept,
                                                    const Device& device, const Counted& counted,
                                                    const std::vector<std::int64_t>& least_bytes);

}  // namespace tidemark
