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
    Zero1,     ///< DeepSpeed: optimizer states are cut
    Zero2,     ///< DeepSpeed: and gradients
    Zero3,     ///< DeepSpeed: and parameters, gathered module by module
    Fsdp1,     ///< torch's FullyShardedDataParallel: all is cut, in one flat parameter per block
  };
  static constexpr std::int64_t usual_bucket_mib = 25;  ///< torch's bucket_cap_mb
  static constexpr std::int64_t most_bucket_mib = 1 << 20;
  static constexpr std::int64_t most_instances = 1 << 20;
  static constexpr std::int64_t most_elements = 1'000'000'000'000;

  Kind kind = Kind::Ddp;
  bool bucket_view = false;                    ///< DDP: gradients are views into the buckets
  std::int64_t bucket_mib = usual_bucket_mib;  ///< DDP: after the first, which has 1 MiB
  bool reshards = true;  ///< FSDP: blocks free their parameters between forward and backward
  std::int64_t shard_ranks = 0;    ///< FSDP: among so many, others have copies; 0: among all
  bool cuts_states = true;         ///< Megatron: --use-distributed-optimizer
  bool overlaps = false;           ///< Megatron: --overlap-grad-reduce; ZeRO: overlap_comm
  bool gradients_are_wide = true;  ///< Megatron: main gradients are fp32, not as the weights
  bool fuses_accumulation = true;  ///< Megatron: products add to main gradients themselves
  std::int64_t instances = 1;  ///< Megatron: --num-distributed-optimizer-instances: cut among fewer

  // ZeRO, in elements; DeepSpeed's names and defaults (deepspeed/runtime/zero/config.py).
  std::int64_t reduce_bucket = 500'000'000;     ///< reduce_bucket_size
  std::int64_t prefetch = 50'000'000;           ///< stage3_prefetch_bucket_size
  std::int64_t max_live = 1'000'000'000;        ///< stage3_max_live_parameters
  std::int64_t reuse_distance = 1'000'000'000;  ///< stage3_max_reuse_distance
  std::int64_t persistence = 100'000;           ///< stage3_param_persistence_threshold

  bool operator==(const Sharding&) const = default;
};

constexpr bool is_zero(Sharding::Kind kind) {
  return kind == Sharding::Kind::Zero1 || kind == Sharding::Kind::Zero2 ||
         kind == Sharding::Kind::Zero3;
}
constexpr bool is_fsdp(Sharding::Kind kind) {
  return kind == Sharding::Kind::Fsdp2 || kind == Sharding::Kind::Fsdp1;
}

inline constexpr std::array sharding_kinds = {
    Named{Sharding::Kind::Ddp, std::string_view("ddp")},
    Named{Sharding::Kind::Fsdp2, std::string_view("fsdp2")},
    Named{Sharding::Kind::Megatron, std::string_view("megatron")},
    Named{Sharding::Kind::Zero1, std::string_view("zero1")},
    Named{Sharding::Kind::Zero2, std::string_view("zero2")},
    Named{Sharding::Kind::Zero3, std::string_view("zero3")},
    Named{Sharding::Kind::Fsdp1, std::string_view("fsdp1")}};
static_assert(is_in_order(sharding_kinds));

/// "ddp", "ddp:bucket-view,bucket-mb=50", "fsdp2:no-reshard", "megatron:whole-states,overlap",
/// "zero3:prefetch=5e7".
/// Throws UsageError.
Sharding parse_sharding(std::string_view text);
/// parse_sharding() reads it back.
std::string to_text(const Sharding& sharding);

}  // namespace tidemark
