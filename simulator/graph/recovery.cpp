// Example: x0 ─f1─► x1 ─f2─► x2 in one region; x0 is Keep, x1 is Recompute, f2's gradient needs x1.
//   sweep from the end   f2: x2 is not wanted          f1: x1 is wanted, so f1 runs again and x0 is
//                                                      read once more
#include "simulator/graph/recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/derived.h"

namespace tidemark {
namespace {

class Marking {
 public:
  Marking(const Trace& trace, const Plan& plan, const Needs& needs)
      : trace_(trace), plan_(plan), needs_(needs), once_(ops_that_run_once()) {
    result_.reruns.resize(trace.ops.size());
    result_.inverts.resize(trace.ops.size());
    result_.reads_kept.resize(trace.tensors.size());
    result_.uses = needs.uses;
    present_.resize(trace.tensors.size());
    wanted_.resize(trace.tensors.size());
    is_inverted_.resize(trace.tensors.size());
    for (std::size_t i = 0; i < trace.tensors.size(); ++i)
      present_[i] = needs.producer[i] == no_op || survives_forward(plan.decisions[i].action);
  }

  Recovery run() && {
    std::size_t region = plan_.regions.size();
    for (std::size_t op = trace_.ops.size(); op > 0;) {
      if (region > 0 && index(plan_.regions[region - 1].end) == op) {
        const Region& current = plan_.regions[--region];
        mark(index(current.split), op);
        mark(index(current.begin), index(current.split));
        op = index(current.begin);
        continue;
      }
      --op;
      for_each_operand(trace_, trace_.ops[op], needs_.saved[op],
                       [&](TensorId storage, TensorId) { require_present(storage, op); });
    }
    return std::move(result_);
  }

 private:
  static bool survives_forward(Action action) {
    return action != Action::Recompute && action != Action::Reconstruct;
  }

  // By op: the part of a region that recovers it, counted from 1; 0 outside of regions.
  std::vector<std::uint32_t> parts() const {
    std::vector<std::uint32_t> part(trace_.ops.size());
    std::uint32_t next = 0;
    for (const Region& region : plan_.regions) {
      const auto number = [&](OpId begin, OpId end) {
        ++next;
        for (std::size_t i = index(begin); i < index(end); ++i) part[i] = next;
      };
      number(region.begin, region.split);
      number(region.split, region.end);
    }
    return part;
  }

  // What ops in place have changed is made again from its first version on, by all who wrote it:
  // if none of it stays from the forward, and one part of a region has them all.
  std::vector<bool> ops_that_run_once() const {
    std::vector<bool> once = needs_.runs_once, stays(trace_.tensors.size());
    const auto is_changed = [](OpId by) { return by != no_op; };
    if (std::ranges::none_of(needs_.overwritten_by, is_changed)) return once;
    const std::vector<std::uint32_t> part = parts();
    for (std::size_t s = 0; s < stays.size(); ++s) {
      const OpId first = needs_.producer[s], last = needs_.overwritten_by[s];
      if (first == no_op || last == no_op) continue;
      const bool is_in_one_part =
          part[index(first)] != 0 && part[index(first)] == part[index(last)];
      stays[s] = !is_in_one_part || is_kept(static_cast<TensorId>(s));
    }
    add_ops_on_earlier_versions(trace_, needs_, stays, once);
    while (add_unfinished(once, stays)) add_ops_on_earlier_versions(trace_, needs_, stays, once);
    return once;
  }

  bool is_kept(TensorId storage) const {
    return needs_.uses[index(storage)] > 0
               ? survives_forward(plan_.decisions[index(storage)].action)
               : is_kept_for_recovery(plan_, storage);
  }

  // One op that does not run again is enough for what it changes to stay.
  bool add_unfinished(const std::vector<bool>& once, std::vector<bool>& stays) const {
    bool is_any = false;
    for (std::size_t i = 0; i < once.size(); ++i) {
      if (!once[i] || is_view(trace_.ops[i].kind)) continue;
      for (const TensorId output : trace_.outputs(trace_.ops[i])) {
        const std::size_t s = index(trace_[output].storage);
        if (needs_.overwritten_by[s] == no_op || stays[s]) continue;
        stays[s] = is_any = true;
      }
    }
    return is_any;
  }

