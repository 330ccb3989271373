// CohereLayerNorm and Cohere2LayerNorm of transformers, which no call of PyTorch computes: the mean
// is subtracted twice, once for the variance and once for the result.
#include "traces/models/composed_norm.h"

#include <array>

namespace tidemark {

// The node of the square and that of the product with 1/std hold a difference each, that of the
// weight what it multiplies. Back, in PowBackward: the gradient of the mean spread over each row, x
// to the power of one, twice that, and their product, when dy, one of the differences and what the
// weight multiplied are gone.
TensorId composed_layer_norm(TraceBuilder& b, const std::string& name, TensorId x,
                             const Shape& weight) {
  const Shape s = b.shape(x);
  const DType stated = b[x].dtype;
  const TensorId gain =
      b.cast(name + ".weight.float", b.parameter(name + ".weight", weight), DType::Float32);
  const TensorId read = b.cast(name + ".upcast", x, DType::Float32);
  const std::array outputs = {
      OutputSpec{"", s, DType::Float32}, OutputSpec{"squared", s, DType::Float32},
      OutputSpec{"centred", s, DType::Float32}, OutputSpec{"normalized", s, DType::Float32},
      OutputSpec{"rstd", s.with_back(1), DType::Float32}};
  const Bytes whole = size(b[read]);
  const TensorId y = b.opaque(
      name, std::array{read, gain}, outputs,
      {.operation = "transformers::composed_layer_norm",
       .gradients = 0b11,
       .saved = input_bit(1) | output_bit(1) | output_bit(2) | output_bit(3) | output_bit(4),
       .forward = {.moved = Bytes{14 * whole.count}, .kernels = 10},
       .backward = {.workspace = whole, .moved = Bytes{32 * whole.count}, .kernels = 20}});
  return b.cast(name + ".round", y, stated);
}

}  // namespace tidemark
