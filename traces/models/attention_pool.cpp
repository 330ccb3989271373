// Op by op, as multi_head_attention_forward() of PyTorch 2.6 runs it where the weights are asked
// for, which is nn.MultiheadAttention's default: keys and values in one product, no fused kernel.
#include "traces/models/attention_pool.h"

#include <array>
#include <cmath>

namespace tidemark {
namespace {

struct Pool {
  TraceBuilder& b;
  const std::string& name;
  std::int64_t heads;

  TensorId by_head(const std::string& which, TensorId x) const {
    const Shape s = b.shape(x);
    return b.view(name + which, x, {s[0], heads, s[1], s[2] / heads}, LayoutTransform::SplitHeads);
  }

  TensorId mixed(TensorId q, TensorId k, TensorId v) const {
    const Shape s = b.shape(q), keys = b.shape(k);
    const double factor = 1 / std::sqrt(static_cast<double>(s[3]));
    const TensorId k_transposed = b.view(name + ".k.transposed", k, {s[0], s[1], s[3], keys[2]},
                                         LayoutTransform::ChannelsFirst);
    const TensorId scores =
        b.matmul(name + ".scores", b.scale(name + ".scale", q, factor), k_transposed);
    const TensorId y = b.matmul(name + ".mix", b.softmax(name + ".softmax", scores), v);
    return b.view(name + ".merge", y, {s[0], s[2], s[1] * s[3]}, LayoutTransform::MergeHeads);
  }

  TensorId operator()(TensorId x) const {
    const Shape s = b.shape(x);
    const std::int64_t width = s[2];
    const TensorId probe =
        b.concat(name + ".probe.samples", std::array{b.parameter(name + ".probe", {1, 1, width})},
                 {s[0], 1, width});
    const TensorId weight = b.parameter(name + ".in.weight", {3 * width, width});
    const TensorId bias = b.parameter(name + ".in.bias", {3 * width});
    const auto weights =
        b.split(name + ".weights", weight, {{width, width}, {2 * width, width}}, {"q", "kv"});
    const auto biases = b.split(name + ".biases", bias, {{width}, {2 * width}}, {"q", "kv"});
    const TensorId q = b.linear_with(name + ".q", probe, weights[0], biases[0]);
    // Tokens come first there, which costs a copy of what is read and one of what is made.
    const TensorId read = b.copy(name + ".tokens", x, s);
    const TensorId made = b.linear_with(name + ".kv", read, weights[1], biases[1]);
    const TensorId kv = b.copy(name + ".kv.dense", made, b.shape(made));
    const TensorId k = b.select(name + ".k", kv, s);
    const TensorId v = b.select(name + ".v", kv, s, LayoutTransform::Slice, width);
    const TensorId y =
        mixed(by_head(".q.heads", q), by_head(".k.heads", k), by_head(".v.heads", v));
    return b.linear(name + ".o", y, width);
  }
};

}  // namespace

TensorId attention_pool(TraceBuilder& b, const std::string& name, TensorId x, std::int64_t heads) {
  return Pool{b, name, heads}(x);
}

}  // namespace tidemark
