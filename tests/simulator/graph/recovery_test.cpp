// Recovery runs again exactly what makes the wanted tensors, and inverts couplings where it can.
#include "simulator/graph/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/simulator/chain.h"
#include "tests/traces/small_trace.h"

namespace tidemark::recovery_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Recovery recover(const Trace& trace, const Plan& plan) {
  return derive_recovery(trace, plan, derive_needs(trace));
}

OpId op(int i) { return static_cast<OpId>(i); }

TEST(Recovery, OfAPlanThatKeepsEverythingIsEmpty) {
  const Trace trace = chain(4);
  const Recovery recovery = recover(trace, keep_everything(trace));
  EXPECT_THAT(recovery.reruns, ElementsAre(false, false, false, false));
  EXPECT_THAT(recovery.uses, ElementsAre(1, 1, 1, 1, 0));  // each layer's backward reads its input
}

// x1 and x2 are let go: f1 and f2 run again, x0 and x1 are read once more. f3's output is nobody's.
TEST(Recovery, RunsAgainWhatMakesTheWanted) {
  const Trace trace = chain(4);
  Plan plan = keep_everything(trace);
  plan.regions = {{op(0), op(0), op(3), 0}};
  decide(plan, TensorId{1}, Action::Recompute, "to test");
  decide(plan, TensorId{2}, Action::Recompute, "to test");
  const Recovery recovery = recover(trace, plan);
  EXPECT_THAT(recovery.reruns, ElementsAre(true, true, false, false));
  EXPECT_THAT(recovery.uses, ElementsAre(2, 2, 1, 1, 0));
  EXPECT_THAT(recovery.defects, IsEmpty());
}

// No gradient needs what the first add makes. It is made again with the second's, or stays for it.
TEST(Recovery, ReadsWhatIsKeptForIt) {
  TraceBuilder b("adds", "toy", {.precision = Precision::Fp32});
  const TensorId x = b.input("x", {2, 4}, DType::Float32);
  const TensorId first = b.add("add1", b.linear("fc1", x, 4), b.linear("fc2", x, 4));
  const TensorId second = b.add("add2", first, b.linear("fc3", x, 4));
  const TensorId out = b.linear("fc4", second, 4);
  const Trace trace = b.finish(b.cross_entropy("loss", out, b.input("targets", {2}, DType::Int64)));
  Plan plan = keep_everything(trace);
  plan.regions = {{op(2), op(2), op(6), 0}};  // add1 to fc4; fc3 lies between the adds
  decide(plan, second, Action::Recompute, "to test");
  EXPECT_THAT(recover(trace, plan).reruns,
              ElementsAre(false, false, true, true, true, false, false, false));
  keep_for_recovery(plan, first);
  const Recovery recovery = recover(trace, plan);
  EXPECT_THAT(recovery.reruns, ElementsAre(false, false, false, true, true, false, false, false));
  EXPECT_TRUE(recovery.reads_kept[index(first)]);
  EXPECT_THAT(recovery.defects, IsEmpty());
}

/// Ops 0 to 4: fc1 → drop → fc2 → tanh; add = tanh + drop.
Trace diamond() {
  TraceBuilder b("diamond", "toy", {.precision = Precision::Fp32});
  const TensorId drop =
      b.dropout("drop", b.linear("fc1", b.input("x", {2, 4}, DType::Float32), 4), 0.1);
  const TensorId sum = b.add("add", b.tanh("tanh", b.linear("fc2", drop, 4)), drop);
  return b.finish(b.cross_entropy("loss", sum, b.input("targets", {2}, DType::Int64)));
}

