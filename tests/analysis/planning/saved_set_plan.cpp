// Walks back from what is missing to what is there.
#include "tests/analysis/planning/saved_set_plan.h"

#include <algorithm>

#include "simulator/needs.h"

namespace tidemark {
namespace {

class SavedSet {
 public:
  SavedSet(const Trace& trace, const std::set<std::string>& saved)
      : trace_(trace), needs_(derive_needs(trace)), saved_(saved), reruns_(trace.ops.size()) {}

  Plan plan() {
    Plan plan = keep_everything(trace_);
    plan.strategy = "saved set";
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      const auto storage = static_cast<TensorId>(t);
      if (trace_[storage].storage != storage || needs_.uses[t] == 0 || is_there(storage)) continue;
      decide(plan, storage, Action::Recompute, "not in the set that is saved");
      run_again(needs_.producer[t]);
    }
    for (std::size_t i = 0; i < reruns_.size(); ++i)
      for (const TensorId storage : read_by(i))
        if (reruns_[i] && needs_.producer[index(storage)] != no_op && is_there(storage) &&
            needs_.uses[index(storage)] == 0)
          keep_for_recovery(plan, storage);
    add_regions(plan);
    return plan;
  }

 private:
  bool is_there(TensorId storage) const {
    return needs_.producer[index(storage)] == no_op || saved_.contains(trace_[storage].name);
  }

  std::vector<TensorId> read_by(std::size_t op) const {
    std::vector<TensorId> storages;
    for (const TensorId input : trace_.inputs(trace_.ops[op]))
      storages.push_back(trace_[input].storage);
    return storages;
  }

  void run_again(OpId op) {
    if (reruns_[index(op)]) return;
    reruns_[index(op)] = true;
    for (const TensorId storage : read_by(index(op)))
      if (!is_there(storage)) run_again(needs_.producer[index(storage)]);
  }

  std::size_t last_use(std::size_t op) const {
    std::size_t last = op;
    for (const TensorId output : trace_.outputs(trace_.ops[op])) {
      const TensorId storage = trace_[output].storage;
      if (is_there(storage)) continue;
      if (needs_.uses[index(storage)] > 0)
        last = std::max(last, index(last_forward_use(needs_, storage)));
      for (std::size_t reader = op + 1; reader < reruns_.size(); ++reader)
        if (reruns_[reader] && std::ranges::count(read_by(reader), storage) > 0)
          last = std::max(last, reader);
    }
    return last;
  }

  void add_regions(Plan& plan) const {
    for (std::size_t i = 0; i < reruns_.size(); ++i) {
      if (!reruns_[i]) continue;
      const auto end = static_cast<OpId>(last_use(i) + 1), begin = static_cast<OpId>(i);
      if (!plan.regions.empty() && begin < plan.regions.back().end)
        plan.regions.back().end = std::max(plan.regions.back().end, end);
      else
        plan.regions.push_back({begin, begin, end, static_cast<std::int32_t>(plan.regions.size())});
    }
  }

  const Trace& trace_;
  const Needs needs_;
  const std::set<std::string>& saved_;
  std::vector<bool> reruns_;
};

}  // namespace

Plan plan_of_saved(const Trace& trace, const std::set<std::string>& saved) {
  return SavedSet(trace, saved).plan();
}

}  // namespace tidemark
