// Gradient accumulation fusion: a product adds the gradient of its weight to Megatron-LM's main
// gradient in its own kernel, and autograd gets a dummy in its place
// (core/tensor_parallel/layers.py of Megatron-LM d98e8a6; get_dummy_wgrad() in module/base.py of
// TransformerEngine from 2.3 on, in grouped_linear.py from 2.10 on).
#pragma once

#include <vector>

#include "traces/trace.h"

namespace tidemark {

/// Without --no-gradient-accumulation-fusion, where products are of these libraries.
bool fuses_accumulation(const StepOptions& step);

/// The trained parameter whose gradient the op's product can add by itself: the weight of a linear,
/// or those of experts. no_tensor: gradients are added by kernels of their own.
TensorId weight_of_product(const Trace& trace, const Op& op);

struct DummyGradient {
  TensorId weight;  ///< the first that it stands for
  Bytes size;
};
/// One per shape and dtype of these weights, each expert's by itself. They stay between steps.
std::vector<DummyGradient> dummy_gradients(const Trace& trace);

}  // namespace tidemark
