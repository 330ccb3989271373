// What a pipeline stage does with its micro-batches, in order, and which part of the model it has.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/mesh.h"

namespace tidemark {

enum class StageWork : std::uint8_t {
  Forward,
  Backward,  ///< all gradients, or of schedules that split them those that other stages wait for
  Weights,   ///< the gradients of weights
};

/// What is done with one micro-batch, on one chunk of the stage.
struct StageAction {
  StageWork work = StageWork::Forward;
  std::int64_t micro_batch = 0;
  std::int64_t chunk = 0;
  bool operator==(const StageAction&) const = default;
};

/// 1F1B begins with as many forwards as stages follow, then takes a forward and a backward in turn
/// (arXiv 1806.03377, 2104.04473; Megatron-LM's core/pipeline_parallel/schedules.py); GPipe takes
/// all forwards first (arXiv 1811.06965). Interleaved stages take a group of micro-batches (as many
/// as there are stages, or as the schedule says) through all of their chunks, then the next, with
/// 2·(stages − stage − 1) + (chunks − 1)·group forwards ahead (get_schedule_table() and
/// get_pp_rank_microbatches() of Megatron-LM).
/// Zero-bubble schedules (arXiv 2401.10241, figure 3) are 1F1B with as many forwards ahead, or H2
/// with twice as many; gradients of weights follow so many micro-batches later that each stage
/// keeps as much as the first. ZB-V is the order of torch's ScheduleZBVZeroBubble.
std::vector<StageAction> actions_of(const PipelineSchedule& schedule, std::int64_t stages,
                                    std::int64_t stage, std::int64_t micro_batches);

/// How many forwards, of one chunk each, a stage has begun and not come to an end with before it
/// goes round and round; INT64_MAX: it does all of them first.
std::int64_t forwards_ahead(const PipelineSchedule& schedule, std::int64_t stages,
                            std::int64_t stage);

/// Has each group of interleaved stages, the last one too, as many micro-batches as there are
/// stages, or more? Megatron-LM's rule: of fewer, stages come to wait for each other.
bool fills_groups(const PipelineSchedule& schedule, std::int64_t stages,
                  std::int64_t micro_batches);

/// A part of the model: of its stage, which of its chunks.
struct StageChunk {
  std::int64_t stage = 0, chunk = 0;
  bool operator==(const StageChunk&) const = default;
};

/// Whose the chunks of the model are, counted from its beginning: the stages' in turn, but in zb-v
/// the second ones from the last stage back to the first.
StageChunk place_of_chunk(const PipelineSchedule& schedule, std::int64_t stages,
                          std::int64_t in_model);
std::int64_t chunk_in_model(const PipelineSchedule& schedule, std::int64_t stages,
                            const StageChunk& of_stage);

}  // namespace tidemark
