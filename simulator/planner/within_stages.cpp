// Moments within a stage's backward, while one of its ops has its gradients: what its stage keeps
// for gradients that come later is there, too.
#include <map>

#include "simulator/planner/planner.h"
#include "simulator/planner/under_way.h"

namespace tidemark {
namespace {

// By decided storage: do gradients need it, and all of them later than the op has its own?
std::vector<bool> needed_after(OpId op, const Trace& trace, const Needs& needs,
                               const Stage& stage) {
  std::vector<bool> found(stage.decided.size(), true);
  for (std::size_t i = index(op); i < index(stage.end); ++i)
    for_each_operand(trace, trace.ops[i], needs.saved[i], [&](TensorId storage, TensorId) {
      for (std::size_t d = 0; d < found.size(); ++d)
        if (stage.decided[d] == storage) found[d] = false;
    });
  return found;
}

// Those that may be tightest: the earlier the op, the fewer are left that come later.
std::vector<const AtGradient*> tightest_of(const std::vector<AtGradient>& all) {
  std::vector<const AtGradient*> found;
  for (const AtGradient& at : all)
    if (found.empty() || at.bytes > found.back()->bytes) found.push_back(&at);
  return found;
}

// What its gradients need, and stages behind it read: joined ones may decide about it.
bool hands_on_needed(const Trace& trace, const Needs& needs, const Stage& stage) {
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i) {
    bool found = false;
    for_each_operand(trace, trace.ops[i], needs.saved[i], [&](TensorId storage, TensorId) {
      const OpId producer = needs.producer[index(storage)];
      found = found || (producer != no_op && producer >= stage.begin &&
                        last_forward_use(needs, storage) >= stage.end);
    });
    if (found) return true;
  }
  return false;
}

}  // namespace

// `room`: that of backward_room().
std::vector<std::vector<WithinStage>> Planner::within(const Moment& moment,
                                                      const std::vector<double>& room) const {
  std::vector<std::vector<WithinStage>> found(stages_.all.size());
  if (!moment.is_backward || is_in_flight(moments_) || !operators_.empty() || !coded_.empty())
    return found;
  const std::vector<OpId> first_need = first_needs(*trace_, needs_);
  std::map<std::pair<std::uint32_t, std::size_t>, Hull> hulls;  // by kind and op of the stage
  for (std::size_t s = 0; s < stages_.all.size(); ++s) {
    const Stage& stage = stages_.all[s];
    if (stage.decided.empty() || !can_be_cut(stage) || undoes_[stage.kind]) continue;
    const OpId taken = takes_up_to(stage, first_need);
    const bool hands_on = hands_on_needed(*trace_, needs_, stage);
    for (const AtGradient* at : tightest_of(at_gradients_[s])) {
      Hull& hull = hulls[{stage.kind, index(at->op) - index(stage.begin)}];
      if (hull.empty()) {
        const std::vector<bool> counted = needed_after(at->op, *trace_, needs_, stage);
        ProposalInput input{*trace_, needs_, stage, forward_ns_};
        input.counted = &counted;
        input.there = &at->there;
        for (const Proposal& corner : hull_of(input))
          hull.push_back({static_cast<double>(corner.kept), static_cast<double>(corner.time)});
      }
      found[s].push_back({room[s] + static_cast<double>(least_backward_[s] - at->bytes), hull,
                          !hands_on && (taken == no_op || at->op > taken)});
    }
  }
  return found;
}

}  // namespace tidemark
