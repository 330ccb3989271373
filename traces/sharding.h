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
    Ddp,    ///< torch's DistributedDataParallel: nothing is cut, gradients meet in buckets
    Fsdp2,  ///< torch's fully_shard: all is cut, and gathered block by block
  };
  static constexpr std::int64_t usual_bucket_mib = 25;  ///< torch's bucket_cap_mb
  static constexpr std::int64_t most_bucket_mib = 1 << 20;

  Kind kind = Kind::Ddp;
  bool bucket_view = false;                    ///< DDP: gradients are views into the buckets
  std::int64_t bucket_mib = usual_bucket_mib;  ///< DDP: after the first, which has 1 MiB
  bool reshards = true;  ///< FSDP2: blocks free their parameters between forward and backward

  bool operator==(const Sharding&) const = default;
};

inline constexpr std::array sharding_kinds = {
    Named{Sharding::Kind::Ddp, std::string_view("ddp")},
    Named{Sharding::Kind::Fsdp2, std::string_view("fsdp2")}};
static_assert(is_in_order(sharding_kinds));

/// "ddp", "ddp:bucket-view,bucket-mb=50", "fsdp2:no-reshard". Throws UsageError.
Sharding parse_sharding(std::string_view text);
/// parse_sharding() reads it back.
std::string to_text(const Sharding& sharding);

}  // namespace tidemark
