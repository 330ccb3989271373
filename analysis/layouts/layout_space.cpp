// Meshes from the divisors of the number of GPUs, micro-batches from those of the global batch, and
// with each every schedule, sharding and strategy.
#include "analysis/layouts/layout_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/quoted.h"
#include "simulator/kernel_choice.h"
#include "simulator/parallel/cluster.h"
#include "simulator/parallel/pipeline_actions.h"
#include "traces/expert_ops.h"
#include "traces/models/model_config.h"
#include "traces/replicas.h"

namespace tidemark {

constexpr std::array<LayoutRuleRow, 15> layout_rules = {
    LayoutRuleRow{LayoutRule::Batch, "batch", "the global batch is not dealt out evenly"},
    LayoutRuleRow{LayoutRule::MicroBatches, "micro_batches", "more than 1024 micro-batches"},
    LayoutRuleRow{LayoutRule::Node, "node", "tensor-parallel ranks on several nodes"},
    LayoutRuleRow{LayoutRule::Tensor, "tensor", "heads, columns or tokens do not divide by tp"},
    LayoutRuleRow{LayoutRule::Undivided, "undivided", "no tensor-parallel ranks share the step"},
    LayoutRuleRow{LayoutRule::Blocks, "blocks", "blocks do not divide by stages and chunks"},
    LayoutRuleRow{LayoutRule::Rounds, "rounds",
                  "interleaved stages need a multiple of pp micro-batches"},
    LayoutRuleRow{LayoutRule::Sharding, "sharding", "not simulated with this sharding"},
    LayoutRuleRow{LayoutRule::Strategy, "strategy", "the strategy does not apply"},
    LayoutRuleRow{LayoutRule::Memory, "memory", "too large by a lower bound"},
    LayoutRuleRow{LayoutRule::Bound, "bound", "slower by lower bounds than layouts as small"},
    LayoutRuleRow{LayoutRule::Refused, "refused", "refused by the simulation"},
    LayoutRuleRow{LayoutRule::TooLarge, "too_large", "simulated: too large"},
    LayoutRuleRow{LayoutRule::Slower, "slower", "simulated: slower than layouts as small"},
    LayoutRuleRow{LayoutRule::Unasked, "unasked", "not looked at, because the search was stopped"}};
static_assert(is_in_order(layout_rules));

namespace {

std::vector<std::int64_t> divisors_of(std::int64_t number) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    found.push_back(d);
    if (d * d != number) found.push_back(number / d);
  }
  std::ranges::sort(found);
  return found;
}

bool is_megatron(const Sharding& sharding) { return sharding.kind == Sharding::Kind::Megatron; }

// What other axes share where so many ranks share each sequence.
std::int64_t context_groups(std::int64_t gpus, std::int64_t context) {
  if (gpus % context == 0) return gpus / context;
  throw UsageError(fmt::format("--mesh: {} GPUs are no groups of cp={} (nearest: --mesh cp={})",
                               gpus, context, nearest_divisor(gpus, context)));
}

Trace one_rank(const LayoutRequest& request) {
  return build_trace(request.scenario.model, step_in(request, MeshLayout()));
}

// The last stage has so many blocks of further tokens beside its own. Empty if it can have no fewer
// of its own for that.
std::vector<std::int64_t> uneven_counts(std::int64_t blocks, std::int64_t further,
                                        std::int64_t stages) {
  const std::int64_t all = blocks + further;
  std::vector<std::int64_t> counts = uneven_stages(all, stages);
  if (counts.empty() && further > 0 && stages > 1 && all % stages == 0)
    counts.assign(static_cast<std::size_t>(stages), all / stages);
  if (counts.empty() || counts.back() <= further) return {};
  counts.back() -= further;
  return counts;
}

class LayoutEnumeration {
 public:
  explicit LayoutEnumeration(const LayoutRequest& request)
      : request_(request),
        joined_(interconnect_of(request.scenario.device)),
        trace_(one_rank(request)),
        blocks_(static_cast<std::int64_t>(shared_blocks(trace_))),
        further_(std::ssize(trace_.blocks) - blocks_) {
    batches_ = divisors_of(request.global_batch);
    if (request.micro_batch) batches_ = {*request.micro_batch};
  }

  LayoutSpace run() && {
    const std::int64_t context = request_.scenario.step.mesh[Axis::Context];
    const std::int64_t groups = context_groups(request_.gpus, context);
    for (const std::int64_t tensor : divisors_of(groups))
      for (const std::int64_t stages : divisors_of(groups / tensor)) {
        MeshLayout layout;
        layout.mesh[Axis::Tensor] = tensor;
        layout.mesh[Axis::Context] = context;
        layout.mesh[Axis::Pipeline] = stages;
        layout.mesh[Axis::Data] = groups / tensor / stages;
        const std::int64_t cut_by = request_.scenario.step.mesh.expert_tensor;
        if (tensor > 1 && cut_by > 0 && experts_in(trace_) > 0)
          layout.mesh = with_ranks_of_expert(layout.mesh, cut_by);
        for (const std::int64_t ranks : expert_ranks(layout.mesh)) {
          layout.mesh.experts = ranks;
          add_mesh(layout);
        }
      }
    return std::move(space_);
  }

