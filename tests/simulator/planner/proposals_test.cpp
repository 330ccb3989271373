// The hull of local plans against every choice of ops that run again.
#include "simulator/planner/proposals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/cost/device.h"
#include "simulator/planner/survey.h"
#include "tests/simulator/random_step.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::proposals_test {
namespace {

/// What a local plan keeps and costs, told from the ops that run again alone.
struct Told {
  std::int64_t kept = 0, time = 0;

  Told& operator+=(const Told& other) {
    kept += other.kept, time += other.time;
    return *this;
  }
};

class Enumeration {
 public:
  explicit Enumeration(const ProposalInput& in) : in_(in), begin_(index(in.stage.begin)) {
    for (std::size_t i = begin_; i < index(in.stage.end); ++i)
      if (!in.needs.runs_once[i] && !is_view(in.trace.ops[i].kind)) may_.push_back(i);
  }

  std::size_t size() const { return may_.size(); }

  bool may_run(TensorId storage) const {
    return std::ranges::find(may_, index(in_.needs.producer[index(storage)])) != may_.end();
  }
  bool runs(std::uint32_t chosen, TensorId storage) const {
    for (std::size_t k = 0; k < may_.size(); ++k)
      if (may_[k] == index(in_.needs.producer[index(storage)])) return chosen >> k & 1;
    return false;
  }

  /// Who works in place on what an op has made, which is all that this makes, runs again with it.
  bool is_possible(std::uint32_t chosen) const {
    for (std::size_t k = 0; k < may_.size(); ++k) {
      const Op& op = in_.trace.ops[may_[k]];
      for (const TensorId output : in_.trace.outputs(op)) {
        const TensorId changed = in_.trace[output].storage;
        if (changed == output || in_.needs.producer[index(changed)] < in_.stage.begin) continue;
        const Op& maker = in_.trace[in_.needs.producer[index(changed)]];
        if (maker.outputs == 1 && runs(chosen, changed) && !(chosen >> k & 1)) return false;
      }
    }
    return true;
  }

  /// In the forms that are cheapest where a byte costs so many ns.
  Told tell(std::uint32_t chosen, double price) const {
    std::vector<bool> again(in_.trace.ops.size());
    Told told;
    for (std::size_t k = 0; k < may_.size(); ++k)
      if (chosen >> k & 1) again[may_[k]] = true, told.time += in_.forward_ns[may_[k]];
    for (std::size_t d = 0; d < in_.stage.decided.size(); ++d)
      if (!again[index(in_.needs.producer[index(in_.stage.decided[d])])])
        told += cheapest(in_.stage.decided[d], in_.stage.held[d], price);
    // Of inputs, what is less than when they are as they are.
    for (std::size_t k = 0; k < in_.stage.inputs.size(); ++k) {
      told += cheapest(in_.stage.inputs[k], !in_.stage.needed_here[k], price);
      told.kept -= rounded(tidemark::size(in_.trace[in_.stage.inputs[k]]));
    }
    // What reruns read and no gradient needs: kept for them, unless it is made again.
    std::vector<bool> counted(in_.trace.tensors.size());
    for (std::size_t i = begin_; i < index(in_.stage.end); ++i) {
      if (!again[i]) continue;
      for (const TensorId input : in_.trace.inputs(in_.trace.ops[i])) {
        const TensorId s = in_.trace[input].storage;
        const OpId producer = in_.needs.producer[index(s)], last = in_.needs.last_read[index(s)];
        if (producer == no_op || in_.needs.uses[index(s)] > 0 || counted[index(s)]) continue;
        if (again[index(producer)]) continue;
        counted[index(s)] = true;
        if (producer < in_.stage.begin)
          told.kept += shared(s);
        else if (last < in_.stage.end)
          told.kept += rounded(tidemark::size(in_.trace[s]));
      }
    }
    return told;
  }

 private:
  std::int64_t shared(TensorId storage) const {
    for (const SharedRead& read : in_.stage.shared_reads)
      if (read.storage == storage) return read.bytes;
    return 0;
  }

  // What is held stays as it is: letting it go for codes would free nothing.
  Told cheapest(TensorId storage, bool stays_as_it_is, double price) const {
    Told least{rounded(tidemark::size(in_.trace[storage])), 0};
    const auto cost = [&](const Told& form) {
      return static_cast<double>(form.time) + price * static_cast<double>(form.kept);
    };
    if (in_.coded && !stays_as_it_is)
      for (const Coded& coded : (*in_.coded)[index(storage)])
        if (const Told form{coded.bytes, coded.time}; cost(form) < cost(least)) least = form;
    return least;
  }

  const ProposalInput& in_;
  std::size_t begin_;
  std::vector<std::size_t> may_;
};

// At any price no choice is cheaper than the best corner.
void expect_lowest(const ProposalInput& input, const std::vector<Proposal>& hull) {
  const Enumeration all(input);
  for (const double price : {0.0, 0.001, 0.01, 0.05, 0.2, 1.0, 7.0}) {
    const auto cost = [&](std::int64_t kept, std::int64_t time) {
      return static_cast<double>(time) + price * static_cast<double>(kept);
    };
    double least = std::numeric_limits<double>::infinity(), corner = least;
    for (std::uint32_t chosen = 0; chosen < 1u << all.size(); ++chosen) {
      if (!all.is_possible(chosen)) continue;
      const Told told = all.tell(chosen, price);
      least = std::min(least, cost(told.kept, told.time));
    }
    for (const Proposal& proposal : hull)
      corner = std::min(corner, cost(proposal.kept, proposal.time));
    ASSERT_NEAR(corner, least, 1e-6 * std::abs(least) + 0.1) << "price " << price;
  }
}

TEST(Proposals, HullIsTheLowestOfAllLocalPlans) {
  std::size_t enumerated = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed);
    const Trace trace = random_trace(dice, Concats::Some, Opaques::Some);
    const Needs needs = derive_needs(trace);
    const Stages stages = stages_of(trace, needs);
    std::vector<std::int64_t> forward_ns;
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      forward_ns.push_back(10 + static_cast<std::int64_t>(dice.below(90)));
    for (const Stage& stage : stages.all) {
      const ProposalInput input{trace, needs, stage, forward_ns};
      if (stage.decided.empty() || Enumeration(input).size() > 12) continue;
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      expect_lowest(input, hull_of(input));
      if (testing::Test::HasFatalFailure()) return;
      ++enumerated;
    }
  }
  EXPECT_GT(enumerated, 200u);
}

