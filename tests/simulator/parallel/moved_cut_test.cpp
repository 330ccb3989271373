// Where a part of a dimension is found again behind views, slices and copies.
#include "simulator/parallel/moved_cut.h"

#include <gtest/gtest.h>

#include "simulator/parallel/tensor_cuts.h"

namespace tidemark::moved_cut_test {
namespace {

using enum LayoutTransform;

constexpr std::int8_t nowhere = TensorCuts::whole;

struct Move {
  LayoutTransform transform;
  Shape from;
  std::int8_t cut;
  Shape to;
  std::int8_t expected;
};

// Two sequences of three tokens, four heads of five columns.
TEST(MovedCut, FollowsHeadsRowsAndColumns) {
  for (const Move& move : std::vector<Move>{{SplitHeads, {2, 3, 20}, 2, {2, 4, 3, 5}, 1},
                                            {SplitHeads, {2, 3, 20}, 1, {2, 4, 3, 5}, nowhere},
                                            {MergeHeads, {2, 4, 3, 5}, 1, {2, 3, 20}, 2},
                                            {MergeHeads, {2, 4, 3, 5}, 2, {2, 3, 20}, nowhere},
                                            {Slice, {2, 3, 60}, 2, {2, 3, 20}, 2},
                                            {ChannelsFirst, {2, 4, 3, 5}, 1, {2, 4, 5, 3}, 1},
                                            {ChannelsFirst, {2, 4, 3, 5}, 2, {2, 4, 5, 3}, nowhere},
                                            {Reshape, {2, 3, 20}, 1, {6, 20}, 0},
                                            {Reshape, {2, 3, 20}, 0, {6, 20}, nowhere},
                                            {Reshape, {2, 3, 20}, 2, {6, 20}, 1},
                                            {Reshape, {6, 20}, 0, {2, 3, 20}, 1},
                                            {Reshape, {6, 20}, 1, {2, 3, 20}, 2},
                                            {Reshape, {2, 3, 20}, 2, {2, 3, 4, 5}, 2},
                                            {Reshape, {2, 3, 20}, 1, {2, 3, 4, 5}, nowhere},
                                            {Reshape, {2, 3, 4, 5}, 2, {2, 3, 20}, 2},
                                            {Reshape, {2, 3, 4, 5}, 3, {2, 3, 20}, nowhere},
                                            {Reshape, {2, 3, 20}, 1, {2, 3, 20}, 1},
                                            {Reshape, {2, 3, 60}, 2, {2, 3, 20}, 2},
                                            {Reshape, {2, 3, 60}, 1, {6, 20}, nowhere}})
    EXPECT_EQ(moved_cut(move.transform, move.from, move.cut, move.to), move.expected)
        << to_text(move.from) << " → " << to_text(move.to) << ", " << int{move.cut};
}

}  // namespace
}  // namespace tidemark::moved_cut_test