  void mark(std::size_t begin, std::size_t end) {
    wanted_list_.clear();
    const std::size_t stop =
        index(end_of_reruns(trace_, needs_, static_cast<OpId>(begin), static_cast<OpId>(end)));
    for (std::size_t i = begin; i < end; ++i) {
      forget_unsaved(i);
      for_each_operand(trace_, trace_.ops[i], needs_.saved[i],
                       [&](TensorId storage, TensorId) { want(storage); });
      if (undoes(i)) want(shortcut(i));
    }
    for (std::size_t i = end; i-- > begin;) {
      want_decided(i, stop);
      mark_op(i);
    }
    for (const TensorId storage : inverted_) {
      is_inverted_[index(storage)] = false;
      present_[index(storage)] = true;
    }
    inverted_.clear();
    for (const TensorId storage : wanted_list_) {
      wanted_[index(storage)] = false;
      require_present(storage, end - 1);
    }
    for (std::size_t i = begin; plan_.quirks.holds_unread && i < end; ++i) hold_unread(i);
  }

  // One use more, of whoever holds it.
  void hold_unread(std::size_t i) {
    for (const TensorId output : trace_.outputs(trace_.ops[i])) {
      if (!is_kept_for_recovery(plan_, output) || result_.uses[index(output)] > 0) continue;
      result_.uses[index(output)] = 1;
      result_.reads_kept[index(output)] = true;
    }
  }

  // What no gradient needs is not kept just because it is read again: it is made again with the
  // rest, unless the plan keeps it for that. But the sum that a coupling is undone from is where
  // recovery starts, and what an op makes that may not run again stays.
  void forget_unsaved(std::size_t i) {
    if (undoes(i) || once_[i]) return;
    for (const TensorId output : trace_.outputs(trace_.ops[i]))
      if (trace_[output].storage == output && needs_.uses[index(output)] == 0 &&
          !is_kept_for_recovery(plan_, output))
        present_[index(output)] = false;
  }

  // What the plan says is made again is, even if nobody needs it; and changed in place as long as
  // the region runs.
  void want_decided(std::size_t i, std::size_t stop) {
    if (once_[i] || is_view(trace_.ops[i].kind)) return;
    for (const TensorId output : trace_.outputs(trace_.ops[i])) {
      const TensorId storage = trace_[output].storage;
      if ((storage == output || i < stop) && needs_.uses[index(storage)] == 0 &&
          plan_.decisions[index(storage)].action == Action::Recompute)
        want(storage);
    }
  }

  void mark_op(std::size_t i) {
    const Op& op = trace_.ops[i];
    if (undoes(i) && wanted_[index(shortcut(i))] && !present_[index(shortcut(i))]) {
      result_.inverts[i] = true;
      wanted_[index(shortcut(i))] = false;
      is_inverted_[index(shortcut(i))] = true;
      inverted_.push_back(shortcut(i));
      read(trace_[trace_.outputs(op)[0]].storage);
      read(trace_[trace_.inputs(op)[1]].storage);
    }
    if (is_view(op.kind) || once_[i]) return;
    bool reruns = false;
    for (const TensorId output : trace_.outputs(op)) {
      const TensorId storage = trace_[output].storage;
      reruns |= wanted_[index(storage)] && !present_[index(storage)];
    }
    if (!reruns) return;
    result_.reruns[i] = true;
    // Who works in place on it has others before, down to the one that makes it.
    for (const TensorId output : trace_.outputs(op)) {
      const TensorId storage = trace_[output].storage;
      if (needs_.producer[index(storage)] == static_cast<OpId>(i)) present_[index(storage)] = true;
    }
    for (const TensorId input : trace_.inputs(op)) read(trace_[input].storage);
  }

