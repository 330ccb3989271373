// The planner: for any amount of memory, the fastest plan that is put together from local plans of
// stages, and how much faster any other could be at most.
#pragma once

#include <algorithm>
#include <memory>

#include "simulator/cost/device.h"
#include "simulator/planner/front.h"
#include "simulator/planner/local_plan.h"
#include "simulator/planner/proposals.h"
#include "simulator/planner/survey.h"

namespace tidemark {

/// What plans may be made of.
enum class PlanForm : std::uint8_t {
  Tensors,  ///< each tensor that a stage saves by itself
  Blocks,   ///< whole blocks, as torch.utils.checkpoint wraps them
};

/// All about one trace on one device that answers to budgets are looked up in. Bytes are those that
/// `counted` says, of tensors in issue order.
class Planner {
 public:
  Planner(std::shared_ptr<const Trace> trace, const Device& device, const Counted& counted,
          PlanForm form = PlanForm::Tensors);
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  /// Of the whole step, in sums: bytes never fall from point to point, and ns do.
  struct Point {
    std::int64_t bytes, time;
  };
  std::size_t size() const { return points_.size(); }
  Point operator[](std::size_t point) const {
    return {std::max(points_[point].bytes, reference_.rest), points_[point].time};
  }
  /// The fastest plan in so many bytes; nothing if there is none.
  std::optional<std::size_t> within(std::int64_t bytes) const;
  Plan plan_at(std::size_t point) const;

  /// A local plan with its measured cost.
  struct Entry {
    LocalPlan plan;
    StageCost cost;
  };
  /// Of the point's plan, by stage.
  std::vector<const Entry*> entries_at(std::size_t point) const;
  /// Where the plan of a point needs most; no stage: outside of all, in the optimizer's step.
  struct Tightest {
    std::optional<std::size_t> stage;
    bool is_backward = false;
  };
  Tightest tightest(std::size_t point) const;

  /// No plan that keeps or recomputes tensors inside of stages takes less time in so many bytes.
  std::int64_t lower_bound(std::int64_t bytes) const;
  /// What no decision about stages changes: the most that is there outside of them.
  std::int64_t rest() const { return reference_.rest; }

  const Trace& trace() const { return *trace_; }
  const Needs& needs() const { return needs_; }
  const Stages& stages() const { return stages_; }
  /// Local plans that stages of a kind choose from where nothing held is dropped.
  const std::vector<Entry>& menu(std::uint32_t kind) const { return modes_.front().menus[kind]; }
  /// Of a stage that keeps everything.
  const StageCost& kept_cost(std::size_t stage) const { return reference_.stages[stage]; }

 private:
  /// What is held to the end of the forward is kept by all stages, or by none: then bytes add up.
  struct Mode {
    Held held;
    std::vector<std::vector<Entry>> menus;  ///< by kind
    std::optional<Front> front = {};
  };
  struct Step {
    std::int64_t bytes, time;  ///< bytes of the stages: they rise even where `rest` needs more
    std::uint32_t mode, point;
  };

  void propose(PlanForm form);
  void measure(Mode& mode);
  void solve(Mode& mode);
  void merge_fronts();
  Survey survey_of(const std::vector<const LocalPlan*>& locals) const;
  std::int64_t need_of(std::size_t stage, const StageCost& cost, std::int64_t late) const;

  std::shared_ptr<const Trace> trace_;
  Device device_;
  Counted counted_;
  Needs needs_;
  Stages stages_;
  CostModel costs_;
  Survey reference_;                          ///< of the plan that keeps everything
  std::vector<std::int64_t> least_backward_;  ///< by stage
  std::vector<Mode> modes_;
  /// By kind: the hulls over local plans that keep what is held, and over all.
  std::vector<std::vector<Proposal>> keeping_, free_;
  std::vector<Step> points_;
};

}  // namespace tidemark
