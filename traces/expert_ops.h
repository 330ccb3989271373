// What Megatron-LM's layer of experts is made of, beside products and norms: opaque ops whose rows
// follow from their shapes, so that transforms may cut these (core/transformer/moe).
#pragma once

#include <optional>

#include "traces/trace.h"

namespace tidemark {

/// Rows are tokens, or visits: each token visits so many experts.
enum class ExpertOp : std::uint8_t {
  Gate,      ///< tokens, weight [experts, width] → logits
  Pick,      ///< logits → shares, whether picked, which are picked, their shares in fp32
  Permute,   ///< tokens, whether picked → visits in order of experts, of which token, which share
  Weigh,     ///< shares, which share → of each visit
  Exchange,  ///< visits of this rank's tokens → visits of its experts; and back
  Sort,      ///< visits by rank and expert → by expert; and back
  Product,   ///< visits, weights [experts, in, out] → visits
  ProductOfEach,   ///< the same, one expert after the other
  Swiglu,          ///< visits, shares → silu(first half) · second half · share
  Unpermute,       ///< visits, of which token → tokens, summed
  Gated,           ///< rows → silu(first half) · second half, of a dense MLP, too
  WeightedSquare,  ///< visits, shares → relu(visit)² · share
  Square,          ///< rows → relu(row)², of a dense MLP, too
  GatherTokens,    ///< rows of this rank's tokens → of the tokens of all that share experts
  ScatterTokens,   ///< rows of all tokens → of this rank's, summed over ranks
  OwnColumns,      ///< of all experts → of those that the rank has
  PickShares,      ///< shares, whether picked → of each visit
};

inline constexpr std::array expert_ops = {
    Named{ExpertOp::Gate, std::string_view("megatron::router_gating_linear")},
    Named{ExpertOp::Pick, std::string_view("megatron::topk_routing")},
    Named{ExpertOp::Permute, std::string_view("megatron::permute")},
    Named{ExpertOp::Weigh, std::string_view("megatron::permute_probs")},
    Named{ExpertOp::Exchange, std::string_view("c10d::alltoall_base_")},
    Named{ExpertOp::Sort, std::string_view("megatron::sort_chunks_by_idxs")},
    Named{ExpertOp::Product, std::string_view("megatron::grouped_gemm")},
    Named{ExpertOp::ProductOfEach, std::string_view("megatron::sequential_gemm")},
    Named{ExpertOp::Swiglu, std::string_view("megatron::weighted_swiglu")},
    Named{ExpertOp::Unpermute, std::string_view("megatron::unpermute")},
    Named{ExpertOp::Gated, std::string_view("megatron::swiglu")},
    Named{ExpertOp::WeightedSquare, std::string_view("megatron::weighted_squared_relu")},
    Named{ExpertOp::Square, std::string_view("megatron::squared_relu")},
    Named{ExpertOp::GatherTokens, std::string_view("c10d::_allgather_base_")},
    Named{ExpertOp::ScatterTokens, std::string_view("c10d::_reduce_scatter_base_")},
    Named{ExpertOp::OwnColumns, std::string_view("megatron::own_experts")},
    Named{ExpertOp::PickShares, std::string_view("aten::masked_select")}};
static_assert(is_in_order(expert_ops));

/// Does it write of each element, and a share, one of its own?
constexpr bool is_activation(ExpertOp op) {
  return op == ExpertOp::Swiglu || op == ExpertOp::Gated || op == ExpertOp::WeightedSquare ||
         op == ExpertOp::Square;
}

/// Nothing if the op is none of these.
std::optional<ExpertOp> expert_op(const Trace& trace, const Op& op);

/// In one kernel, or one after the other; in sixteen bits, or in eight as Transformer Engine
/// multiplies.
bool is_product_of_experts(const Trace& trace, const Op& op);
/// In one kernel; in eight bits always.
bool is_grouped_product(const Trace& trace, const Op& op);

/// Of Gated, which walks over what it reads and writes.
OpaqueRow gated_row(Bytes of_input);
/// Of Square, which does, too.
OpaqueRow squared_row(Bytes of_input);
/// What the op says about itself, whose time is a guess; shapes of its inputs, the second if there
/// is one.
OpaqueRow expert_row(ExpertOp op, const Shape& first, const Shape& second = {});

/// The rows of all of these, of the shapes that they have now.
void recount_expert_ops(Trace& trace);

/// Of each layer of them, that the trace has; 0: no such layers.
std::int64_t experts_in(const Trace& trace);

/// By tensor: parameters (and what autocast makes of them, and their codes) of which a rank has
/// those of its own experts only. None where all ranks have all experts.
std::vector<bool> parameters_of_experts(const Trace& trace);

}  // namespace tidemark
