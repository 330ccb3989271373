// Times of collectives: limits that follow from arithmetic, and the measured curves.
#include "simulator/parallel/collectives.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/parallel/cluster.h"

namespace tidemark::collectives_test {
namespace {

using namespace literals;

// 8 GPUs per node, 100 GB/s on it; a network card of 10 GB/s for each.
Interconnect toy_interconnect() {
  Interconnect joined;
  joined.cluster = "toy";
  joined.gpus_per_node = 8;
  joined.link_bytes_per_second = 100e9;
  joined.network_cards = 8;
  joined.network_bytes_per_second = 10e9;
  joined.channels = 2;
  return joined;
}

constexpr double large = 1e12;

double seconds(const Interconnect& joined, RankGroup group, Pattern pattern, double bytes) {
  return collective_of(joined, group, pattern, bytes).ns / 1e9;
}

TEST(Collectives, LargeOnesTakeWhatTheirVolumeTakes) {
  const Interconnect joined = toy_interconnect();
  const RankGroup node{8, 8};
  EXPECT_NEAR(seconds(joined, node, Pattern::AllReduce, large), 2 * 7.0 / 8 * large / 100e9, 1e-3);
  EXPECT_NEAR(seconds(joined, node, Pattern::AllGather, large), 7.0 / 8 * large / 100e9, 1e-3);
  EXPECT_EQ(seconds(joined, node, Pattern::ReduceScatter, large),
            seconds(joined, node, Pattern::AllGather, large));
}

// 2 nodes: 8 cards of 10 GB/s carry less than the 100 GB/s of the node. With one rank per node the
// group has one card's worth.
TEST(Collectives, TheNetworkCarriesWhatCrossesIt) {
  const Interconnect joined = toy_interconnect();
  EXPECT_NEAR(seconds(joined, {16, 8}, Pattern::AllGather, large), 15.0 / 16 * large / 80e9, 1e-3);
  EXPECT_NEAR(seconds(joined, {2, 1}, Pattern::AllGather, large), 1.0 / 2 * large / 10e9, 1e-3);
}

// Of what a rank has, 7 of 8 parts leave it on one node. Of two nodes half of it crosses, through
// its own card of 10 GB/s. One step of NCCL's Simple protocol is waited for: 8.4 + 3.4 µs.
TEST(Collectives, AllToAllSendsToAllAtOnce) {
  const Interconnect joined = toy_interconnect();
  EXPECT_NEAR(seconds(joined, {8, 8}, Pattern::AllToAll, large), 7.0 / 8 * large / 100e9, 1e-3);
  EXPECT_NEAR(seconds(joined, {16, 8}, Pattern::AllToAll, large), 8.0 / 16 * large / 10e9, 1e-3);
  EXPECT_NEAR(seconds(joined, {8, 8}, Pattern::AllToAll, 1), 11.8e-6, 1e-9);
}

// Two channels, with 12 MiB for each of the others on the node; pools of 16 chunks of 128 KiB for
// what crosses, there and back.
TEST(Collectives, AllToAllHasBuffersForEachOther) {
  const Interconnect joined = toy_interconnect();
  EXPECT_EQ(all_to_all_bytes(joined, {1, 1}), Bytes{});
  EXPECT_EQ(all_to_all_bytes(joined, {8, 8}), 168_MiB);
  EXPECT_EQ(all_to_all_bytes(joined, {16, 8}), 176_MiB);
}

TEST(Collectives, WithoutANetworkNodesAreNotJoined) {
  Interconnect joined = toy_interconnect();
  joined.network_cards = 0;
  EXPECT_THROW(seconds(joined, {16, 8}, Pattern::AllGather, large), InputError);
  EXPECT_THROW(seconds(joined, {16, 8}, Pattern::AllToAll, large), InputError);
}

// 20 + 7 · 5 µs and 7/8 of the bytes; all-reduces, sends and other nodes have NCCL's latencies.
TEST(Collectives, GathersOnANodeTakeWhatWasMeasured) {
  const Interconnect usual = toy_interconnect();
  Interconnect joined = usual;
  joined.gather_base_seconds = 20e-6, joined.gather_step_seconds = 5e-6;
  for (const Pattern pattern : {Pattern::AllGather, Pattern::ReduceScatter}) {
    EXPECT_NEAR(seconds(joined, {8, 8}, pattern, 8e6), 55e-6 + 7e6 / 100e9, 1e-12);
    EXPECT_NEAR(seconds(joined, {2, 2}, pattern, 8e6), 25e-6 + 4e6 / 100e9, 1e-12);
    EXPECT_EQ(seconds(joined, {16, 8}, pattern, 8e6), seconds(usual, {16, 8}, pattern, 8e6));
  }
  for (const Pattern pattern : {Pattern::AllReduce, Pattern::Send, Pattern::AllToAll})
    EXPECT_EQ(seconds(joined, {8, 8}, pattern, 8e6), seconds(usual, {8, 8}, pattern, 8e6));
}

// LL over NVLink: 6.6 + 14 · 0.6 µs of a ring; a tree takes 6.8 + 2 · 7 · 0.6.
TEST(Collectives, SmallOnesTakeTheirLatency) {
  EXPECT_NEAR(collective_of(toy_interconnect(), {8, 8}, Pattern::AllReduce, 1).ns, 15'000, 1);
  EXPECT_NEAR(collective_of(toy_interconnect(), {8, 8}, Pattern::AllGather, 1).ns, 6'600 + 7 * 600,
              1);
}

TEST(Collectives, MoreBytesNeverTakeLess) {
  for (const Cluster& cluster : known_clusters()) {
    const auto gpus = static_cast<std::int64_t>(cluster.interconnect.gpus_per_node);
    for (const Pattern pattern :
         {Pattern::AllReduce, Pattern::AllGather, Pattern::ReduceScatter, Pattern::AllToAll}) {
      double before = 0;
      for (double bytes = 1; bytes < 1e11; bytes *= 1.7) {
        const double ns = collective_of(cluster.interconnect, {gpus, gpus}, pattern, bytes).ns;
        EXPECT_GE(ns, 0.97 * before) << cluster.name << " " << bytes;  // measured curves waver
        before = ns;
      }
    }
  }
}

TEST(Collectives, MeasuredPointsAreMet) {
  for (const char* name : {"dgx-a100", "dgx-h100", "dgx-h200"}) {
    const Interconnect joined = find_cluster(name).interconnect;
    ASSERT_FALSE(joined.all_reduce.empty()) << name;
    for (const BusPoint& point : joined.all_reduce) {
      const double ns = collective_of(joined, {8, 8}, Pattern::AllReduce, point.bytes).ns;
      const double bus = point.bytes * 2 * 7 / 8 / ns * 1e9;
      EXPECT_NEAR(bus / point.bus_bytes_per_second, 1, 1e-6) << name << " " << point.bytes;
    }
  }
}

TEST(RankGroups, NeighboursOfInnerAxesLieSideBySide) {
  const Interconnect joined = toy_interconnect();
  const Mesh mesh = parse_mesh("pp=2,dp=4,tp=4");
  const RankGroup tensor = group_of(mesh, Axis::Tensor, joined);
  EXPECT_EQ(tensor.ranks, 4);
  EXPECT_EQ(tensor.nodes(), 1);
  const RankGroup data = group_of(mesh, Axis::Data, joined);  // 4 apart: two on each node
  EXPECT_EQ(data.per_node, 2);
  EXPECT_EQ(data.nodes(), 2);
}

// 24 channels of 12 MiB, and 2 · 8 · 128 KiB for each of 16 channels and 8 ranks: 256 MiB.
TEST(Communicators, TakeTheirBuffers) {
  const Interconnect joined = find_cluster("dgx-h100").interconnect;
  EXPECT_EQ(communicator_bytes(joined, {8, 8}), 288_MiB + 256_MiB);
  EXPECT_EQ(communicator_bytes(joined, {1, 1}), Bytes{});
}

}  // namespace
}  // namespace tidemark::collectives_test
