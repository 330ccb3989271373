// The planner: for any amount of memory, the fastest plan that is put together from local plans of
// stages, and how much faster any other could be at most.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <span>

#include "simulator/cost/device.h"
#include "simulator/planner/chunk_fronts.h"
#include "simulator/planner/in_flight.h"
#include "simulator/planner/links.h"
#include "simulator/planner/local_plan.h"
#include "simulator/planner/proposals.h"
#include "simulator/planner/shared_runs.h"
#include "simulator/planner/shorter_step.h"
#include "simulator/planner/stage_noise.h"
#include "simulator/planner/survey.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {

/// What plans may be made of.
enum class PlanForm : std::uint8_t {
  Tensors,  ///< each tensor that a stage saves by itself
  Blocks,   ///< whole blocks, as torch.utils.checkpoint wraps them
  Policy,   ///< … and with outputs of chosen calls kept, as its selective form does
};

struct PlannerSettings {
  PlanForm form = PlanForm::Tensors;
  std::vector<int> bits = {};  ///< storages may be kept in codes of so many, as Mesa codes them
  /// Of all parts of a plan together; see GradientError::square().
  double most_error = std::numeric_limits<double>::infinity();
  /// Asked now and then: nobody waits for more, what is known by now is enough.
  std::function<bool()> is_stopped = {};
  /// That somebody made of the trace, and that is looked at beside the planner's own.
  std::optional<Plan> known = {};
  bool undoes_couplings = false;  ///< blocks' inputs may follow from what they made of them
  bool overlaps = false;  ///< menus have what is cheapest in the resources that streams share, too
};

/// Of a step that accumulates, so many passes are written down: the first makes gradients, the last
/// is followed by the update, and all between are alike.
inline constexpr std::int64_t measured_passes = 3;

/// So many neighbouring blocks may be recovered as one. Longer ones hold more recovered blocks at
/// once than they save of blocks' inputs: the best length is near the root of the number of blocks.
inline constexpr std::array<std::size_t, 5> joined_lengths = {2, 3, 4, 6, 8};

class Planner;

/// Corners of a stage's lower hull: bytes that it keeps, and ns beyond those of the trace as it is
/// when everything is kept.
struct Corner {
  double kept, time;
};
using Hull = std::vector<Corner>;

// min over the corners of time + price · kept.
inline double cheapest(const Hull& corners, double price) {
  double best = corners.front().time + price * corners.front().kept;
  for (const Corner& corner : corners) best = std::min(best, corner.time + price * corner.kept);
  return best;
}

/// A moment within a stage's backward: `room` is left for what stages before it keep, and the stage
/// itself for gradients that come later. Of the latter `kept` counts in the hull.
struct WithinStage {
  double room;
  Hull hull;
  /// … and stages that it is joined with, as UnderWay knows them.
  bool is_of_joined;
};

/// Operators that single blocks may have, and all about the step that has them everywhere.
struct BlockOperators {
  std::vector<StrategySpec::Component> components;
  std::shared_ptr<const Planner> everywhere;
};

/// All about one trace on one device that answers to budgets are looked up in. Bytes are those that
/// `counted` says, of tensors in issue order.
class Planner {
 public:
  Planner(std::shared_ptr<const Trace> trace, const Device& device, const Counted& counted,
          PlannerSettings settings = {});
  /// The same, or the same as one that was made like this, but what stays may wait in the host's
  /// memory. What the link to it carries while a
  /// stage computes costs no time; what is beyond, at most its time on the link: so much of it is
  /// counted, as a share, because neighbours may leave the link to others.
  Planner(const Planner& other, double share_beyond);
  /// The same, counted in what runs take of a resource that streams share: its points are worth
  /// trying with recovery on a second stream. Blocks that are recovered as one have few gradients
  /// to run beside: without `joins` each is recovered by itself.
  Planner(const Planner& plain, Resource resource, bool joins = true);
  /// The same, but each block is as it is, or has one of these sets of operators; blocks that are
  /// recovered as one have the same. What stands outside of blocks stays as it is. Only of
  /// takes_in_blocks(): others are no sum of blocks. What an operator takes from parameters and
  /// from ranges of codes is counted as if no block had it, or all.
  Planner(const Planner& plain, std::vector<BlockOperators> operators);
  Planner& operator=(const Planner&) = delete;
  /// Do the operators change single blocks alone, whichever have them?
  bool takes_in_blocks(const BlockOperators& operators) const;

