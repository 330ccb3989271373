// As many pieces as wanted, in their order; the joined ones have the shape that was cut.
#include "traces/pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/layout_transform.h"
#include "traces/shape_rules.h"
#include "traces/trace_check.h"

namespace tidemark::pieces_test {
namespace {

using testing::Each;
using testing::Le;

struct Cut {
  Trace trace;
  std::vector<TensorId> pieces;
};

// x [2, count, 3, 4] in pieces along its second axis, joined again.
Cut cut_and_joined(std::int64_t count) {
  TraceBuilder b("test", "", {});
  const TensorId x = b.parameter("x", {2, count, 3, 4});
  const std::vector<TensorId> pieces = cut(b, "cut", x, 1, count);
  const TensorId joined = join(b, "join", pieces, 1);
  EXPECT_EQ(b.shape(joined), b.shape(x));
  return {b.finish(b.mean("loss", joined)), pieces};
}

TEST(Pieces, AreViewsOneBehindTheOther) {
  for (const std::int64_t count : {2, 16, 17, 32, 40, 300}) {
    const auto [trace, pieces] = cut_and_joined(count);
    EXPECT_THAT(check(trace), testing::IsEmpty()) << count;
    ASSERT_EQ(std::ssize(pieces), count);
    const std::vector<Layout> layouts = value_layouts(trace);
    for (std::int64_t i = 0; i < count; ++i) {
      const TensorId piece = pieces[static_cast<std::size_t>(i)];
      EXPECT_EQ(trace[piece].shape, (Shape{2, 1, 3, 4}));
      EXPECT_EQ(trace[piece].storage, trace[pieces[0]].storage);
      EXPECT_EQ(layouts[index(piece)].offset, i * 12);
    }
  }
}

TEST(Pieces, NeedNoOpOfMoreOperandsThanThereMayBe) {
  const Trace trace = cut_and_joined(300).trace;
  std::vector<std::size_t> operands;
  for (const Op& op : trace.ops) operands.push_back(std::max<std::size_t>(op.inputs, op.outputs));
  EXPECT_THAT(operands, Each(Le(max_operands)));
}

TEST(Pieces, OneIsTheTensorItself) {
  TraceBuilder b("test", "", {});
  const TensorId x = b.parameter("x", {2, 1, 3});
  EXPECT_EQ(cut(b, "cut", x, 1, 1), std::vector{x});
  EXPECT_EQ(join(b, "join", std::array{x}, 1), x);
}

}  // namespace
}  // namespace tidemark::pieces_test
