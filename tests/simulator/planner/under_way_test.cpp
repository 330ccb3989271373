// What joined blocks cost at least while one of them has its gradients, against what plans do then.
#include "simulator/planner/under_way.h"

#include <gtest/gtest.h>

#include "tests/simulator/planner/joined_mixtures.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::under_way_test {
namespace {

const Stage& longest_from(std::size_t first, const std::vector<JoinedStages>& joined) {
  const Stage* longest = &joined.front().beginning[first];
  for (const JoinedStages& each : joined)
    if (each.beginning[first].begin != each.beginning[first].end) longest = &each.beginning[first];
  return *longest;
}

/// A lowered plan of joined stages.
class Lowered {
 public:
  Lowered(const Planner& planner, const Mixture& mixture)
      : planner_(planner), chain_(mixture.chain.all), schedule_(lowered(planner, mixture)) {}

  /// Calls visit(op) at each gradient, while is_there() is as of then.
  template <typename Visit>
  void for_each_gradient(const Visit& visit) {
    there_.assign(planner_.trace().tensors.size(), false);
    for (const Step& step : schedule_.steps) {
      if (const auto* allocate = std::get_if<Allocate>(&step)) note(allocate->buffer, true);
      if (const auto* free = std::get_if<Free>(&step)) note(free->buffer, false);
      const Run* run = std::get_if<Run>(&step);
      if (run && run->op != no_op && run->task == Task::Backward) visit(run->op);
    }
  }

  /// Are the op's stage and `first` among those that are joined, and does that one begin them?
  bool begins_what_has(OpId op, const Stage& first) const {
    return std::ranges::any_of(chain_, [&](const Stage& stage) {
      return stage.begin == first.begin && op >= stage.begin && op < stage.end;
    });
  }

  /// ns of what runs again of ops [begin, end), and priced bytes of what is there of all that they
  /// make, beyond those of all that `whole` decides about.
  double cost(const Stage& whole, OpId begin, OpId end, const std::vector<std::int64_t>& forward_ns,
              double price) const {
    std::int64_t time = 0, away = 0;
    for (const Step& step : schedule_.steps)
      if (const Run* run = std::get_if<Run>(&step); run && run->task == Task::Recompute)
        if (run->op >= begin && run->op < end) time += forward_ns[index(run->op)];
    for (const TensorId storage : whole.decided)
      if (planner_.needs().producer[index(storage)] < end && !there_[index(storage)])
        away += rounded(size(planner_.trace()[storage]));
    // For reruns alone.
    for (std::size_t t = 0; t < there_.size(); ++t)
      if (const OpId maker = planner_.needs().producer[t];
          there_[t] && planner_.needs().uses[t] == 0 && maker != no_op && maker >= begin &&
          maker < end)
        away -= rounded(size(planner_.trace().tensors[t]));
    return static_cast<double>(time) - price * static_cast<double>(away);
  }

 private:
  void note(BufferId buffer, bool is_there) {
    const Buffer& its = schedule_[buffer];
    if (its.role == Role::Value && its.tensor != no_tensor)
      there_[index(planner_.trace()[its.tensor].storage)] = is_there;
  }

  const Planner& planner_;
  const std::vector<Stage>& chain_;
  Schedule schedule_;
  std::vector<bool> there_;  ///< by storage
};

// At each gradient of joined stages, plans have paid for at least what is said of those before it.
TEST(UnderWay, CostsNoMoreThanWhatPlansDo) {
  const Device device = find_device("a100-80gb");
  std::size_t equal = 0;
  for (const char* model : {"gpt2", "vit-b-16", "bert-base", "swin-t", "t5-base"}) {
    const StepOptions options{.batch = 8, .precision = Precision::AmpBf16};
    const auto trace = std::make_shared<const Trace>(build_trace(find_model(model), options));
    const Planner planner(trace, device, {});
    const std::vector<Stage>& single = planner.stages().all;
    const std::vector<JoinedStages> joined = all_joined(planner);
    const std::vector<std::int64_t> forward_ns = forward_ns_of(*trace, planner.needs(), device);
    const std::vector<OpId> first_need = first_needs(*trace, planner.needs());
    Survey bare;
    bare.stages.resize(single.size());
    UnderWay under_way(*trace, planner.needs(), forward_ns, bare, planner.stages(), joined);
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      Dice dice(seed);
      const double price = std::pow(2, -8 - static_cast<double>(dice.below(10)));
      under_way.set_price(price);
      const Mixture mixture = mixture_of(planner, joined, forward_ns, price, dice);
      Lowered plan(planner, mixture);
      plan.for_each_gradient([&](OpId op) {
        const auto at = static_cast<std::size_t>(
            std::ranges::find_if(single, [&](const Stage& stage) { return op < stage.end; }) -
            single.begin());
        const OpId taken = takes_up_to(single[at], first_need);
        if (taken != no_op && op <= taken) return;
        under_way.for_each(at, [&](std::size_t first, double cost) {
          if (!plan.begins_what_has(op, single[first])) return;
          const double its = plan.cost(longest_from(first, joined), single[first].begin,
                                       single[at].begin, forward_ns, price);
          ASSERT_LE(cost, its + 1) << model << " seed " << seed << " op " << index(op);
          equal += cost > its - 1 ? 1 : 0;
        });
      });
    }
  }
  EXPECT_GT(equal, 1000u);
}

}  // namespace
}  // namespace tidemark::under_way_test
