// The pre-norm block of vision transformers, op by op, as timm and transformers write it.
#include "traces/models/vit_block.h"

#include "traces/models/decoder_parts.h"

namespace tidemark {
namespace {

// Hugging Face's ViT and its like called the half as two modules, the first of which ended with the
// activation: by then nobody named what it read, and what it gave until the layer returned.
// DINOv2's, timm's and those of today are one.
TensorId half_of_mlp(TraceBuilder& b, const std::string& name, TensorId x, const VitConfig& config,
                     double dropout) {
  const MlpForm gated = b.framework().packs_vision_gate ? MlpForm::GatedPacked : MlpForm::Gated;
  if (config.gated_mlp) return mlp(b, name, x, {.form = gated, .width = config.mlp, .bias = true});
  const bool is_one = config.packed_qkv || config.layer_scale || b.framework().one_hidden_name;
  b.begin_function();
  TensorId y = b.linear(name + ".fc1", b.local(x), config.mlp);
  y = activation(b, name, y, config.activation);
  if (!is_one) {
    b.local_of_caller(y);
    b.end_function();
  }
  y = b.dropout(name + ".drop1", y, config.drops_hidden ? dropout : 0);
  y = b.linear(name + ".fc2", y, config.width);
  if (is_one) b.end_function();
  return b.dropout(name + ".drop2", y, dropout);
}

TensorId scaled(TraceBuilder& b, const std::string& name, TensorId x, const VitConfig& config) {
  return config.layer_scale ? b.mul(name, x, b.parameter(name + ".weight", {config.width})) : x;
}

// Hugging Face's layers have names for what they norm first and for what the attention gives, so
// both stay until the layer returns; or one name for all, so each stays until the next is made.
enum class Names : std::uint8_t { None, One, Each };

Names names_of(const TraceBuilder& b, const VitConfig& config) {
  if (config.packed_qkv) return Names::None;
  return b.framework().one_hidden_name ? Names::One : Names::Each;
}

}  // namespace

TensorId vit_block(TraceBuilder& b, const std::string& name, TensorId x, const VitConfig& config,
                   double drop_path, int stack) {
  const double dropout = b.dropout_probability(config.dropout);
  b.begin_block(name, x, stack);
  b.part(Part::F);
  b.begin_function();
  const Names names = names_of(b, config);
  TensorId y = b.layer_norm(name + ".norm1", x, config.epsilon);
  if (names == Names::One) b.begin_function();
  if (names != Names::None) b.local(y);
  const bool in_fp32 =
      config.softmax_in_fp32 || (b.framework().vision_softmax_fp32 && !config.packed_qkv);
  y = self_attention(b, name + ".attn", y,
                     {.heads = config.heads,
                      .packed = config.packed_qkv,
                      .unpacking = config.unpacking,
                      .scales_query = config.scales_query,
                      .qkv_bias = config.qkv_bias,
                      .softmax_in_fp32 = in_fp32,
                      .probabilities_as_query = in_fp32,
                      .dropout = b.dropout_probability(config.attention_dropout),
                      .by_shared_code = !config.packed_qkv});
  if (names == Names::One) b.end_function();
  y = b.dropout(name + ".drop", y, dropout);
  y = scaled(b, name + ".scale1", y, config);
  if (names == Names::Each) b.local(y);
  y = b.drop_path(name + ".drop_path1", y, drop_path);
  x = b.residual(name + ".add1", x, y);
  b.part(Part::G);
  y = b.layer_norm(name + ".norm2", x, config.epsilon);
  y = half_of_mlp(b, name + ".mlp", y, config, dropout);
  y = scaled(b, name + ".scale2", y, config);
  y = b.drop_path(name + ".drop_path2", y, drop_path);
  x = b.residual(name + ".add2", x, y);
  b.end_function();
  b.end_block();
  return x;
}

TensorId all_samples(TraceBuilder& b, const std::string& name, TensorId x) {
  return b.select(name + ".samples", x, b.shape(x));
}

double depth_rate(double last, std::int64_t block, std::int64_t depth) {
  return depth < 2 ? 0 : last * static_cast<double>(block) / static_cast<double>(depth - 1);
}

}  // namespace tidemark
