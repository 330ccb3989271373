// All ways to lay out a training step over the GPUs of a job, and which of them no job can have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison.h"

namespace tidemark {

/// One of so many parts of a search, for many machines.
struct LayoutPart {
  static constexpr std::int64_t most = 1'000'000;
  std::int64_t index = 1;  ///< from 1 to count
  std::int64_t count = 1;

  bool operator==(const LayoutPart&) const = default;
};

/// "3/7". Throws UsageError.
LayoutPart parse_layout_part(std::string_view text);
/// parse_layout_part() reads it back.
std::string to_text(const LayoutPart& part);

/// What is asked of a search. The scenario's step says what all layouts have in common; its mesh,
/// batch, micro-batches, --sp, schedule and sharding are decided.
struct LayoutRequest {
  Scenario scenario;
  std::int64_t gpus = 1;
  std::int64_t global_batch = 1;                 ///< samples per step, of all ranks together
  std::optional<std::int64_t> micro_batch = {};  ///< only layouts with this one
  std::vector<Sharding> shardings = usual_shardings();
  std::vector<PipelineSchedule> schedules = usual_schedules();
  std::size_t top = 20;
  LayoutPart part = {};  ///< layouts of other parts are not looked at, and not counted

  static std::vector<Sharding> usual_shardings();
  static std::vector<PipelineSchedule> usual_schedules();
};

/// One of them. Small, because there may be a million.
struct MeshLayout {
  Mesh mesh;
  std::int64_t batch = 1;          ///< samples of one micro-batch
  std::int64_t micro_batches = 1;  ///< of one rank in a step
  bool sequence_parallel = false;
  std::uint16_t uneven = 0;   ///< blocks that are dealt out unevenly; 0: as many of each stage
  std::uint16_t further = 0;  ///< of the last stage, dealt out with them: those of further tokens
  std::uint16_t schedule = 0, sharding = 0, strategy = 0;  ///< into the request's lists

  bool operator==(const MeshLayout&) const = default;
};

/// Why a layout is not in the result, in the order in which it is asked.
enum class LayoutRule : std::uint8_t {
  Batch,         ///< the global batch is not dealt out evenly
  MicroBatches,  ///< more of them than are simulated
  Node,          ///< tensor-parallel ranks on several nodes
  Tensor,        ///< what the ranks share does not divide by tp
  Undivided,     ///< the step has what no tp ranks share
  Blocks,        ///< blocks do not divide by stages and chunks
  Rounds,        ///< interleaved stages take as many micro-batches at a time as there are stages
  Sharding,      ///< not simulated with this sharding
  Strategy,      ///< the strategy does not apply
  Memory,        ///< does not fit: its lower bound in memory says so
  Bound,         ///< its lower bounds say: neither among the fastest nor smaller than a faster one
  Refused,       ///< refused when it was to be simulated
  TooLarge,      ///< was simulated, and does not fit
  Slower,        ///< was simulated: neither among the fastest nor smaller than a faster one
  Unasked,       ///< the search was stopped before
};

struct LayoutRuleRow {
  LayoutRule value;
  std::string_view name;  ///< for programs
  std::string_view says;  ///< for people
};

extern const std::array<LayoutRuleRow, 15> layout_rules;

using LayoutCounts = std::array<std::int64_t, 15>;

/// The layouts that rules of counting leave, in one fixed order, and how many were cut by which.
/// What the model's trace refuses (Tensor, Strategy) is not asked here.
struct LayoutSpace {
  std::vector<MeshLayout> layouts;
  LayoutCounts cut{};
  std::int64_t all = 0;
};
LayoutSpace enumerate_layouts(const LayoutRequest& request);

/// Blocks of the model.
std::int64_t block_count(const LayoutRequest& request);

/// No value without stages.
std::optional<PipelineSchedule> schedule_in(const LayoutRequest& request, const MeshLayout& layout);

/// The scenario's step in this layout, on the scenario's device.
StepOptions step_in(const LayoutRequest& request, const MeshLayout& layout);

/// "pp=2,dp=4,tp=8 sp 1x16 1f1b megatron checkpoint": the same for equal layouts only.
std::string key_of(const LayoutRequest& request, const MeshLayout& layout);

}  // namespace tidemark