// Codes that cost time, and codes that gradients read so much faster that they save some.
TEST(Proposals, HullCountsEveryForm) {
  std::size_t enumerated = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Dice dice(seed);
    const Trace trace = random_trace(dice, Concats::Some, Opaques::Some);
    const Needs needs = derive_needs(trace);
    const std::vector<std::int64_t> forward_ns(trace.ops.size(), 60);
    std::vector<std::vector<Coded>> coded(trace.tensors.size());
    for (std::size_t t = 0; t < coded.size(); ++t)
      for (std::size_t forms = dice.below(3); forms > 0; --forms)
        coded[t].push_back({{},
                            rounded(size(trace.tensors[t])) / 512 / 2 * 512,
                            static_cast<std::int64_t>(dice.below(80)) - 20});
    for (const Stage& stage : stages_of(trace, needs).all) {
      const ProposalInput input{trace, needs, stage, forward_ns, Held::Free, &coded};
      if (stage.decided.empty() || Enumeration(input).size() > 12) continue;
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      expect_lowest(input, hull_of(input));
      if (testing::Test::HasFatalFailure()) return;
      ++enumerated;
    }
  }
  EXPECT_GT(enumerated, 100u);
}

// Hundreds of megabytes at a high price are more than a capacity holds: all must stay comparable.
TEST(Proposals, LargeStagesHaveAllCorners) {
  const Trace trace = build_trace(find_model("t5-base"), {.batch = 64});
  const Needs needs = derive_needs(trace);
  const std::vector<std::int64_t> forward_ns(trace.ops.size(), 1'000'000);
  for (const Stage& stage : stages_of(trace, needs).all) {
    if (stage.block < 0) continue;
    const std::vector<Proposal> hull = hull_of({trace, needs, stage, forward_ns});
    ASSERT_GT(hull.size(), 4u);
    ASSERT_LT(hull.back().kept, hull.front().kept / 2);
  }
}

TEST(Proposals, CornersFallFromKeepingAllToKeepingLeast) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Dice dice(seed);
    const Trace trace = random_trace(dice, Concats::Some);
    const Needs needs = derive_needs(trace);
    const Stages stages = stages_of(trace, needs);
    const std::vector<std::int64_t> forward_ns(trace.ops.size(), 100);
    for (const Stage& stage : stages.all) {
      const std::vector<Proposal> hull = hull_of({trace, needs, stage, forward_ns});
      ASSERT_EQ(hull.front().time, 0);
      ASSERT_EQ(hull.front().plan, keep_all(stage));
      for (std::size_t i = 0; i + 1 < hull.size(); ++i) {
        ASSERT_GT(hull[i].kept, hull[i + 1].kept) << "seed " << seed;
        ASSERT_LT(hull[i].time, hull[i + 1].time) << "seed " << seed;
      }
    }
  }
}

// Of all plans that decide otherwise than the corner about storage d none is cheaper than every
// neighbour. Returns whether there are any.
bool expect_neighbour(const ProposalInput& input, const Proposal& corner, std::size_t d,
                      double price) {
  const Enumeration all(input);
  const TensorId storage = input.stage.decided[d];
  const bool is_kept = corner.plan.forms[d].action != Action::Recompute;
  if (is_kept && !all.may_run(storage)) return false;
  const auto cost = [&](const auto& plan) {
    return static_cast<double>(plan.time) + price * static_cast<double>(plan.kept);
  };
  double least = std::numeric_limits<double>::infinity(), otherwise = least;
  for (const Proposal& neighbour : neighbours_of(input, hull_of(input)))
    least = std::min(least, cost(neighbour));
  for (std::uint32_t chosen = 0; chosen < 1u << all.size(); ++chosen)
    if (all.is_possible(chosen) && all.runs(chosen, storage) == is_kept)
      otherwise = std::min(otherwise, cost(all.tell(chosen, price)));
  EXPECT_LE(least, otherwise + 0.1) << "storage " << d << ", price " << price;
  return true;
}

// Times of ops are equal, so that some storages are alike.
TEST(Proposals, NeighboursDecideOtherwiseAboutEachStorage) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Dice dice(seed);
    const Trace trace = random_trace(dice, Concats::Some, Opaques::Some);
    const Needs needs = derive_needs(trace);
    const std::vector<std::int64_t> forward_ns(trace.ops.size(), 100);
    for (const Stage& stage : stages_of(trace, needs).all) {
      const ProposalInput input{trace, needs, stage, forward_ns};
      if (stage.decided.empty() || Enumeration(input).size() > 10) continue;
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      const std::vector<Proposal> hull = hull_of(input);
      const std::vector<double> prices = prices_of(hull);
      for (std::size_t c = 0; c < prices.size(); ++c)
        for (std::size_t d = 0; d < stage.decided.size(); ++d)
          compared += expect_neighbour(input, hull[c], d, prices[c]) ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 300u);
}

}  // namespace
}  // namespace tidemark::proposals_test
