// Which nodes are alike: by labels, by neighbours, and by what is far away.
#include "simulator/planner/alike_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::alike_nodes_test {
namespace {

using testing::ElementsAre;
using Edges = std::vector<LabelledEdge>;

TEST(AlikeNodes, HaveEqualLabels) {
  EXPECT_THAT(first_alike({7, 7, 8}, {}), ElementsAre(0, 0, 2));
  EXPECT_THAT(first_alike({}, {}), ElementsAre());
}

TEST(AlikeNodes, HaveAlikeNeighboursInEachDirection) {
  EXPECT_THAT(first_alike({1, 1, 1, 1}, Edges{{0, 1}, {2, 3}}), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(first_alike({1, 1, 1, 1}, Edges{{0, 1}, {3, 2}}), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(first_alike({1, 1, 1}, Edges{{0, 1}, {0, 2}}), ElementsAre(0, 1, 1));
  EXPECT_THAT(first_alike({1, 1, 1}, Edges{{0, 1}, {0, 2}, {0, 2}}), ElementsAre(0, 1, 2));
}

// Two chains of experts between a router and a sum, one of which ends in another label.
TEST(AlikeNodes, AreToldApartByWhatIsFarAway) {
  const Edges edges = {{0, 1}, {1, 2},  {2, 3}, {3, 10}, {0, 4}, {4, 5},
                       {5, 6}, {6, 10}, {0, 7}, {7, 8},  {8, 9}, {9, 10}};
  EXPECT_THAT(first_alike({1, 2, 3, 4, 2, 3, 4, 2, 3, 4, 5}, edges),
              ElementsAre(0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 10));
  EXPECT_THAT(first_alike({1, 2, 3, 4, 2, 3, 4, 2, 3, 9, 5}, edges),
              ElementsAre(0, 1, 2, 3, 1, 2, 3, 7, 8, 9, 10));
}

TEST(AlikeNodes, LabelsDependOnTheOrderOfNumbers) {
  EXPECT_EQ(label_of({1, 2}), label_of({1, 2}));
  EXPECT_NE(label_of({1, 2}), label_of({2, 1}));
  EXPECT_NE(label_of({1}), label_of({1, 0}));
}

}  // namespace
}  // namespace tidemark::alike_nodes_test