// The mask and the dropped tensor come from one op: it runs once for both.
TEST(Recovery, RunsEachProducerOnce) {
  const Trace trace = diamond();
  Plan plan = keep_everything(trace);
  plan.regions = {{op(1), op(1), op(5), 0}};
  for (const char* name : {"drop", "drop.mask", "tanh"})
    decide(plan, tensor_named(trace, name), Action::Recompute, "to test");
  const Recovery recovery = recover(trace, plan);
  EXPECT_EQ(std::ranges::count(recovery.reruns, true), 3);  // drop, fc2 and tanh
  EXPECT_FALSE(recovery.reruns[index(op_named(trace, "fc1"))]);
  // Read by the backward of fc2, by fc2 again; the add does not run again.
  EXPECT_EQ(recovery.uses[index(tensor_named(trace, "drop"))], 2u);
  // fc1's output is needed by no gradient, but kept for the region's recovery.
  EXPECT_EQ(recovery.uses[index(tensor_named(trace, "fc1"))], 1u);
  EXPECT_TRUE(recovery.reads_kept[index(tensor_named(trace, "fc1"))]);
}

/// Ops 0 to 5: fc1 → fc2 → early, a tanh; mask, in place of fc2's output → late, a tanh; both.
struct ChangedInPlace : testing::Test {
  Trace trace = [] {
    TraceBuilder b("changed", "toy", {.precision = Precision::Fp32});
    const TensorId x = b.input("x", {2, 4}, DType::Float32);
    b.begin_block("block", x, -1);
    const TensorId made = b.linear("fc2", b.linear("fc1", x, 4), 4);
    const TensorId early = b.tanh("early", made);
    const TensorId masked = b.add_in_place("mask", made, b.input("zeros", {2, 4}, DType::Float32));
    const TensorId sum = b.add("both", early, b.tanh("late", masked));
    b.end_block();
    return b.finish(b.cross_entropy("loss", sum, b.input("targets", {2}, DType::Int64)));
  }();
  const TensorId scores = tensor_named(trace, "fc2");
  Plan plan = keep_everything(trace);

  Recovery recover_part(int begin, int end, const std::vector<const char*>& names) {
    plan.regions = {{op(begin), op(begin), op(end), 0}};
    for (const char* name : names)
      decide(plan, tensor_named(trace, name), Action::Recompute, "to test");
    return recover(trace, plan);
  }
  static std::vector<bool> first_five(const Recovery& recovery) {
    return {recovery.reruns.begin(), recovery.reruns.begin() + 5};
  }
};

TEST_F(ChangedInPlace, IsMadeAgainFromItsFirstVersionOn) {
  const Recovery recovery = recover_part(1, 6, {"early", "late"});
  EXPECT_THAT(first_five(recovery), ElementsAre(false, true, true, true, true));
  EXPECT_THAT(recovery.defects, IsEmpty());
  EXPECT_EQ(recovery.uses[index(scores)], 3u);  // early, mask, late
  EXPECT_TRUE(is_made_again(derive_needs(trace), recovery, scores));
}

// The earlier version alone is wanted: nobody changes it again.
TEST_F(ChangedInPlace, IsChangedNoFurtherThanWanted) {
  EXPECT_THAT(first_five(recover_part(1, 6, {"early"})),
              ElementsAre(false, true, true, false, false));
}

TEST_F(ChangedInPlace, StaysWhereItIsKeptForRecovery) {
  keep_for_recovery(plan, scores);
  const Recovery recovery = recover_part(1, 6, {"late"});
  EXPECT_THAT(first_five(recovery), ElementsAre(false, false, false, false, true));
  EXPECT_TRUE(recovery.reads_kept[index(scores)]);
}

TEST_F(ChangedInPlace, StaysWhereAnotherPartMadeIt) {
  const Recovery recovery = recover_part(3, 6, {"late"});
  EXPECT_THAT(first_five(recovery), ElementsAre(false, false, false, false, true));
  EXPECT_TRUE(recovery.reads_kept[index(scores)]);
}

// What is kept for a gradient is the last version.
TEST_F(ChangedInPlace, StaysWhereAGradientNeedsIt) {
  trace.ops[index(op_named(trace, "late"))].kind = OpKind::Silu;
  const Recovery recovery = recover_part(1, 6, {"both"});
  EXPECT_THAT(first_five(recovery), ElementsAre(false, false, false, false, true));
}

TEST_F(ChangedInPlace, HasNoEarlierVersionWhereItStays) {
  keep_for_recovery(plan, scores);
  EXPECT_THAT(recover_part(1, 6, {"early"}).defects,
              ElementsAre(HasSubstr("'early' is recompute but nothing provides it")));
}

