// Example, modules a b c c b a of 10 elements each, prefetch 1, reuse 10:
//   a  now a  ahead b  freed a
//   b         ahead c  freed b
//   c         ahead b           c is the next
//   c         ahead a  freed c
//   b                  freed b
//   a                  freed a
#include "simulator/parallel/module_fetches.h"

#include <algorithm>

namespace tidemark {
namespace {

class FetchPlan {
 public:
  FetchPlan(const Trace& trace, const Sharding& sharing, std::vector<ModuleFetch>& modules)
      : trace_(trace),
        sharing_(sharing),
        modules_(modules),
        is_there_(trace.tensors.size()),
        fetched_for_(trace.tensors.size(), -1),
        uses_(trace.tensors.size()),
        next_use_(trace.tensors.size()) {
    before_.push_back(0);
    for (std::size_t m = 0; m < modules.size(); ++m) {
      std::int64_t elements = 0;
      for (const TensorId parameter : modules[m].parameters) {
        queue_.push_back({parameter, m});
        uses_[index(parameter)].push_back(m);
        elements += numel_of(parameter);
        if (is_persistent(trace, parameter, sharing)) is_there_[index(parameter)] = true;
      }
      before_.push_back(before_.back() + elements);
    }
  }

  void run() {
    for (std::size_t m = 0; m < modules_.size(); ++m) {
      fetch(m);
      fetch_ahead(m);
      for (const TensorId parameter : modules_[m].parameters)
        if (is_freed(parameter, m)) free(parameter, modules_[m].freed);
    }
  }

 private:
  struct Use {
    TensorId parameter;
    std::size_t module;
  };

  std::int64_t numel_of(TensorId parameter) const { return numel(trace_[parameter].shape); }

  void gather(TensorId parameter, std::vector<TensorId>& together) {
    is_there_[index(parameter)] = true;
    live_ += numel_of(parameter);
    together.push_back(parameter);
  }

  // What is fetched now is taken off the queue, unless fetching ahead has done so.
  void fetch(std::size_t m) {
    for (const TensorId parameter : modules_[m].parameters)
      if (!is_there_[index(parameter)]) gather(parameter, modules_[m].now);
    while (next_ < queue_.size() && queue_[next_].module <= m) pass(queue_[next_++]);
  }

  void pass(const Use& use) {
    std::int64_t& last = fetched_for_[index(use.parameter)];
    last = std::max(last, static_cast<std::int64_t>(use.module));
  }

  void fetch_ahead(std::size_t m) {
    const std::int64_t most = std::min(sharing_.max_live - live_, sharing_.prefetch);
    std::int64_t fetched = 0;
    while (next_ < queue_.size() && fetched < most) {
      const Use use = queue_[next_++];
      pass(use);
      if (is_there_[index(use.parameter)]) continue;
      gather(use.parameter, modules_[m].ahead);
      fetched += numel_of(use.parameter);
    }
  }

  bool is_freed(TensorId parameter, std::size_t m) {
    if (is_persistent(trace_, parameter, sharing_)) return false;
    if (fetched_for_[index(parameter)] > static_cast<std::int64_t>(m + 1)) return false;
    const std::vector<std::size_t>& uses = uses_[index(parameter)];
    std::size_t& next = next_use_[index(parameter)];
    while (next < uses.size() && uses[next] <= m) ++next;
    return next == uses.size() || before_[uses[next]] - before_[m + 1] >= sharing_.reuse_distance;
  }

  void free(TensorId parameter, std::vector<TensorId>& freed) {
    is_there_[index(parameter)] = false;
    live_ -= numel_of(parameter);
    freed.push_back(parameter);
  }

  const Trace& trace_;
  const Sharding& sharing_;
  std::vector<ModuleFetch>& modules_;
  std::vector<Use> queue_;
  std::size_t next_ = 0;                        ///< in the queue
  std::vector<std::int64_t> before_;            ///< by module: elements of those before it
  std::vector<bool> is_there_;                  ///< by tensor: as a whole, or on its way
  std::vector<std::int64_t> fetched_for_;       ///< by tensor: the last use passed in the queue
  std::vector<std::vector<std::size_t>> uses_;  ///< by tensor: modules
  std::vector<std::size_t> next_use_;           ///< by tensor: into its uses
  std::int64_t live_ = 0;                       ///< elements
};

}  // namespace

bool is_persistent(const Trace& trace, TensorId parameter, const Sharding& sharing) {
  return numel(trace[parameter].shape) <= sharing.persistence;
}

void plan_fetches(const Trace& trace, const Sharding& sharing, std::vector<ModuleFetch>& modules) {
  FetchPlan(trace, sharing, modules).run();
}

}  // namespace tidemark