  /// Of the whole step, in sums: bytes never fall from point to point, and ns do. There is no
  /// point where no plan keeps to the bound on errors.
  struct Point {
    std::int64_t bytes, time;
  };
  std::size_t size() const { return points_.size(); }
  Point operator[](std::size_t point) const {
    return {std::max(points_[point].bytes, rest()), points_[point].time};
  }
  /// The fastest plan in so many bytes; nothing if there is none.
  std::optional<std::size_t> within(std::int64_t bytes) const;
  Plan plan_at(std::size_t point) const { return step_at(point).plan; }
  /// With the trace that the point's operators make of the planner's own.
  PlannedStep step_at(std::size_t point) const;

  /// A local plan with its measured cost.
  struct Entry {
    LocalPlan plan;
    StageCost cost;
    std::int64_t offloaded = 0;  ///< bytes
    std::int64_t stall = 0;      ///< ns that the link needs for them beyond the stage's forward
  };
  /// What a plan says about one stage, or about neighbouring blocks as one.
  struct Part {
    const Stage* stage;
    std::uint32_t first, count;  ///< of single stages
    const Entry* entry;
    std::uint32_t operators = 0;  ///< of the blocks: 0 as in the trace, else 1 + the set's number
  };
  /// Of a part: the trace that its stage is of.
  const Trace& trace_of(const Part& part) const { return of(part.operators).trace(); }
  /// Of a part: none where they are the trace's own.
  const std::vector<StrategySpec::Component>& operators_of(const Part& part) const;
  /// Plans of strategies, whatever the front has: points from size() on. Sums may beat them where
  /// the allocator does not, and what stages cannot say by themselves is in no sum.
  std::size_t named() const { return named_.size(); }
  /// Do local plans say all that the point's plan does? If not it is in the class of no bound.
  bool is_of_stages(std::size_t point) const { return whole_plan(point) == nullptr; }
  /// No point's plan takes less on one stream; what copies and exchanges add is in no sum.
  std::int64_t least_time(std::size_t point) const;
  /// Of the point's plan, in the order of stages.
  std::vector<Part> parts_at(std::size_t point) const;
  /// Of a part, predicted: what its codes and operators make of the gradients.
  GradientError error_of(const Part& part) const;
  /// Of all parts of the point's plan.
  GradientError error_at(std::size_t point) const;
  /// Where a plan of these parts needs most; no stage: outside of all, in the optimizer's step.
  struct Tightest {
    std::optional<std::size_t> stage;
    bool is_backward = false;
  };
  Tightest tightest(const std::vector<Part>& parts) const;

  /// No plan that keeps or recomputes tensors inside of stages takes less time in so many bytes;
  /// nor, if a link to the host brings so many bytes per ns each way, one that offloads some. Plans
  /// whose errors exceed the settings' bound may be faster. From `enough` on no higher bound is
  /// looked for.
  std::int64_t lower_bound(std::int64_t bytes, double link = 0,
                           std::int64_t enough = std::numeric_limits<std::int64_t>::max()) const;
  /// The same of plans whose recovery may run on a second stream.
  std::int64_t lower_bound_of_streams(
      std::int64_t bytes, double link = 0, bool are_joined = false,
      std::int64_t enough = std::numeric_limits<std::int64_t>::max()) const;
  /// Nor one that does so inside of blocks joined as `joined_lengths` say.
  std::int64_t lower_bound_of_joined(
      std::int64_t bytes, double link = 0,
      std::int64_t enough = std::numeric_limits<std::int64_t>::max()) const;
  /// What no decision about stages changes: the most that is there outside of them.
  std::int64_t rest() const { return reference_.rest + steady_; }

