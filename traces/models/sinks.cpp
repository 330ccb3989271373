// eager_attention_forward() of transformers' modeling_gpt_oss.py: the scores are joined with the
// sinks, the largest of a row is subtracted from all (for which the node of max() keeps where it
// is), and softmax keeps what it writes.
#include "traces/models/sinks.h"

#include <array>

namespace tidemark {

TensorId probabilities_beside_sinks(TraceBuilder& b, const std::string& name, TensorId scores) {
  const Shape s = b.shape(scores), all = s.with_back(s.back() + 1);
  const TensorId sinks = b.parameter(name + ".sinks", {s[1]});
  const DType dtype = b[scores].dtype == b[sinks].dtype ? b[scores].dtype : DType::Float32;
  const Bytes whole{numel(all) * size_of(dtype)};
  b.begin_function();
  // The code expands the sinks; here a number of each head is copied, whose gradient is a sum.
  const TensorId of_heads = b.copy(name + ".sinks.heads", sinks, {1, s[1], 1, 1});
  const TensorId with_sinks =
      b.concat(name + ".sinks.join", std::array{b.local(scores), of_heads}, all);
  const std::array lowered = {OutputSpec{"", all, dtype},
                              OutputSpec{"place", s.with_back(1), DType::Int64}};
  const TensorId differences =
      b.local(b.opaque(name + ".sinks.lowered", std::array{with_sinks}, lowered,
                       {.operation = "aten::sub",
                        .gradients = 0b1,
                        .saved = output_bit(1),
                        .forward = {.moved = Bytes{3 * whole.count}, .kernels = 2},
                        .backward = {.moved = Bytes{5 * whole.count}, .kernels = 4}}));
  const TensorId weights = b.local(b.softmax(name + ".softmax", differences, false));
  const TensorId of_keys = b.select(name + ".of_keys", weights, s);
  b.end_function();
  return of_keys;
}

}  // namespace tidemark
