// Bytes → cluster file → written → read again. Must give the same cluster or throw InputError; and
// what a cluster says must be enough to time every collective on it.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "simulator/parallel/cluster.h"
#include "simulator/parallel/collectives.h"
#include "tests/fuzz/refusals.h"

namespace {

using namespace tidemark;

void time_collectives(const Interconnect& joined, std::int64_t ranks) {
  const RankGroup group = group_of({.sizes = {1, ranks, 1, 1}}, Axis::Data, joined);
  require(communicator_bytes(joined, group) >= Bytes());
  for (const Pattern pattern : {Pattern::AllGather, Pattern::ReduceScatter, Pattern::AllReduce})
    for (const double bytes : {1.0, 4096.0, 1e12}) {
      const Collective made = collective_of(joined, group, pattern, bytes);
      require(std::isfinite(made.ns) && made.ns > 0);
      require(made.link_share > 0 && made.link_share <= 1);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::optional<Cluster> cluster;
  answer_or_refuse([&] { cluster = read_cluster(text, "fuzz"); });
  if (!cluster) return 0;
  require(read_cluster(write_cluster(*cluster), "again") == *cluster);
  for (const std::int64_t ranks : {2, 8, 1024})
    answer_or_refuse([&] { time_collectives(cluster->interconnect, ranks); });
  return 0;
}
