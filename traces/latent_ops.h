// What Megatron-LM's kernels of latent attention do with the parts of heads that have positions
// (core/fusions/fused_mla_yarn_rope_apply.py).
#pragma once

#include "traces/formula.h"
#include "traces/pair_ops.h"
#include "traces/trace.h"

namespace tidemark {

/// Heads of q, tables → the same with their last part turned.
inline constexpr std::string_view turned_queries_operation = "megatron::mla_rope_inplace";
/// Heads of keys and values beside each other, what all of them share, tables → whole keys, values.
inline constexpr std::string_view split_keys_operation = "megatron::mla_rope_kv_split";

/// Of these, and of what sorts or turns pairs: each head and each token by itself.
inline bool is_of_each_head(const Trace& trace, const Op& op) {
  const OpaqueRow* const row = opaque_row(trace, op);
  return row &&
         (row->operation == turned_queries_operation || row->operation == split_keys_operation ||
          row->computes == Formula::SortPairs || turns_pairs(*row));
}

}  // namespace tidemark
