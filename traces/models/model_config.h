// What a model is, one plain struct per family: the fields of its config file, in our words.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "traces/models/attention.h"
#include "traces/trace.h"

namespace tidemark {

/// Vision transformer, pre-norm (arXiv 2010.11929); DeiT (arXiv 2012.12877) is the same network.
struct VitConfig {
  std::int64_t image = 224, patch = 16, channels = 3;
  std::int64_t width = 768, depth = 12, heads = 12, mlp = 3072;
  std::int64_t classes = 1000;
  std::int64_t prefix_tokens = 1;  ///< class token, and DeiT's distillation token
  bool qkv_bias = true;
  double epsilon = 1e-6;
  double dropout = 0, attention_dropout = 0, drop_path = 0;
  bool packed_qkv = true;
  Unpacking unpacking = Unpacking::Split;
  bool scales_query = true;
  bool ema = false;  ///< the published recipe keeps a moving average of the weights

  bool operator==(const VitConfig&) const = default;
};

Trace build_vit(const std::string& model, const VitConfig& config, const StepOptions& options);

}  // namespace tidemark