  // A coupling's add whose first summand the plan wants back, and that somebody can still use.
  bool undoes(std::size_t i) const {
    const Op& op = trace_.ops[i];
    return op.residual && row_of(op.kind).inverts_input0 && op.inputs == 2 && is_whole(i) &&
           plan_.decisions[index(shortcut(i))].action == Action::Reconstruct &&
           (needs_.uses[index(shortcut(i))] > 0 || feeds_earlier_region(shortcut(i)));
  }

  // Does the inverse make all of the summand's memory, and not a part or another dtype?
  bool is_whole(std::size_t i) const {
    const Tensor& sum = trace_[trace_.outputs(trace_.ops[i])[0]];
    const Tensor& whole = trace_[shortcut(i)];
    return size(sum) == size(whole) && sum.dtype == whole.dtype;
  }

  // The output of an earlier coupling: its own recovery starts from it.
  bool feeds_earlier_region(TensorId storage) const {
    const OpId producer = needs_.producer[index(storage)];
    return producer != no_op && trace_[producer].residual && needs_.gradients[index(producer)] != 0;
  }

  TensorId shortcut(std::size_t i) const { return trace_[trace_.inputs(trace_.ops[i])[0]].storage; }

  void want(TensorId storage) {
    if (is_inverted_[index(storage)]) {
      result_.defects.push_back(
          fmt::format("'{}' is {}, but what would recover it needs it first: keep it",
                      trace_[storage].name, to_string(plan_.decisions[index(storage)].action)));
    }
    if (present_[index(storage)] || wanted_[index(storage)]) return;
    wanted_[index(storage)] = true;
    wanted_list_.push_back(storage);
  }

  void read(TensorId storage) {
    ++result_.uses[index(storage)];
    const OpId producer = needs_.producer[index(storage)];
    if (present_[index(storage)] && producer != no_op && !result_.reruns[index(producer)])
      result_.reads_kept[index(storage)] = true;
    want(storage);
  }

  void require_present(TensorId storage, std::size_t op) {
    if (present_[index(storage)]) return;
    result_.defects.push_back(fmt::format(
        "'{}' is {} but nothing provides it before the gradient of '{}': keep it, or let one "
        "region hold its producer and all its uses",
        trace_[storage].name, to_string(plan_.decisions[index(storage)].action),
        trace_.ops[op].name));
    present_[index(storage)] = true;  // reported once
  }

  const Trace& trace_;
  const Plan& plan_;
  const Needs& needs_;
  const std::vector<bool> once_;  ///< by op: it does not run again in this plan
  Recovery result_;
  std::vector<bool> present_, wanted_;
  std::vector<bool> is_inverted_;  ///< not before this part's later ops
  std::vector<TensorId> wanted_list_, inverted_;
};

}  // namespace

bool is_made_again(const Needs& needs, const Recovery& recovery, TensorId storage) {
  const std::size_t s = index(storage);
  return needs.uses[s] == 0 && recovery.reruns[index(needs.producer[s])] && !recovery.reads_kept[s];
}

namespace {

// Most plans let nothing go that an op would have to make again.
bool recovers_nothing(const Plan& plan) {
  const auto is_made_again = [](const Decision& decision) {
    return decision.action == Action::Recompute || decision.action == Action::Reconstruct;
  };
  return plan.regions.empty() && std::ranges::none_of(plan.decisions, is_made_again);
}

}  // namespace

Recovery derive_recovery(const Trace& trace, const Plan& plan, const Needs& needs) {
  if (recovers_nothing(plan)) {
    const std::vector<bool> no_op_does(trace.ops.size());
    return {no_op_does, no_op_does, std::vector<bool>(trace.tensors.size()), needs.uses, {}};
  }
  return Marking(trace, plan, needs).run();
}

Derived derive(const Trace& trace, const Plan& plan) {
  Derived derived{.needs = derive_needs(trace), .recovery = {}};
  derived.recovery = derive_recovery(trace, plan, derived.needs);
  return derived;
}

}  // namespace tidemark
