// A step as torch.compile sees it, a graph of torch.fx: ATen's calls after Inductor's
// decompositions, each with what it makes, and which of these values the calls of the backward
// read. Example, of a layer_norm in fp32:
//   x ─var_mean─► ─getitem─► mean    ─getitem─► variance ─add, rsqrt─► 1/σ
//   x ─sub(mean)─► ─mul(1/σ)─► normalized ─mul(weight)─► ─add(bias)─► y
//   backward reads: normalized, and 1/σ by way of a call that has its quotient with the width
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.h"

namespace tidemark {

enum class FxId : std::uint32_t {};
constexpr std::size_t index(FxId id) { return static_cast<std::size_t>(id); }
inline constexpr FxId no_fx{0xffffffff};

/// What the partitioner asks of a call.
enum class FxKind : std::uint8_t {
  Input,      ///< a parameter or an input of the step
  View,       ///< of its first operand
  Pointwise,  ///< Triton has code for it, reductions among them: fused, and made again at will
  Pair,       ///< such a call that returns several tensors, which Elements name
  Element,    ///< of what a Pair or a KernelSet returns
  Kernel,     ///< of a library, or never made again: products, lookups, random numbers
  KernelSet,  ///< a kernel that returns several tensors
  Concat,     ///< takes part in the fusion of what it reads, not of what reads it
};

struct FxNode {
  FxKind kind{};
  Shape shape = {};
  DType dtype = DType::Float32;
  std::vector<FxId> reads = {};
  OpId op = no_op;               ///< that makes the call; none of inputs
  TensorId tensor = no_tensor;   ///< the trace's, which has this value
  std::string_view suffix = {};  ///< behind the op's name, where the trace has no such tensor
  bool is_random = false;        ///< draws numbers, by a seed of the step's, where it is fused
  bool is_pad = false;           ///< not a cat, but aten.constant_pad_nd
  bool is_sum = false;           ///< of its operands, whose gradients are that of the sum
  bool in_backward = false;      ///< a call of the backward that needs nothing but forward values
};

/// What a call of the backward reads of the forward.
struct BackwardRead {
  FxId value{};
  OpId op{};               ///< whose gradients it makes
  bool by_kernel = false;  ///< of a library, which needs the value in memory
};

struct FxGraph {
  std::vector<FxNode> calls;  ///< reads are of earlier ones
  std::vector<BackwardRead> backward;
  std::vector<FxId> returned;   ///< to the caller: they lie in memory
  std::vector<FxId> by_tensor;  ///< the call that makes what a tensor of the trace holds

  const FxNode& operator[](FxId id) const { return calls[index(id)]; }
};

/// Ops [begin, end), which are one graph.
struct FxRegion {
  OpId begin{}, end{};
  std::vector<TensorId> outputs;  ///< what ops behind it read, and the loss
  bool makes_masks = false;  ///< and rotary tables, too, which are given to it else: a whole model
};

FxRegion whole_step(const Trace& trace);
FxRegion region_of(const Trace& trace, const Block& block);

/// A tuple has no size of its own.
Bytes size(const FxNode& call);

/// The call whose memory the value lies in: itself, unless it is a view.
FxId base_of(const FxGraph& graph, FxId id);

/// Calls that are alike are made once. UsageError where an op has no known calls.
FxGraph fx_graph_of(const Trace& trace, const FxRegion& region);

}  // namespace tidemark