 private:
  // That can share the model's experts.
  std::vector<std::int64_t> expert_ranks(const Mesh& mesh) const {
    const std::int64_t experts = experts_in(trace_);
    if (experts == 0) return {1};
    std::vector<std::int64_t> ranks = divisors_of(std::gcd(experts, mesh.expert_ranks()));
    if (mesh.ranks_of_expert() < mesh[Axis::Tensor]) std::erase(ranks, 1);
    return ranks;
  }

  // --sp, where the scenario's step asks for it, is not left out again.
  void add_mesh(MeshLayout layout) {
    for (const bool is_cut : {false, true}) {
      if (request_.scenario.step.sequence_parallel && !is_cut) continue;
      layout.sequence_parallel = is_cut;
      for (const std::int64_t batch : batches_) {
        layout.batch = batch;
        const std::int64_t samples = batch * layout.mesh[Axis::Data];
        layout.micro_batches =
            request_.global_batch % samples == 0 ? request_.global_batch / samples : 0;
        add_choices(layout);
      }
    }
  }

  void add_choices(MeshLayout layout) {
    for (std::size_t schedule = 0; schedule < request_.schedules.size(); ++schedule)
      for (std::size_t sharding = 0; sharding < request_.shardings.size(); ++sharding)
        for (std::size_t s = 0; s < request_.scenario.strategies.size(); ++s) {
          layout.schedule = static_cast<std::uint16_t>(schedule);
          layout.sharding = static_cast<std::uint16_t>(sharding);
          layout.strategy = static_cast<std::uint16_t>(s);
          add_stages(layout);
        }
  }

  // Evenly where that goes, and with fewer blocks on a last stage that has further ones.
  void add_stages(MeshLayout layout) {
    const std::vector<std::int64_t> counts = uneven_counts_of(layout, 0);
    layout.uneven = counts.empty() ? 0 : static_cast<std::uint16_t>(blocks_);
    layout.further = 0;
    add(layout);
    if (further_ == 0) return;
    const std::vector<std::int64_t> beside = uneven_counts_of(layout, further_);
    if (beside.empty() || beside == counts) return;
    layout.uneven = static_cast<std::uint16_t>(blocks_);
    layout.further = static_cast<std::uint16_t>(further_);
    add(layout);
  }

  // Parts are dealt out by a mixture of the layout's number (the finalizer of SplitMix64), so that
  // each has some of every mesh.
  bool is_own(std::int64_t number) const {
    auto mixture = static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15;
    mixture = (mixture ^ (mixture >> 30)) * 0xbf58476d1ce4e5b9;
    mixture = (mixture ^ (mixture >> 27)) * 0x94d049bb133111eb;
    mixture ^= mixture >> 31;
    const LayoutPart& part = request_.part;
    return mixture % static_cast<std::uint64_t>(part.count) ==
           static_cast<std::uint64_t>(part.index - 1);
  }

  void add(const MeshLayout& layout) {
    if (is_repeated(layout) || !is_own(number_++)) return;
    ++space_.all;
    if (const auto rule = cut_by(layout)) {
      ++space_.cut[static_cast<std::size_t>(*rule)];
    } else {
      space_.layouts.push_back(layout);
    }
  }

  // Does an earlier one make the same step? Where there is one replica, sharding is nothing.
  bool is_repeated(const MeshLayout& layout) const {
    const Mesh& mesh = layout.mesh;
    const bool asked = request_.scenario.step.sequence_parallel;
    if (mesh[Axis::Tensor] == 1 && layout.sequence_parallel && !asked) return true;
    if (mesh[Axis::Pipeline] == 1 && layout.schedule != 0) return true;
    if (replicas_of(mesh) > 1) return false;
    const Sharding& sharding = request_.shardings[layout.sharding];
    for (std::size_t i = 0; i < layout.sharding; ++i)
      if (is_megatron(request_.shardings[i]) == is_megatron(sharding)) return true;
    return false;
  }

  std::optional<LayoutRule> cut_by(const MeshLayout& layout) const {
    const Mesh& mesh = layout.mesh;
    const PipelineSchedule& schedule = request_.schedules[layout.schedule];
    if (layout.micro_batches == 0) return LayoutRule::Batch;
    if (layout.micro_batches > MicroBatches::most) return LayoutRule::MicroBatches;
    if (joined_ && static_cast<double>(mesh[Axis::Tensor]) > joined_->gpus_per_node)
      return LayoutRule::Node;
    if (mesh[Axis::Pipeline] == 1) return {};
    if (layout.uneven == 0 && !are_dealt_out(schedule, mesh[Axis::Pipeline] * schedule.chunks))
      return LayoutRule::Blocks;
    if (!fills_groups(schedule, mesh[Axis::Pipeline], layout.micro_batches))
      return LayoutRule::Rounds;
    return {};
  }

