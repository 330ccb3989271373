// Every subset of the block's named calls has a price in bytes and one in time: both are sums, for
// whatever stays, all other ops run again. Subsets that another one beats in both are left out.
#include "simulator/planner/policy_form.h"

#include <algorithm>
#include <bit>

#include "simulator/graph/recovery.h"
#include "simulator/planner/survey.h"
#include "traces/aten_calls.h"

namespace tidemark {
namespace {

// Of more calls, those that cost most per byte.
constexpr std::size_t most_calls = 12;
constexpr std::size_t longest_list = 56;

class Choosing {
 public:
  explicit Choosing(const ProposalInput& in)
      : in_(in),
        begin_(index(in.stage.begin)),
        count_(index(in.stage.end) - begin_),
        end_(index(end_of_reruns(in.trace, in.needs, in.stage.begin, in.stage.end)) - begin_) {}

  std::vector<LocalPlan> run() {
    if (in_.stage.block < 0 || !is_known()) return {};
    find_calls();
    std::vector<LocalPlan> plans;
    for (const std::uint32_t subset : undominated_subsets())
      if (LocalPlan local = plan_of(subset); is_all_read(local)) plans.push_back(std::move(local));
    return plans;
  }

 private:
  struct Call {
    std::size_t op;  ///< from the stage's first
    std::int64_t bytes, time;
  };

  const Op& op_at(std::size_t i) const { return in_.trace.ops[begin_ + i]; }

  bool is_known() const {
    for (std::size_t i = 0; i < count_; ++i)
      if (!has_known_calls(in_.trace, op_at(i)) || in_.needs.runs_once[begin_ + i]) return false;
    return true;
  }

  bool is_written_over(const Op& op) const {
    return std::ranges::any_of(in_.trace.outputs(op), [&](TensorId output) {
      return in_.needs.overwritten_by[index(in_.trace[output].storage)] != no_op;
    });
  }

  void find_calls() {
    for (std::size_t i = 0; i < end_; ++i) {
      if (!may_be_saved(in_.trace, op_at(i)) || is_written_over(op_at(i))) continue;
      Call call{i, 0, in_.forward_ns[begin_ + i]};
      for (const TensorId output : in_.trace.outputs(op_at(i)))
        if (in_.trace[output].storage == output) call.bytes += rounded(size(in_.trace[output]));
      calls_.push_back(call);
    }
    std::ranges::stable_sort(
        calls_, [](const Call& a, const Call& b) { return a.time * b.bytes > b.time * a.bytes; });
    if (calls_.size() > most_calls) calls_.resize(most_calls);
  }

  std::vector<std::uint32_t> undominated_subsets() const {
    struct Priced {
      std::int64_t bytes = 0, time = 0;
      std::uint32_t subset = 0;
    };
    std::vector<Priced> all(std::size_t{1} << calls_.size());
    for (std::uint32_t subset = 1; subset < all.size(); ++subset) {
      const auto lowest = static_cast<std::size_t>(std::countr_zero(subset));
      const Priced& rest = all[subset & (subset - 1)];
      all[subset] = {rest.bytes + calls_[lowest].bytes, rest.time + calls_[lowest].time, subset};
    }
    std::ranges::stable_sort(all, [](const Priced& a, const Priced& b) {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.time > b.time;
    });
    std::vector<std::uint32_t> left;
    std::int64_t saved = -1;
    for (const Priced& each : all)
      if (each.time > saved) left.push_back(each.subset), saved = each.time;
    return thinned(std::move(left));
  }

  // Prefixes in the order of their worth are the corners of the hull: those stay.
  static std::vector<std::uint32_t> thinned(std::vector<std::uint32_t> subsets) {
    const auto is_corner = [](std::uint32_t subset) { return (subset & (subset + 1)) == 0; };
    std::vector<std::uint32_t> left;
    for (std::size_t i = 0; i < subsets.size(); ++i)
      if (is_corner(subsets[i]) || subsets.size() <= longest_list ||
          i * longest_list / subsets.size() != (i + 1) * longest_list / subsets.size())
        left.push_back(subsets[i]);
    return left;
  }

  std::vector<bool> saved_ops(std::uint32_t subset) const {
    std::vector<bool> saved(count_);
    for (std::size_t c = 0; c < calls_.size(); ++c)
      if (subset >> c & 1) saved[calls_[c].op] = true;
    return saved;
  }

  LocalPlan plan_of(std::uint32_t subset) const {
    const std::vector<bool> saved = saved_ops(subset);
    LocalPlan local = keep_all(in_.stage);
    for (std::size_t d = 0; d < in_.stage.decided.size(); ++d)
      if (!saved[index(in_.needs.producer[index(in_.stage.decided[d])]) - begin_])
        local.forms[d].action = Action::Recompute;
    for (std::size_t i = 0; i < count_; ++i) {
      const auto outputs = in_.trace.outputs(op_at(i));
      const bool runs = i < end_ && !is_view(op_at(i).kind);
      for (std::size_t k = 0; k < outputs.size(); ++k)
        if (is_unneeded(outputs[k]) && (saved[i] || (runs && is_read_here(outputs[k]))))
          (saved[i] ? local.kept_for_recovery : local.made_again).push_back({i, k});
    }
    local.regions = {{0, count_, true}};
    return local;
  }

  // Another block reads it else, and it stays for that one's reruns.
  bool is_read_here(TensorId output) const {
    return last_forward_use(in_.needs, output) < in_.stage.end;
  }

  bool is_unneeded(TensorId output) const {
    return in_.trace[output].storage == output && in_.needs.uses[index(output)] == 0;
  }

  // PyTorch holds what stays, be it read or not; a plan only what is read.
  bool is_all_read(const LocalPlan& local) const {
    const Stages one{{in_.stage}, {{0}}};
    const Recovery recovery =
        derive_recovery(in_.trace, assembled(in_.trace, one, {&local}), in_.needs);
    return recovery.defects.empty() &&
           std::ranges::all_of(local.kept_for_recovery, [&](const LocalValue& value) {
             const TensorId output = in_.trace.outputs(op_at(value.op))[value.output];
             return recovery.uses[index(output)] > 0;
           });
  }

  const ProposalInput& in_;
  std::size_t begin_, count_;
  std::size_t end_;  ///< ops before it run again, unless their outputs stay
  std::vector<Call> calls_;
};

}  // namespace

std::vector<LocalPlan> policy_plans(const ProposalInput& input) { return Choosing(input).run(); }

std::vector<OpId> saved_ops(const Trace& trace, const Stage& stage, const LocalPlan& local) {
  std::vector<OpId> ops;
  if (local.regions.size() != 1 || !local.regions.front().runs_all) return ops;
  const auto is_dropped = [&](TensorId output) {
    const auto decided = std::ranges::find(stage.decided, output);
    return decided != stage.decided.end() &&
           local.forms[static_cast<std::size_t>(decided - stage.decided.begin())].action !=
               Action::Keep;
  };
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i) {
    const Op& op = trace.ops[i];
    if (!may_be_saved(trace, op)) continue;
    bool stays = false;
    for (std::size_t k = 0; k < op.outputs; ++k) {
      const TensorId output = trace.outputs(op)[k];
      stays |=
          std::ranges::find(stage.decided, output) != stage.decided.end() && !is_dropped(output);
      stays |= std::ranges::find(local.kept_for_recovery, LocalValue{i - index(stage.begin), k}) !=
               local.kept_for_recovery.end();
    }
    if (stays) ops.push_back(static_cast<OpId>(i));
  }
  return ops;
}

}  // namespace tidemark