  Resource resource() const { return resource_; }
  /// May plans recover several blocks as one?
  bool joins() const { return !joined_.empty(); }
  const Trace& trace() const { return *trace_; }
  const Needs& needs() const { return needs_; }
  const Stages& stages() const { return stages_; }
  /// Local plans that stages of a kind choose from where nothing held is dropped.
  const std::vector<Entry>& menu(std::uint32_t kind) const {
    return modes_.front().menus.front()[kind];
  }
  /// Of a pipeline stage: as many micro-batches of it are kept when most is there.
  std::int64_t kept_at_once(std::size_t stage) const;
  /// Of a stage that keeps everything.
  const StageCost& kept_cost(std::size_t stage) const { return reference_.stages[stage]; }

 private:
  using Menu = std::vector<Entry>;
  /// What is held to the end of the forward is kept by all stages, or by none: then bytes add up.
  /// Free, where stages have few choices: some keep it, and sums are at most too large, because
  /// what is kept counts as held, too.
  struct Mode {
    Held held;
    std::vector<std::vector<Menu>> menus = {};  ///< by chain: of single stages, then by joined_;
                                                ///< by kind
    std::vector<Menu> behind = {};  ///< by kind: of single stages, behind undone couplings; empty
                                    ///< where those leave what any others do
    std::vector<std::vector<Part>> parts = {};  ///< by link of the chain: of the front's choices
    /// The first, and of a stage with micro-batches in flight some with slacks.
    std::vector<ChunkFronts> fronts = {};
  };
  struct NamedPlan {
    std::size_t chain;
    std::vector<Entry> entries;  ///< by stage of the chain
    /// Where local plans cannot say what the strategy does: entries describe as much as they can.
    std::optional<Plan> whole = {};
  };
  struct Step {
    std::int64_t bytes, time;  ///< bytes of the stages: they rise even where `rest` needs more
    std::uint32_t mode, front, point;
  };

  /// What is known of the trace, without menus, fronts and operators.
  Planner(const Planner& other);
  /// The same for bounds: so many ns are added for a unit of error, to forms in codes and to stages
  /// with approximate operators. It has no front.
  struct PriceOfError {
    double price;
  };
  Planner(const Planner& plain, PriceOfError price);
  struct OnlyBounds {};
  Planner(const Planner& plain, Resource resource, OnlyBounds);
  /// The same for a bound: recovery costs what it does not save beside gradients.
  Planner(const Planner& plain, const PricesBeside& beside);

