// The rules of the cut, one by one, on graphs whose answer can be derived by hand.
#include "simulator/compiled/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::partition_test {
namespace {

using testing::ElementsAre;

constexpr std::int64_t rows = 64, width = 32;

/// Calls by hand, each of a [64, 32] in fp32 unless said otherwise.
struct Graph {
  FxGraph graph;

  FxId add(FxKind kind, std::vector<FxId> reads, DType dtype = DType::Float32,
           Shape shape = {rows, width}) {
    graph.calls.push_back(
        {.kind = kind, .shape = shape, .dtype = dtype, .reads = std::move(reads)});
    return static_cast<FxId>(graph.calls.size() - 1);
  }
  FxId input() { return add(FxKind::Input, {}); }
  FxId pointwise(FxId x, DType dtype = DType::Float32) {
    return add(FxKind::Pointwise, {x}, dtype);
  }
  FxId kernel(FxId x) { return add(FxKind::Kernel, {x}); }
  FxId of(std::uint32_t op, FxId call) {
    graph.calls[index(call)].op = OpId{op};
    return call;
  }
  void read(FxId x) { graph.backward.push_back({x, {}, false}); }
  void read_by_kernel(FxId x) { graph.backward.push_back({x, {}, true}); }
};

// gelu: fc1's output is kept, what is made of it is made again.
TEST(Partition, MakesPointwiseCallsAgain) {
  Graph g;
  const FxId product = g.kernel(g.input());
  const FxId a = g.pointwise(product), b = g.pointwise(a);
  g.read(a), g.read(b);
  g.kernel(b);
  EXPECT_THAT(saved_values(g.graph), ElementsAre(product));
}

// A product's backward wants its operand in memory: made again it would be written anyway. A view
// of it is as good as itself, and nearer.
TEST(Partition, KeepsWhatAProductReads) {
  Graph g;
  const FxId product = g.kernel(g.input());
  const FxId activation = g.pointwise(product);
  const FxId turned = g.add(FxKind::View, {activation});
  g.read(product), g.read_by_kernel(turned);
  g.kernel(turned);
  EXPECT_THAT(saved_values(g.graph), ElementsAre(product, turned));
}

// Gemma 2's logits: what the model returns is written anyway, and so is not made again of the
// product, which the backward reads, too.
TEST(Partition, KeepsWhatIsReturned) {
  Graph g;
  const FxId product = g.kernel(g.input());
  const FxId capped = g.pointwise(product);
  g.read(product), g.read(capped);
  EXPECT_THAT(saved_values(g.graph), ElementsAre(product));
  g.graph.returned = {capped};
  EXPECT_THAT(saved_values(g.graph), ElementsAre(product, capped));
}

// fp32 of a bf16 value that lies in memory: half as many bytes are kept.
TEST(Partition, KeepsTheSmallerOfACastAndWhatItIsOf) {
  Graph g;
  const FxId product = g.add(FxKind::Kernel, {g.input()}, DType::BFloat16);
  const FxId wide = g.pointwise(product);
  g.read(wide);
  EXPECT_THAT(saved_values(g.graph), ElementsAre(product));
}

// The mask of a dropout has a byte per element, the random numbers four; they are not drawn again.
TEST(Partition, KeepsTheMaskNotTheNumbers) {
  Graph g;
  const FxId random = g.add(FxKind::Kernel, {});
  const FxId mask = g.pointwise(random, DType::Bool);
  g.read(mask);
  EXPECT_THAT(saved_values(g.graph), ElementsAre(mask));
}

// 1/32 of what it is made of.
TEST(Partition, KeepsWhatIsFourTimesSmallerThanWhatItReads) {
  Graph g;
  const FxId x = g.kernel(g.input());
  const FxId sum = g.add(FxKind::Pointwise, {x}, DType::Float32, {rows, 1});
  g.read(x), g.read(sum);
  EXPECT_THAT(saved_values(g.graph), ElementsAre(x, sum));
}

// x + f(x) behind a product is not made again from x: the sum is kept, x is not.
TEST(Partition, DoesNotFuseAcrossAKernel) {
  Graph g;
  const FxId x = g.kernel(g.input());
  const FxId before = g.pointwise(x);
  const FxId branch = g.kernel(before);
  const FxId sum = g.add(FxKind::Pointwise, {x, branch});
  g.read(sum);
  EXPECT_THAT(saved_values(g.graph), ElementsAre(sum));
}

// Of two values of one price the one nearer to the backward.
TEST(Partition, PrefersWhatIsNearToTheBackward) {
  Graph g;
  const FxId x = g.pointwise(g.kernel(g.input()));
  const FxId later = g.pointwise(x);
  g.read_by_kernel(later);
  EXPECT_THAT(saved_values(g.graph), ElementsAre(later));
}

TEST(Partition, OfNothingThatIsReadKeepsNothing) {
  Graph g;
  g.pointwise(g.kernel(g.input()));
  EXPECT_TRUE(saved_values(g.graph).empty());
}

// Prices of terabytes, each a hundred steps from the backward, still add up to a finite flow.
TEST(Partition, OfHugeValuesDoesNotOverflow) {
  Graph g;
  FxId x = g.input();
  for (int i = 0; i < 3000; ++i) {
    x = g.add(FxKind::Pointwise, {x}, DType::Float32, {std::int64_t{1} << 40});
    if (i % 2 == 0) x = g.add(FxKind::Kernel, {x}, DType::Float32, {std::int64_t{1} << 40});
  }
  g.read(x);
  EXPECT_EQ(saved_values(g.graph).size(), 1u);
}

// Of two products the policy keeps the first: the second runs again, of what the first has made.
TEST(Partition, KeepsByOpWhatThePolicySays) {
  Graph g;
  const FxId x = g.input(), first = g.of(0, g.kernel(x));
  const FxId bent = g.of(1, g.pointwise(first)), second = g.of(2, g.kernel(bent));
  g.read_by_kernel(bent), g.read(g.of(3, g.pointwise(second)));
  EXPECT_THAT(saved_values(g.graph, {true, false, false, false}), ElementsAre(first));
  EXPECT_THAT(saved_values(g.graph, {false, false, false, false}), ElementsAre(x));
  EXPECT_THAT(saved_values(g.graph, {false, false, true, false}), ElementsAre(x, second));
}

// What is kept for a call that has to run again, but that the backward reads nothing of, is not.
TEST(Partition, KeepsByOpNothingThatTheBackwardDoesNotRead) {
  Graph g;
  const FxId x = g.input(), product = g.of(0, g.kernel(x));
  g.of(1, g.pointwise(product));
  g.read_by_kernel(x);
  EXPECT_THAT(saved_values(g.graph, {true, false}), ElementsAre(x));
}

// A policy knows no cat, but a pad.
TEST(Partition, KeepsCatsWhateverThePolicySays) {
  Graph g;
  const FxId x = g.input();
  const FxId cat = g.of(0, g.add(FxKind::Concat, {x}));
  g.read_by_kernel(g.of(1, g.pointwise(cat)));
  EXPECT_THAT(saved_values(g.graph, {false, false}), ElementsAre(cat));
  g.graph.calls[index(cat)].is_pad = true;
  EXPECT_THAT(saved_values(g.graph, {false, false}), ElementsAre(x));
}

}  // namespace
}  // namespace tidemark::partition_test
