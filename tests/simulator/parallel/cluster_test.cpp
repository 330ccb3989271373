// Cluster files: the embedded ones, the way back to text, and mistakes.
#include "simulator/parallel/cluster.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tidemark::cluster_test {
namespace {

TEST(Clusters, EmbeddedOnesSurviveTheWayToTextAndBack) {
  ASSERT_FALSE(known_clusters().empty());
  for (const Cluster& cluster : known_clusters())
    EXPECT_EQ(read_cluster(write_cluster(cluster), "again"), cluster) << cluster.name;
}

TEST(Clusters, EachFigureHasASource) {
  for (const Cluster& cluster : known_clusters())
    for (const Figure& figure : figures(cluster))
      EXPECT_GT(figure.source.text.size(), 5u) << cluster.name << " " << figure.key;
}

TEST(Clusters, SayShortTimesInMillionthsOfASecond) {
  int times = 0;
  for (const Figure& figure : figures(find_cluster("dgx-b200")))
    if (figure.unit == "s") {
      ++times;
      EXPECT_TRUE(figure.text.ends_with(" µs")) << figure.text;
    }
  EXPECT_EQ(times, 2);
}

TEST(Clusters, AreFoundInAnyCaseOfLetters) {
  EXPECT_EQ(find_cluster("DGX-H100").name, "dgx-h100");
  EXPECT_THROW(find_cluster("dgx-h10"), UsageError);
}

TEST(Clusters, JoinTheirDevices) {
  const Device device = device_of(find_cluster("dgx-h100"));
  EXPECT_EQ(device.name, "h100");
  EXPECT_EQ(device.interconnect->cluster, "dgx-h100");
  EXPECT_EQ(interconnect_of(find_device("h100"))->cluster, "dgx-h100");
  EXPECT_EQ(interconnect_of(find_device("t4")), nullptr);
}

std::string error_of(const std::string& from, const std::string& to) {
  std::string text = write_cluster(find_cluster("dgx-a100"));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    read_cluster(text, "my.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Clusters, MistakesAreToldWithTheirPlace) {
  EXPECT_EQ(error_of("\"a100-80gb\"", "\"a100\""),
            "my.json: /device: found no device that is known; tidemark devices lists them");
  EXPECT_EQ(error_of("tidemark-cluster-1", "tidemark-cluster-2"),
            "my.json: /format: found another format; need 'tidemark-cluster-1'");
  EXPECT_NE(error_of("\"channels\"", "\"channel\""), "");
  EXPECT_NE(error_of("[2048,", "[1000,"), "");
  EXPECT_EQ(error_of("\"channels\": {\"value\": 24", "\"channels\": {\"value\": 2.5"),
            "my.json: /figures/channels/value: found 2.5; need a whole number from 1 to 64");
}

std::string error_without(const std::string& figure) {
  Cluster cluster = find_cluster("dgx-b200");
  cluster.sources.erase(figure);
  try {
    read_cluster(write_cluster(cluster), "my.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Cards without a bandwidth would take forever.
TEST(Clusters, HalfOfANetworkOrOfALineIsRefused) {
  EXPECT_EQ(error_without("network_bytes_per_second"),
            "my.json: /figures: found half of a network; need network_cards and "
            "network_bytes_per_second");
  EXPECT_EQ(error_without("gather_step_seconds"),
            "my.json: /figures: found half of a line; need gather_base_seconds and "
            "gather_step_seconds");
  EXPECT_EQ(error_without("multicast_two_nodes"),
            "my.json: /figures: found a part of multicast's trees; need "
            "multicast_bytes_per_second, multicast_two_nodes and multicast_more_nodes");
}

}  // namespace
}  // namespace tidemark::cluster_test