  const Stages& chain(std::size_t number) const {
    return number == 0 ? stages_ : joined_[number - 1].chain;
  }
  const std::vector<std::vector<Coded>>* coded_forms() const {
    return coded_.empty() ? nullptr : &coded_;
  }
  std::vector<std::int64_t> least_bytes() const;
  bool bounds_errors() const { return noise_ && std::isfinite(settings_.most_error); }
  std::int64_t units_of(const GradientError& error) const;
  bool has_block_within_bound() const;
  double price_of_errors(double share) const;
  std::vector<std::vector<Coded>> coded_at(double price) const;
  const Planner& of(std::uint32_t operators) const {
    return operators == 0 ? *this : *operators_[operators - 1].everywhere;
  }
  /// Calls visit(operators) for all that the stage's block may have.
  template <typename Visit>
  void for_each_operators(const Stage& stage, Visit visit) const {
    const std::size_t count = stage.block < 0 ? 0 : operators_.size();
    for (std::uint32_t operators = 0; operators <= count; ++operators) visit(operators);
  }
  std::vector<StrategySpec::Component> operators_at(const std::vector<Part>& parts) const;
  void offer(std::size_t mode, const Links& links, std::uint32_t link, std::vector<Choice>& choices,
             std::vector<Part>& parts, std::int64_t late, std::int64_t passing) const;
  bool is_stopped() const { return settings_.is_stopped && settings_.is_stopped(); }
  void measure_codes();
  void propose();
  std::vector<PlannedStep> named_steps() const;
  bool is_about(const PlannedStep& step) const;
  enum class Described : std::uint8_t { ByStages, AsWhole };
  void add_named(std::size_t number, PlannedStep step, Described described = Described::ByStages);
  std::vector<PlannedStep> steps_with_other_codes() const;
  std::optional<NamedPlan> made_of_local(std::size_t number, const Plan& plan) const;
  NamedPlan described_whole(Plan plan) const;
  void measure(NamedPlan& named) const;
  void keep(NamedPlan named);
  const Plan* whole_plan(std::size_t point) const;
  std::vector<Part> parts_of(const NamedPlan& named) const;
  std::vector<Part> parts_of(std::uint32_t mode, std::uint32_t front, std::uint32_t point) const;
  std::vector<std::int64_t> gradients_of_chunks() const;
  std::int64_t gradients_beside(const Moment& moment) const;
  std::vector<std::int64_t> times_kept() const;
  std::size_t chunk_of(std::size_t stage) const;
  std::vector<ChunkOfChain> chunks_of(const Links& links) const;
  void add_slacks(const std::vector<std::vector<Choice>>& choices, const Links& links,
                  Mode& mode) const;
  template <typename Visit>
  void for_each_need(const std::vector<Part>& parts, const Visit& visit) const;
  std::int64_t room_in_flight(const std::vector<Part>& parts) const;
  Tightest tightest_in_flight(const std::vector<Part>& parts) const;
  std::vector<std::int64_t> forward_in(Resource resource) const;
  void count(Resource resource);
  void propose_single(const std::vector<PlannedStep>& named, std::uint32_t kind);
  std::vector<LocalPlan> of_less_error(const ProposalInput& input) const;
  std::int64_t undone_bytes(std::size_t stage) const;
  void cut(std::uint32_t kind, const std::vector<std::vector<Coded>>* coded);
  void thin(const Stages& stages, std::vector<Menu>& menus) const;
  void propose_joined(Mode& mode, const JoinedStages& joined, const PlannedStep& segmented,
                      std::vector<Menu>& menus) const;
  void count_ranges();
  std::vector<SharedRuns> recovered_within(std::int64_t bytes) const;
  std::int64_t bound_of_neighbours(std::int64_t bytes, double link, bool are_joined,
                                   std::int64_t enough) const;
  void solve_all();
  std::vector<double> prices_within(const Stage& stage) const;
  bool is_joint(const Stage& stage, const LocalPlan& local) const;
  bool hands_on_unsaved(const Stage& stage) const;
  void measure_behind(Mode& mode) const;
  void measure_behind(const std::vector<std::uint32_t>& stages, const Mode& mode,
                      std::vector<Menu>& menus, bool undoes) const;
  Links links_of(const Mode& mode) const;
  /// A step that is lowered and looked at: as it is, and in the passes that are written down.
  struct StepAtHand {
    const Trace &trace, &passes;
    const Needs& needs;
    const CostModel& costs;
  };
  Survey surveyed(const StepAtHand& step, const Stages& stages,
                  const std::vector<const LocalPlan*>& locals) const;
  std::optional<ShorterStep> shorter_step(const Stages& stages,
                                          const std::vector<Menu>& menus) const;
  void measure(const Stages& stages, std::vector<Menu>& menus) const;
  template <typename Measure>
  void measure(const Stages& stages, std::vector<Menu>& menus, const Measure& survey) const;
  void measure_menus();
  void solve(std::size_t mode);
  void merge_fronts();
  Survey survey_of(const Stages& stages, const std::vector<const LocalPlan*>& locals) const;
  Survey survey_of(const Stages& stages, const Plan& whole) const;
  std::int64_t need_of(std::size_t stage, const StageCost& cost, std::int64_t late) const;
  std::vector<std::int64_t> charged_before_last_read() const;
  std::vector<double> forward_room(const Moment& moment, std::int64_t bytes, double link) const;
  std::vector<double> backward_room(const Moment& moment, std::int64_t bytes, double link) const;
  std::vector<double> gone_by(double link) const;
  std::vector<const Moment*> bounding_moments() const;
  Held held_at(const Moment& moment) const;
  template <typename Bound>
  std::int64_t best_at_prices_of_errors(std::int64_t enough, Bound bound) const;
  std::int64_t bound_of_single(std::int64_t bytes, double link) const;
  std::int64_t bound_of_joined(std::int64_t bytes, double link) const;
  /// A forward or a backward: room before each stage, and behind all.
  struct Pass {
    std::vector<double> room;
    std::vector<std::vector<WithinStage>> within;  ///< by stage
  };
  double bound_of_joined(const Moment& moment, const std::vector<Pass>& passes, double link) const;
  class LeastCosts;
  class CostsByTimes;
  std::set<double> prices_of_free() const;
  double kept_time() const;
  std::int64_t least_forward(std::size_t stage) const;
  std::int64_t most_forward_ns(std::size_t stage) const;
  std::int64_t most_coding_ns(TensorId storage) const;
  std::int64_t bytes_before() const;
  std::int64_t least_launches() const;
  Hull hull_at(std::size_t stage, Held held) const;
  std::vector<std::vector<WithinStage>> within(const Moment& moment,
                                               const std::vector<double>& room) const;
  void offer_offload(Mode& mode) const;
  std::int64_t forward_time(std::size_t kind) const;

