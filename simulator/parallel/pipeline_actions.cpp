// Examples, three stages and four micro-batches, the last stage (F forward, B backward, W weights):
//   1f1b    F0 B0 F1 B1 F2 B2 F3 B3
//   zb-h1   F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3
// and zb-v, two stages and three micro-batches of chunks a and b, the first stage:
//   F0a F1a F2a F0b B0b W0b F1b B1b W1b B0a W0a F2b B2b W2b B1a W1a B2a W2a
#include "simulator/parallel/pipeline_actions.h"

#include <algorithm>
#include <array>

namespace tidemark {
namespace {

// Micro-batches by chunk, group by group: the order of forwards.
std::vector<StageAction> interleaved_forwards(const PipelineSchedule& schedule, std::int64_t stages,
                                              std::int64_t micro_batches) {
  std::vector<StageAction> list;
  const std::int64_t group = schedule.group_of(stages);
  for (std::int64_t first = 0; first < micro_batches; first += group)
    for (std::int64_t chunk = 0; chunk < schedule.chunks; ++chunk)
      for (std::int64_t i = first; i < std::min(first + group, micro_batches); ++i)
        list.push_back({StageWork::Forward, i, chunk});
  return list;
}

// Forwards ahead, then one and a backward in turn.
std::vector<StageAction> in_turn(const PipelineSchedule& schedule, std::int64_t stages,
                                 std::int64_t stage, std::int64_t micro_batches) {
  const std::vector<StageAction> forwards = interleaved_forwards(schedule, stages, micro_batches);
  const std::size_t ahead = static_cast<std::size_t>(std::min(
      static_cast<std::int64_t>(forwards.size()), forwards_ahead(schedule, stages, stage)));
  std::vector<StageAction> list(forwards.begin(),
                                forwards.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (std::size_t i = ahead; i < forwards.size() + ahead; ++i) {
    if (i < forwards.size()) list.push_back(forwards[i]);
    StageAction back = forwards[i - ahead];
    back.work = StageWork::Backward;
    back.chunk = schedule.chunks - 1 - back.chunk;
    list.push_back(back);
  }
  return list;
}

// Each kind of work takes the micro-batches of a chunk in order.
class ActionList {
 public:
  void add(StageWork work, std::int64_t chunk) {
    list_.push_back({work, done(work, chunk)++, chunk});
  }
  std::int64_t& done(StageWork work, std::int64_t chunk) {
    return done_[static_cast<std::size_t>(work)][static_cast<std::size_t>(chunk)];
  }
  /// Those of the first micro-batches.
  std::vector<StageAction> of(std::int64_t micro_batches) && {
    std::erase_if(list_, [&](const StageAction& a) { return a.micro_batch >= micro_batches; });
    return std::move(list_);
  }

 private:
  std::vector<StageAction> list_;
  std::array<std::array<std::int64_t, 2>, 3> done_{};
};

// 1F1B whose weights follow `later` micro-batches behind.
std::vector<StageAction> with_weights_later(std::int64_t micro_batches, std::int64_t ahead,
                                            std::int64_t later) {
  using enum StageWork;
  ActionList list;
  while (list.done(Forward, 0) < std::min(ahead, micro_batches)) list.add(Forward, 0);
  while (list.done(Backward, 0) < micro_batches) {
    if (list.done(Forward, 0) < micro_batches) list.add(Forward, 0);
    list.add(Backward, 0);
    if (list.done(Backward, 0) > list.done(Weights, 0) + later) list.add(Weights, 0);
  }
  while (list.done(Weights, 0) < micro_batches) list.add(Weights, 0);
  return std::move(list).of(micro_batches);
}

void add_v_turn(ActionList& list, std::int64_t chunk) {
  list.add(StageWork::Backward, chunk);
  list.add(StageWork::Weights, chunk);
}

// Until the first backward comes back, all that the stage can take; then forward, backward and
// weights of both chunks in turn; what is left at the end fills what would be waited. The order is
// that of 2·stages − 1 micro-batches or more; of fewer it is what is left of it.
std::vector<StageAction> v_shaped(std::int64_t stages, std::int64_t stage,
                                  std::int64_t micro_batches) {
  using enum StageWork;
  const std::int64_t all = std::max(2 * stages - 1, micro_batches), behind = stages - stage;
  ActionList list;
  for (std::int64_t i = 0; i < 2 * behind - 1; ++i) list.add(Forward, 0);
  for (std::int64_t i = 0; i < stage; ++i) list.add(Forward, 1), list.add(Forward, 0);
  for (std::int64_t i = 0; i < behind; ++i) list.add(Forward, 1), add_v_turn(list, 1);
  while (list.done(Forward, 1) < all) {
    if (list.done(Forward, 0) < all) list.add(Forward, 0);
    add_v_turn(list, 0);
    list.add(Forward, 1);
    add_v_turn(list, 1);
  }
  for (std::int64_t i = 0; i < stage; ++i) list.add(Backward, 0), list.add(Backward, 1);
  for (std::int64_t i = 0; i < behind; ++i) add_v_turn(list, 0);
  for (const std::int64_t chunk : {1, 0})
    while (list.done(Weights, chunk) < all) list.add(Weights, chunk);
  return std::move(list).of(micro_batches);
}

}  // namespace

std::int64_t forwards_ahead(const PipelineSchedule& schedule, std::int64_t stages,
                            std::int64_t stage) {
  switch (schedule.kind) {
    case PipelineSchedule::Kind::OneForwardOneBackward:
      return stages - stage - 1;
    case PipelineSchedule::Kind::GPipe:
      return INT64_MAX;
    case PipelineSchedule::Kind::Interleaved:
      return 2 * (stages - stage - 1) + (schedule.chunks - 1) * schedule.group_of(stages);
    case PipelineSchedule::Kind::ZeroBubbleH1:
      return stages - 1;
    case PipelineSchedule::Kind::ZeroBubbleH2:
      return 2 * (stages - 1);
    case PipelineSchedule::Kind::ZeroBubbleV:
      return 2 * stages - 1;
  }
  return 0;
}

std::vector<StageAction> actions_of(const PipelineSchedule& schedule, std::int64_t stages,
                                    std::int64_t stage, std::int64_t micro_batches) {
  switch (schedule.kind) {
    case PipelineSchedule::Kind::OneForwardOneBackward:
    case PipelineSchedule::Kind::GPipe:
    case PipelineSchedule::Kind::Interleaved:
      return in_turn(schedule, stages, stage, micro_batches);
    case PipelineSchedule::Kind::ZeroBubbleH1:
      return with_weights_later(micro_batches, stages - stage - 1, stage);
    case PipelineSchedule::Kind::ZeroBubbleH2:
      return with_weights_later(micro_batches, 2 * (stages - stage - 1), 2 * stage);
    case PipelineSchedule::Kind::ZeroBubbleV:
      return v_shaped(stages, stage, micro_batches);
  }
  return {};
}

bool fills_groups(const PipelineSchedule& schedule, std::int64_t stages,
                  std::int64_t micro_batches) {
  if (schedule.kind != PipelineSchedule::Kind::Interleaved) return true;
  const std::int64_t group = schedule.group_of(stages), last = micro_batches % group;
  return group >= stages && group <= micro_batches && (last == 0 || last >= stages);
}

StageChunk place_of_chunk(const PipelineSchedule& schedule, std::int64_t stages,
                          std::int64_t in_model) {
  const std::int64_t chunk = in_model / stages, turn = in_model % stages;
  const bool goes_back = schedule.kind == PipelineSchedule::Kind::ZeroBubbleV && chunk % 2 == 1;
  return {goes_back ? stages - 1 - turn : turn, chunk};
}

std::int64_t chunk_in_model(const PipelineSchedule& schedule, std::int64_t stages,
                            const StageChunk& of_stage) {
  const std::int64_t first = of_stage.chunk * stages;
  return first + place_of_chunk(schedule, stages, first + of_stage.stage).stage;
}

}  // namespace tidemark
