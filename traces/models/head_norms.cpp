// One norm for all heads is one op over their last axis; one norm each, as
// StableLmLayerNormPerHead of transformers writes them, takes the heads apart.
#include "traces/models/head_norms.h"

#include <fmt/format.h>

#include "traces/models/composed_norm.h"
#include "traces/pieces.h"

namespace tidemark {
namespace {

TensorId layer_norm_each(TraceBuilder& b, const std::string& name, TensorId heads, double epsilon) {
  constexpr std::size_t axis = 1;
  std::vector<TensorId> pieces = cut(b, name + ".split", heads, axis, b.shape(heads)[axis]);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    pieces[i] = b.layer_norm(fmt::format("{}.norms.{}", name, i), pieces[i], epsilon, false);
  return join(b, name + ".join", pieces, axis);
}

}  // namespace

TensorId normed_heads(TraceBuilder& b, const std::string& name, TensorId heads,
                      const AttentionConfig& config) {
  switch (config.head_norm) {
    case HeadNorm::PerHead:
      return b.rms_norm(name, heads, config.head_norm_epsilon, config.head_gain);
    case HeadNorm::LayerPerHead:
      return b.layer_norm(name, heads, config.head_norm_epsilon);
    case HeadNorm::LayerOfEachHead:
      return layer_norm_each(b, name, heads, config.head_norm_epsilon);
    case HeadNorm::LayerComposed:
      return composed_layer_norm(b, name, heads, {b.shape(heads)[1], b.shape(heads)[3]});
    case HeadNorm::None:
    case HeadNorm::WholeWidth:  // before they are split
      break;
  }
  return heads;
}

}  // namespace tidemark
