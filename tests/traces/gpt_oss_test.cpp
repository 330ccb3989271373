// gpt-oss: attention with sinks, experts that are parts of one parameter, weights of four bits.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/decoder_traces.h"

namespace tidemark::gpt_oss_test {
namespace {

using namespace decoder_traces;
using testing::HasSubstr;
using testing::IsEmpty;

Model model_of(std::string_view json) { return read_model_config(json, "config.json"); }

std::string small(std::string_view own = R"("num_hidden_layers": 2)") {
  return fmt::format(R"({{"model_type": "gpt_oss", "hidden_size": 16, "vocab_size": 31,
                          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
                          "intermediate_size": 24, "num_local_experts": 4,
                          "num_experts_per_tok": 2, {}}})",
                     own);
}

std::int64_t parameters(std::string_view json) { return parameters_in(trace_of(json)); }

Shape made_by(const Trace& trace, std::string_view name) {
  return trace[trace.outputs(op_named(trace, name))[0]].shape;
}

TEST(GptOss, PublishedSizesAreReached) {
  EXPECT_EQ(parameters(R"({"model_type": "gpt_oss"})"), 116'829'156'672);
  EXPECT_EQ(
      parameters(R"({"model_type": "gpt_oss", "num_hidden_layers": 24, "num_local_experts": 32})"),
      20'914'757'184);
}

TEST(GptOss, HasTheDefaultsOfItsClass) {
  const DecoderConfig config = config_of(R"({"model_type": "gpt_oss"})");
  EXPECT_EQ(config.experts.count, 128);
  EXPECT_EQ(config.experts.per_token, 4);
  EXPECT_EQ(config.sliding_window, 128);
  EXPECT_EQ(config.global_every, 2);
  EXPECT_EQ(config.head_width, 64);
  EXPECT_TRUE(config.qkv_bias && config.out_bias);
  EXPECT_EQ(config.norm, NormForm::RmsFp32);
  EXPECT_THAT(error_of(small(R"("sliding_window": null)")), HasSubstr("/sliding_window"));
  EXPECT_THAT(error_of(small(R"("output_router_logits": true)")),
              HasSubstr("/output_router_logits"));
}

// One more column than keys; which of a row is the largest is kept, too.
TEST(GptOss, ScoresAreJoinedWithSinks) {
  const Trace trace = trace_of(small());
  EXPECT_EQ(made_by(trace, "blocks.0.attn.sinks.join"), Shape({1, 4, 16, 17}));
  EXPECT_EQ(made_by(trace, "blocks.0.attn.softmax"), Shape({1, 4, 16, 17}));
  const Op& keys = op_named(trace, "blocks.0.attn.of_keys");
  EXPECT_EQ(trace[trace[trace.outputs(keys)[0]].storage].name, "blocks.0.attn.softmax");
  const Op& lowered = op_named(trace, "blocks.0.attn.sinks.lowered");
  EXPECT_EQ(trace[trace.outputs(lowered)[1]].shape, Shape({1, 4, 16, 1}));
  EXPECT_EQ(opaque_row(trace, lowered)->saved, output_bit(1));
  const Op& turn = op_named(trace, "blocks.0.attn.q_rope");
  EXPECT_EQ(trace[trace.inputs(turn)[1]].shape, Shape({16, 4}));  // once for each pair
}

std::string refusal_of(const StepOptions& options) {
  try {
    trace_of(small(), options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(GptOss, OtherCodeThanItsOwnIsRefused) {
  for (const Attention attention : {Attention::Flash, Attention::MemoryEfficient})
    EXPECT_EQ(refusal_of({.attention = attention}),
              "--attention: network's sinks are in transformers' own attention alone (take math)");
  EXPECT_EQ(refusal_of({.framework = "megatron"}),
            "--framework megatron: clamped experts with biases, as network has them, are not known "
            "in its layers (take transformers-4.57)");
  EXPECT_THAT(refusal_of({.liger = true}), HasSubstr("its experts are not known"));
}

// GptOssTopKRouter is no nn.Linear.
TEST(GptOss, ItsRouterStaysWholeAndHasNoAdapter) {
  const Trace trace = trace_of(small(), {.precision = Precision::Bf16,
                                         .tuning = parse_tuning("lora:r=4,targets=all"),
                                         .base = BaseWeights::Nf4});
  const Op& router = op_named(trace, "blocks.0.mlp.router");
  EXPECT_EQ(router.kind, OpKind::Linear);
  EXPECT_EQ(trace[trace.inputs(router)[1]].dtype, DType::BFloat16);
  EXPECT_TRUE(std::ranges::none_of(trace.tensors, [](const Tensor& tensor) {
    return tensor.trainable && tensor.name.find("mlp") != std::string_view::npos;
  }));
}

// 16 tokens with two visits each, dealt out to four experts.
TEST(GptOss, ExpertsArePartsOfOneParameter) {
  const Trace trace = trace_of(small());
  const Op& weight = op_named(trace, "blocks.1.mlp.experts.3.gate_up.weight");
  EXPECT_EQ(weight.kind, OpKind::Select);
  EXPECT_EQ(trace[trace.inputs(weight)[0]].shape, Shape({4, 16, 48}));
  EXPECT_EQ(attribute(trace, weight, AttributeKey::Offset), 3);
  EXPECT_EQ(made_by(trace, "blocks.1.mlp.experts.3.gate_up"), Shape({8, 48}));
  EXPECT_EQ(made_by(trace, "blocks.1.mlp.experts.3.gate.clamp"), Shape({8, 24}));
  EXPECT_EQ(made_by(trace, "blocks.1.mlp.router.softmax"), Shape({16, 2}));
  EXPECT_EQ(made_by(trace, "blocks.1.mlp.router.chosen"), Shape({16, 2, 5}));
}

TEST(GptOss, Transformers5MultipliesAllVisitsAtOnce) {
  const Trace trace = trace_of(small(), {.framework = "transformers-5"});
  EXPECT_EQ(made_by(trace, "blocks.0.mlp.experts.gate_up"), Shape({32, 48}));
  EXPECT_EQ(made_by(trace, "blocks.0.mlp.experts.gate_up.biases"), Shape({32, 48}));
  EXPECT_EQ(made_by(trace, "blocks.0.mlp.experts.product"), Shape({32, 24}));
  EXPECT_EQ(made_by(trace, "blocks.0.mlp.experts.down.sum"), Shape({32, 16}));
}

// Published weights of experts have four bits; nothing trains them so.
TEST(GptOss, WeightsOfFourBitsAreMadeWhole) {
  const std::string own = R"("quantization_config": {"quant_method": "mxfp4"}, "swiglu_limit": 7)";
  const Model model = model_of(small(own));
  EXPECT_EQ(model.precision, Precision::Bf16);
  ASSERT_THAT(model.notes, testing::Contains(HasSubstr("Mxfp4Config(dequantize=True)")));
  EXPECT_EQ(model_of(small()).precision, std::nullopt);
  EXPECT_THAT(error_of(small(R"("quantization_config": {"quant_method": "gptq"})")),
              HasSubstr("/quantization_config"));
  EXPECT_THAT(error_of(R"({"model_type": "llama",
                           "quantization_config": {"quant_method": "mxfp4"}})"),
              HasSubstr("/quantization_config"));
}

// Keys of the published files.
TEST(GptOss, ReadsWhatItsFilesSay) {
  EXPECT_THAT(model_of(small(R"("num_hidden_layers": 2, "experts_per_token": 4,
                                "initial_context_length": 4096, "swiglu_limit": 7.0,
                                "layer_types": ["sliding_attention", "full_attention"],
                                "rope_scaling": {"rope_type": "yarn", "factor": 32.0,
                                "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
                                "original_max_position_embeddings": 4096})"))
                  .notes,
              IsEmpty());
}

}  // namespace
}  // namespace tidemark::gpt_oss_test
