// A region per block; which values reruns read is known when recovery has been derived once.
#include "analysis/planning/recomputed_blocks.h"

#include "simulator/graph/recovery.h"
#include "simulator/needs.h"

namespace tidemark {
namespace {

class Decisions {
 public:
  Decisions(const Trace& trace, const std::vector<bool>& is_recomputed)
      : trace_(trace),
        is_recomputed_(is_recomputed),
        needs_(derive_needs(trace)),
        plan_(keep_everything(trace)) {}

  std::optional<Plan> run() {
    for (const Block& block : trace_.blocks) decide_about(block);
    Plan generous = plan_;
    for (const TensorId value : others_) keep_for_recovery(generous, value);
    const Recovery recovery = derive_recovery(trace_, generous, needs_);
    for (const TensorId value : others_)
      if (recovery.uses[index(value)] > 0) keep_for_recovery(plan_, value);
    if (!check(trace_, plan_).empty()) return std::nullopt;
    return std::move(plan_);
  }

 private:
  void decide_about(const Block& block) {
    bool runs_any = false;
    for (std::size_t i = index(block.begin); i < index(block.end); ++i)
      for (const TensorId output : trace_.outputs(trace_.ops[i])) {
        if (trace_[output].storage != output) continue;
        const bool is_needed = needs_.uses[index(output)] > 0;
        if (!is_recomputed_[i]) {
          if (!is_needed && !is_view(trace_.ops[i].kind)) others_.push_back(output);
        } else if (is_needed && !needs_.runs_once[i] &&
                   last_forward_use(needs_, output) < block.end) {
          decide(plan_, output, Action::Recompute, "asked for in every block");
          runs_any = true;
        }
      }
    if (runs_any)
      plan_.regions.push_back(
          {block.begin, block.begin, block.end, static_cast<std::int32_t>(plan_.regions.size())});
  }

  const Trace& trace_;
  const std::vector<bool>& is_recomputed_;
  const Needs needs_;
  Plan plan_;
  std::vector<TensorId> others_;  ///< that no gradient needs, and nobody asked to make again
};

}  // namespace

std::optional<PlannedStep> recomputed_in_blocks(const std::shared_ptr<const Trace>& trace,
                                                const std::vector<bool>& is_recomputed) {
  std::optional<Plan> plan = Decisions(*trace, is_recomputed).run();
  if (!plan) return std::nullopt;
  return PlannedStep{trace, std::move(*plan), {}, {}};
}

}  // namespace tidemark