/// y = x + branch(z), with the add in a region of its own.
struct CouplingTest : testing::Test {
  Trace trace;
  Plan plan;

  void make(const std::function<TensorId(TraceBuilder&, TensorId x)>& branch) {
    TraceBuilder b("coupling", "toy", {.precision = Precision::Fp32});
    const TensorId x = b.linear("fc", b.input("in", {2, 4}, DType::Float32), 4);
    const TensorId sum = b.residual("sum", x, branch(b, x));
    const TensorId y = b.add("both", b.gelu("gelu1", x), b.gelu("gelu2", sum));
    trace = b.finish(b.cross_entropy("loss", y, b.input("targets", {2}, DType::Int64)));
    plan = keep_everything(trace);
    plan.regions = {{op(1), op(1), op_named(trace, "loss"), 0}};
    decide(plan, tensor_named(trace, "fc"), Action::Reconstruct, "to test");
  }
};

TEST_F(CouplingTest, IsUndoneFromItsSum) {
  make([](TraceBuilder& b, TensorId) { return b.tanh("branch", b.parameter("p", {2, 4})); });
  const Recovery recovery = recover(trace, plan);
  EXPECT_THAT(recovery.defects, IsEmpty());
  EXPECT_TRUE(recovery.inverts[index(op_named(trace, "sum"))]);
  EXPECT_EQ(std::ranges::count(recovery.reruns, true), 0);
  EXPECT_EQ(recovery.uses[index(tensor_named(trace, "sum"))], 2u);     // gelu2, and the inverse
  EXPECT_EQ(recovery.uses[index(tensor_named(trace, "branch"))], 2u);  // tanh, and the inverse
}

TEST_F(CouplingTest, MakesItsBranchAgain) {
  make([](TraceBuilder& b, TensorId) {
    return b.silu("branch", b.tanh("before", b.parameter("p", {2, 4})));
  });
  const Recovery recovery = recover(trace, plan);
  EXPECT_THAT(recovery.defects, IsEmpty());
  EXPECT_TRUE(recovery.reruns[index(op_named(trace, "branch"))]);
  EXPECT_FALSE(recovery.reruns[index(op_named(trace, "before"))]);  // kept, silu needs it
}

// x = y − f(x): what is wanted is needed to get it.
TEST_F(CouplingTest, WhoseBranchReadsItsShortcutIsRefused) {
  make([](TraceBuilder& b, TensorId x) { return b.dropout("branch", x, 0.1); });
  EXPECT_THAT(recover(trace, plan).defects,
              Contains("'fc' is reconstruct, but what would recover it needs it first: keep it"));
}

TEST_F(CouplingTest, WithItselfIsRefused) {
  make([](TraceBuilder&, TensorId x) { return x; });
  EXPECT_THAT(recover(trace, plan).defects,
              Contains("'fc' is reconstruct, but what would recover it needs it first: keep it"));
}

// The inverse makes a view's elements, not the storage's.
TEST_F(CouplingTest, OfAPartOfAStorageIsRefused) {
  TraceBuilder b("part", "toy", {.precision = Precision::Fp32});
  const TensorId wide = b.linear("fc", b.input("in", {2, 4}, DType::Float32), 8);
  const TensorId left = b.select("left", wide, {2, 4});
  const TensorId sum = b.residual("sum", left, b.tanh("branch", b.parameter("p", {2, 4})));
  const TensorId y = b.add("both", b.gelu("gelu1", left), b.gelu("gelu2", sum));
  trace = b.finish(b.cross_entropy("loss", y, b.input("targets", {2}, DType::Int64)));
  plan = keep_everything(trace);
  plan.regions = {{op(1), op(1), op_named(trace, "loss"), 0}};
  decide(plan, wide, Action::Reconstruct, "to test");
  EXPECT_THAT(recover(trace, plan).defects,
              ElementsAre(HasSubstr("'fc' is reconstruct but nothing provides it")));
}

}  // namespace
}  // namespace tidemark::recovery_test
