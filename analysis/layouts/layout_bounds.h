// What a layout needs and takes at least, from one step of one rank that stands for all meshes with
// the same tensor-parallel ranks.
//
//   one rank alone   │ before │ block │ block │ block │ block │ behind │
//   pp=2             └── stage 0 ─────────────┘└── stage 1 ────────────┘
#pragma once

#include "analysis/layouts/beside_exchanges.h"
#include "analysis/layouts/layout_space.h"

namespace tidemark {

/// What a micro-batch takes beside its forward and backward, by what is done with its parameters
/// and gradients, each kernel alone.
struct BesideTimes {
  Nanoseconds add{};             ///< gradients to those of the micro-batches before
  Nanoseconds add_main{};        ///< … to Megatron-LM's main gradients
  Nanoseconds add_main_alone{};  ///< … of those that no product adds itself
  Nanoseconds copy{};            ///< gradients, or what they are of, without gaps between kernels
  Nanoseconds copy_of_block{};   ///< … those that fully_shard gathers block by block
};

/// Of one micro-batch: what stands before the blocks, then each block, then what stands behind.
struct LayoutParts {
  struct Part {
    Bytes parameters, states, gradients;  ///< of what is used here first; states with fp32 copies
    std::int64_t trained = 0;             ///< elements
    Bytes saved;                          ///< alive between forward and backward, read here last
    Nanoseconds time{};                   ///< of its runs, each alone: forward and backward
    BesideTimes beside;
    Bytes gathered, reduced;  ///< parameters that fully_shard gathers with the block, all of which
                              ///< have gradients, and those; nothing where some have none
  };
  std::vector<Part> parts;
  std::vector<DeviceUse> runs;  ///< of which the times of all parts consist
  Refusal refusal;              ///< the strategy does not apply
  Refusal pipeline_refusal;     ///< … to micro-batches in flight
  Refusal tensor_refusal;       ///< the step cannot be cut for its tp ranks
  bool is_indivisible = false;  ///< … for so many
  bool is_on_one_lane = true;   ///< otherwise runs may be hidden, and sums are no bound
};

/// Those of a layout's tp ranks, micro-batch and strategy; the rest of it does not matter.
LayoutParts parts_of(const LayoutRequest& request, const MeshLayout& layout);

/// No simulation of the layout gives less: allocated bytes of the rank that needs most, and the
/// time of the step.
struct LayoutBounds {
  Bytes allocated;
  Nanoseconds step{};
};
LayoutBounds bounds_of(const LayoutRequest& request, const MeshLayout& layout,
                       const LayoutParts& parts);

}  // namespace tidemark
