// Sizes of products by kind of op.
#include "simulator/cost/product.h"

#include <algorithm>

#include "base/error.h"
#include "traces/exchange_axis.h"

namespace tidemark {
namespace {

double elements_of(const Tensor& tensor) { return static_cast<double>(numel(tensor.shape)); }

Product linear(const Tensor& y, const Tensor& weight) {
  const double k = static_cast<double>(weight.shape.back());
  const double n = static_cast<double>(weight.shape[0]);
  return {1, elements_of(y) / std::max(n, 1.0), n, k};
}

Product batched(const Tensor& y, const Tensor& a, const Tensor& b) {
  const double m = static_cast<double>(a.shape.back(1)), k = static_cast<double>(a.shape.back());
  const double n = static_cast<double>(b.shape.back());
  return {elements_of(y) / std::max(m * n, 1.0), m, n, k};
}

Product convolution(const Tensor& y, const Tensor& filters, double groups) {
  const double channels = static_cast<double>(filters.shape[0]);
  return {groups, elements_of(y) / std::max(channels, 1.0), channels / groups,
          elements_of(filters) / std::max(channels, 1.0)};
}

// Scores and weighted sum: each query meets each key, half of them when causal. As a product with
// 128-row tiles of queries, one block per tile and head.
Product attention(const Tensor& q, const Tensor& keys, double rounds, bool is_causal) {
  const double d = std::max(1.0, static_cast<double>(q.shape.back()));
  const double met = static_cast<double>(keys.shape.back(1)) * rounds * (is_causal ? 0.5 : 1);
  return {1, elements_of(q) / d, d, 2 * met};
}

}  // namespace

Product product_of(const Trace& trace, const Op& op) {
  const auto in = [&](std::size_t i) -> const Tensor& { return trace[trace.inputs(op)[i]]; };
  const Tensor& y = trace[trace.outputs(op)[0]];
  switch (row_of(op.kind).work) {
    case Work::Linear:
      return linear(y, in(1));
    case Work::BatchedProduct:
      return batched(y, in(0), in(1));
    case Work::Convolution:
      return convolution(y, in(1), attribute(trace, op, AttributeKey::Groups, 1));
    case Work::Attention:
      return attention(in(0), in(1), rounds_of_keys(trace.step),
                       attribute(trace, op, AttributeKey::Causal) != 0);
    case Work::None:
    case Work::Elementwise:
    case Work::GatherRows:
    case Work::PickOnePerRow:
    case Work::Exchange:
    case Work::Opaque:
      break;
  }
  CHECK(is_product(row_of(op.kind).work));
  return {};
}

}  // namespace tidemark