  // Of chunks, each stage has as many.
  std::vector<std::int64_t> uneven_counts_of(const MeshLayout& layout, std::int64_t further) const {
    const PipelineSchedule& schedule = request_.schedules[layout.schedule];
    if (schedule.chunks > 1 || !schedule.blocks.empty()) return {};
    if (blocks_ + further > std::numeric_limits<std::uint16_t>::max()) return {};
    return uneven_counts(blocks_, further, layout.mesh[Axis::Pipeline]);
  }

  // Evenly, or as the schedule says, which says it for one number of chunks.
  bool are_dealt_out(const PipelineSchedule& schedule, std::int64_t chunks) const {
    if (schedule.blocks.empty()) return blocks_ > 0 && blocks_ % chunks == 0;
    return std::ssize(schedule.blocks) == chunks &&
           std::accumulate(schedule.blocks.begin(), schedule.blocks.end(), std::int64_t{}) ==
               blocks_;
  }

  const LayoutRequest& request_;
  const Interconnect* const joined_;
  const Trace trace_;                    ///< of one rank
  const std::int64_t blocks_, further_;  ///< that stages share, and of the last one
  std::vector<std::int64_t> batches_;
  std::int64_t number_ = 0;
  LayoutSpace space_;
};

}  // namespace

LayoutPart parse_layout_part(std::string_view text) {
  LayoutPart part;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, part.index);
  const bool has_slash = index.ec == std::errc() && index.ptr != end && *index.ptr == '/';
  const auto count = std::from_chars(has_slash ? index.ptr + 1 : end, end, part.count);
  if (!has_slash || count.ec != std::errc() || count.ptr != end || part.index < 1 ||
      part.index > part.count || part.count > LayoutPart::most)
    throw UsageError(
        fmt::format("part: {} is no part of so many (1/7 is the first of seven)", quoted(text)));
  return part;
}

std::string to_text(const LayoutPart& part) { return fmt::format("{}/{}", part.index, part.count); }

std::vector<Sharding> LayoutRequest::usual_shardings() {
  std::vector<Sharding> all;
  for (const char* text : {"ddp", "ddp:bucket-view", "fsdp2", "fsdp2:no-reshard", "megatron",
                           "megatron:overlap", "zero1", "zero2", "zero3"})
    all.push_back(parse_sharding(text));
  return all;
}

std::vector<PipelineSchedule> LayoutRequest::usual_schedules() {
  std::vector<PipelineSchedule> all;
  for (const char* text : {"1f1b", "interleaved:v=2", "interleaved:v=4"})
    all.push_back(parse_schedule(text));
  return all;
}

LayoutSpace enumerate_layouts(const LayoutRequest& request) {
  return LayoutEnumeration(request).run();
}

std::int64_t block_count(const LayoutRequest& request) {
  return static_cast<std::int64_t>(shared_blocks(one_rank(request)));
}

std::optional<PipelineSchedule> schedule_in(const LayoutRequest& request,
                                            const MeshLayout& layout) {
  if (layout.mesh[Axis::Pipeline] == 1) return {};
  PipelineSchedule schedule = request.schedules[layout.schedule];
  if (layout.uneven > 0)
    schedule.blocks = uneven_counts(layout.uneven, layout.further, layout.mesh[Axis::Pipeline]);
  return schedule;
}

StepOptions step_in(const LayoutRequest& request, const MeshLayout& layout) {
  StepOptions step = request.scenario.step;
  step.mesh = layout.mesh;
  step.batch = layout.batch;
  step.accumulate.count = layout.micro_batches;
  step.sequence_parallel = layout.sequence_parallel;
  step.schedule = schedule_in(request, layout);
  const Sharding& sharding = request.shardings[layout.sharding];
  if (replicas_of(layout.mesh) > 1 || is_megatron(sharding)) step.shard = sharding;
  return as_run_on(request.scenario.device, std::move(step));
}

std::string key_of(const LayoutRequest& request, const MeshLayout& layout) {
  const PipelineSchedule schedule =
      schedule_in(request, layout).value_or(request.schedules[layout.schedule]);
  return fmt::format("{}{} {}x{} {} {} {}", to_text(layout.mesh),
                     layout.sequence_parallel ? " sp" : "", layout.batch, layout.micro_batches,
                     to_text(schedule), to_text(request.shardings[layout.sharding]),
                     request.scenario.strategies[layout.strategy].text);
}

}  // namespace tidemark
