// Masks from numbers per token, by ops that all have kernels: masking_utils.py and
// modeling_attn_mask_utils.py of transformers.
#include "traces/models/masks.h"

#include "traces/models/attention.h"

namespace tidemark {
namespace {

// By how much `later` [1, 1, 1, keys] is behind `sooner` [1, 1, tokens, 1]; 0 where it is before.
TensorId distance(TraceBuilder& b, const std::string& name, TensorId later, TensorId sooner) {
  return b.relu(name, b.add(name + ".difference", later, b.scale(name + ".less", sooner, -1)));
}

// [1, 1, tokens, keys]: above 0 where a key is behind its query, or as far before it as the window
// is wide. PyTorch compares places; here their distances say the same, by ops that all have
// kernels.
TensorId hidden_by_distance(TraceBuilder& b, const std::string& name, const Shape& shape,
                            std::int64_t window) {
  const std::int64_t tokens = shape[2], keys = shape[3];
  const auto places = [&](const char* of, std::int64_t count, std::int64_t first) {
    return b.input(name + of, {1, 1, 1, count}, DType::Float32, fill::Positions{first});
  };
  const TensorId key = places(".keys", keys, 0);
  const TensorId query =
      b.view(name + ".rows", places(".queries", tokens, keys - tokens), {1, 1, tokens, 1});
  const TensorId ahead = distance(b, name + ".ahead", key, query);
  if (window == 0 || window >= keys) return ahead;
  const TensorId seen_by_last = places(".kept", keys, window - 1);
  return b.add(name + ".hidden", ahead, distance(b, name + ".behind", query, seen_by_last));
}

}  // namespace

bool makes_masks(const TraceBuilder& b) {
  const Mesh& mesh = b.step().mesh;
  return b.framework().masks_each_sample && mesh[Axis::Tensor] == 1 && mesh[Axis::Context] == 1 &&
         mesh[Axis::Pipeline] == 1;
}

TensorId padding_of_pairs(TraceBuilder& b, const std::string& name, const Shape& shape,
                          DType dtype) {
  const TensorId keys =
      b.input(name + ".keys", {b.step().batch, 1, 1, shape[3]}, dtype, fill::PaddingMask{});
  const TensorId queries =
      b.input(name + ".queries", {1, 1, shape[2], 1}, dtype, fill::Constant{0});
  return b.add(name, keys, queries);
}

TensorId made_mask(TraceBuilder& b, const std::string& name, const Shape& shape, DType dtype,
                   const InputFill& fill) {
  const auto* causal = std::get_if<fill::CausalMask>(&fill);
  if (!makes_masks(b) || !causal) return b.input(name, shape, dtype, fill);
  const TensorId hidden = hidden_by_distance(b, name, shape, causal->window);
  const bool is_wide = dtype == DType::Float32;
  const TensorId mask = b.scale(is_wide ? name : name + ".float", hidden, far_below);
  return is_wide ? mask : b.cast(name, mask, dtype);
}

// Of distances, which are whole numbers, no more than 1 counts.
TensorId later_pairs(TraceBuilder& b, const std::string& name, const Shape& shape,
                     std::int64_t window) {
  const TensorId hidden = hidden_by_distance(b, name, shape, window);
  const TensorId less = b.input(name + ".less", {1, 1, 1, 1}, DType::Float32, fill::Constant{-1});
  const TensorId beyond = b.relu(name + ".beyond", b.add(name + ".from_one", hidden, less));
  const TensorId one = b.add(name + ".float", hidden, b.scale(name + ".rest", beyond, -1));
  return b.cast(name, one, DType::Bool);
}

TensorId hidden_pairs(TraceBuilder& b, const std::string& name, const Shape& shape,
                      const InputFill& fill) {
  const auto* causal = std::get_if<fill::CausalMask>(&fill);
  if (!causal)
    return b.cast(name, padding_of_pairs(b, name + ".float", shape, DType::Float32), DType::Bool);
  return for_all_samples(b, name + ".samples", later_pairs(b, name, shape, causal->window));
}

}  // namespace tidemark
