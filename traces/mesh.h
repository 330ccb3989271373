// How the GPUs of a job are laid out: so many pipeline stages, of so many replicas, and so on.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"

namespace tidemark {

/// Outermost first: ranks that differ in the last axis only are neighbours on a node.
enum class Axis : std::uint8_t { Pipeline, Data, Context, Tensor };

inline constexpr std::array axes = {
    Named{Axis::Pipeline, std::string_view("pp")}, Named{Axis::Data, std::string_view("dp")},
    Named{Axis::Context, std::string_view("cp")}, Named{Axis::Tensor, std::string_view("tp")}};
static_assert(is_in_order(axes));

/// The product of the axes is the number of GPUs. Expert parallelism has no GPUs of its own: groups
/// of `experts` neighbouring ranks among dp · cp share the experts of a layer, as in Megatron, each
/// expert cut by all tp ranks; or among dp · cp · tp / `expert_tensor`, each cut by so many.
struct Mesh {
  static constexpr std::int64_t most_gpus = 1'048'576;

  std::array<std::int64_t, axes.size()> sizes = {1, 1, 1, 1};
  std::int64_t experts = 1;
  std::int64_t expert_tensor = 0;  ///< "etp" (--expert-tensor-parallel-size); 0: as many as tp

  std::int64_t operator[](Axis axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](Axis axis) { return sizes[static_cast<std::size_t>(axis)]; }
  std::int64_t gpus() const;
  /// How far apart in rank are neighbours along the axis?
  std::int64_t stride(Axis axis) const;
  /// Neighbouring tensor-parallel ranks that have a part of the same expert.
  std::int64_t ranks_of_expert() const;
  /// Ranks of a stage that can share its experts: of those with the same parts; neighbours of them
  /// are as far apart in rank as ranks have parts of one.
  std::int64_t expert_ranks() const;
  bool is_one() const { return gpus() == 1; }
  bool operator==(const Mesh&) const = default;
};

/// "dp=4,tp=2" in any order; axes that are not named are 1. Throws UsageError.
Mesh parse_mesh(std::string_view text);
/// The same of a part of a mesh: whether its sizes go together is seen once the others are known.
Mesh parse_mesh_axes(std::string_view text);
/// parse_mesh() reads it back; "1" for a mesh of ones.
std::string to_text(const Mesh& mesh);

/// In which order a stage takes its micro-batches.
struct PipelineSchedule {
  enum class Kind : std::uint8_t {
    OneForwardOneBackward,  ///< as many forwards ahead as stages follow
    GPipe,                  ///< all forwards, then all backwards
    Interleaved,            ///< 1F1B of stages that have several chunks of the model each
    ZeroBubbleH1,  ///< 1F1B whose gradients of weights fill what stages would wait; no more kept
    ZeroBubbleH2,  ///< the same with twice as many micro-batches in flight
    ZeroBubbleV,   ///< the same with two chunks of each stage, which come back to the first
  };
  static constexpr std::int64_t most_chunks = 1024;

  Kind kind = Kind::OneForwardOneBackward;
  std::int64_t chunks = 1;                ///< of each stage; two of zb-v, any if interleaved
  std::vector<std::int64_t> blocks = {};  ///< of each chunk, in model order; empty: as many of each
  /// Interleaved: so many micro-batches go through a chunk before the next; 0: as many as stages.
  std::int64_t group = 0;

  std::int64_t group_of(std::int64_t stages) const { return group > 0 ? group : stages; }

  /// Do gradients of weights wait for a time at which nothing else is to be done?
  bool splits_backward() const { return kind >= Kind::ZeroBubbleH1; }
  bool operator==(const PipelineSchedule&) const = default;
};

inline constexpr std::array pipeline_schedules = {
    Named{PipelineSchedule::Kind::OneForwardOneBackward, std::string_view("1f1b")},
    Named{PipelineSchedule::Kind::GPipe, std::string_view("gpipe")},
    Named{PipelineSchedule::Kind::Interleaved, std::string_view("interleaved")},
    Named{PipelineSchedule::Kind::ZeroBubbleH1, std::string_view("zb-h1")},
    Named{PipelineSchedule::Kind::ZeroBubbleH2, std::string_view("zb-h2")},
    Named{PipelineSchedule::Kind::ZeroBubbleV, std::string_view("zb-v")}};
static_assert(is_in_order(pipeline_schedules));

/// "1f1b", "gpipe:blocks=2-4-4-2", "interleaved:v=3,group=6,blocks=0-1-1-1-1-1-1-0". Throws
/// UsageError.
PipelineSchedule parse_schedule(std::string_view text);
/// parse_schedule() reads it back.
std::string to_text(const PipelineSchedule& schedule);

/// Blocks of each stage where there are not as many of each: the first and the last have fewer than
/// those between, or one more, the last at most as many as the first, because the head is its own
/// (--decoder-first-pipeline-num-layers and --decoder-last-… of Megatron-LM). Empty if each can
/// have as many, or if none are near to that.
std::vector<std::int64_t> uneven_stages(std::int64_t blocks, std::int64_t stages);

/// Ranks that differ in their program: those of one pipeline stage.
struct RankClass {
  std::int64_t stage = 0;
  bool operator==(const RankClass&) const = default;
};

/// "pp0". Throws UsageError.
RankClass parse_rank(std::string_view text);
/// parse_rank() reads it back.
std::string to_text(const RankClass& rank);

/// The mesh whose experts are cut by the number of ranks nearest to `ranks` that is legal.
Mesh with_ranks_of_expert(Mesh mesh, std::int64_t ranks);

/// The divisor of `number` that is nearest to `wanted`, the smaller of two as near.
std::int64_t nearest_divisor(std::int64_t number, std::int64_t wanted);

/// Why no job can be laid out so, or "".
std::string defect_of(const Mesh& mesh);

/// The mesh for so many GPUs: data parallelism takes what the other axes leave. `is_given`: the
/// mesh says all, and its product must be `gpus`. A UsageError names the nearest legal mesh.
Mesh fitted(Mesh mesh, std::int64_t gpus, bool is_given);

}  // namespace tidemark
