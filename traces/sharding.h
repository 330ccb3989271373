// How data-parallel ranks share what belongs to parameters: gradients are averaged, and optimizer
// states, gradients or parameters are cut into one shard per rank.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/names.h"
#include "base/units.h"

namespace tidemark {

struct Sharding {
  enum class Kind : std::uint8_t {
    Ddp,       ///< torch's DistributedDataParallel: nothing is cut, gradients meet in buckets
    Fsdp2,     ///< torch's fully_shard: all is cut, and gathered block by block
    Megatron,  ///< Megatron-LM: gradients in one buffer of the rank, optimizer states cut
  };
  static constexpr std::int64_t usual_bucket_mib = 25;  ///< torch's bucket_cap_mb
  static constexpr std::int64_t most_bucket_mib = 1 << 20;
  static constexpr std::int64_t most_instances = 1 << 20;

  Kind kind = Kind::Ddp;
  bool bucket_view = false;                    ///< DDP: gradients are views into the buckets
  std::int64_t bucket_mib = usual_bucket_mib;  ///< DDP: after the first, which has 1 MiB
  bool reshards = true;     ///< FSDP2: blocks free their parameters between forward and backward
  bool cuts_states = true;  ///< Megatron: --use-distributed-optimizer
  bool overlaps = false;    ///< Megatron: --overlap-grad-reduce, bucket by bucket
  bool gradients_are_wide = true;  ///< Megatron: main gradients are fp32, not as the weights
  std::int64_t instances = 1;  ///< Megatron: --num-distributed-optimizer-instances: cut among fewer

  bool operator==(const Sharding&) const = default;
};

inline constexpr std::array sharding_kinds = {
    Named{Sharding::Kind::Ddp, std::string_view("ddp")},
    Named{Sharding::Kind::Fsdp2, std::string_view("fsdp2")},
    Named{Sharding::Kind::Megatron, std::string_view("megatron")}};
static_assert(is_in_order(sharding_kinds));

/// "ddp", "ddp:bucket-view,bucket-mb=50", "fsdp2:no-reshard", "megatron:whole-states,overlap".
/// Throws UsageError.
Sharding parse_sharding(std::string_view text);
/// parse_sharding() reads it back.
std::string to_text(const Sharding& sharding);

}  // namespace tidemark