  std::shared_ptr<const Trace> trace_;
  std::shared_ptr<const Trace> measured_;  ///< the same with few passes, which stand for all
  Device device_;
  Counted counted_;
  PlannerSettings settings_;
  std::vector<Moment> moments_;
  Needs needs_;
  Stages stages_;
  std::vector<ChunkOfStage> chunks_;  ///< of a pipeline stage; else all is one
  std::vector<JoinedStages> joined_;
  std::shared_ptr<const GradientNoise> noise_;  ///< none where gradients are exact
  std::unique_ptr<CostModel> costs_;            ///< none where nothing is measured anew
  double share_beyond_ = 0;
  bool offers_copies_ = false;             ///< to the host's memory
  std::vector<std::vector<Coded>> coded_;  ///< by tensor; empty where nothing may be coded
  std::int64_t steady_ = 0;                ///< bytes of the ranges of codes, at most
  Resource resource_ = Resource::Time;     ///< that counts
  std::vector<Load> forward_load_;         ///< by op: of its forward, in all passes
  std::vector<std::int64_t> forward_ns_;   ///< … of what counts, in ns
  std::vector<SharedRuns> gradient_runs_;  ///< that recovery may run beside
  Survey reference_;                       ///< of the plan that keeps everything
  /// … without what reruns alone would read; bounds count that where it is read.
  Survey bare_;
  std::vector<std::vector<AtGradient>> at_gradients_;  ///< by stage
  std::vector<std::int64_t> least_backward_;           ///< by stage
  std::vector<Mode> modes_;
  /// By kind: the hulls over local plans that keep what is held, and over all.
  std::vector<std::vector<Proposal>> keeping_, free_;
  /// By kind: can its couplings be undone; then hulls of those that recover their inputs, too,
  /// without the time of the inverse.
  std::vector<bool> undoes_;
  std::vector<std::vector<Proposal>> undoing_;
  std::vector<Step> points_;
  std::vector<std::shared_ptr<const NamedPlan>> named_;
  std::vector<BlockOperators> operators_;
};

}  // namespace tidemark
