// torchtitan's LLaMA: what its attention is made of, and what it has none of. Against PyTorch's own
// allocator in tests/analysis/titan_steps_test.cpp.
#include "traces/models/titan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/presets.h"

namespace tidemark::titan_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

StepOptions titan_step(std::string_view framework = "torchtitan") {
  return {.batch = 2,
          .sequence = 16,
          .precision = Precision::Bf16,
          .framework = std::string(framework)};
}

std::vector<std::string> attention_ops(const char* model) {
  const Trace trace = build_trace(find_model(model), titan_step());
  std::vector<std::string> found;
  for (const Op& op : trace.ops)
    if (constexpr std::string_view in = "blocks.0.attn.";
        std::string_view(op.name).starts_with(in) && op.kind != OpKind::Linear)
      found.push_back(std::string(std::string_view(op.name).substr(in.size())) + " " +
                      std::string(operation_name(trace, op)));
  return found;
}

// What is turned and repeated lies by token, and so does what flash writes: no copy behind it.
TEST(Titan, TurnsHeadsAsComplexNumbersAndRepeatsThem) {
  EXPECT_THAT(attention_ops("llama-3-8b"),
              ElementsAre("q.heads view", "k.heads view", "v.heads view", "q.float cast",
                          "k.float cast", "q_rope aten::mul", "k_rope aten::mul", "q.round cast",
                          "k.round cast", "k.repeat repeat_heads", "v.repeat repeat_heads",
                          "flash flash_attention", "merge view"));
  EXPECT_THAT(attention_ops("llama-7b"),
              ElementsAre("q.heads view", "k.heads view", "v.heads view", "q.float cast",
                          "k.float cast", "q_rope aten::mul", "k_rope aten::mul", "q.round cast",
                          "k.round cast", "flash flash_attention", "merge view"));
}

TEST(Titan, HasATableOfBothWavesAndUnshiftedLabels) {
  const Trace trace = build_trace(find_model("llama-3-8b"), titan_step());
  std::vector<std::string> inputs;
  for (const Tensor& tensor : trace.tensors)
    if (tensor.category == Category::Input && trace[tensor.storage] == tensor)
      inputs.push_back(std::string(tensor.name) + " " + to_text(tensor.shape));
  EXPECT_THAT(inputs, ElementsAre("input_ids [2, 16]", "rope.waves [16, 128]", "labels [2, 16]"));
}

// … also where stages are made of the trace.
TEST(Titan, RefusesItWhereverATraceIsBuilt) {
  StepOptions step = titan_step();
  EXPECT_THROW(build_trace(find_model("gpt2"), step), UsageError);
  step.dropout = 0.1;
  EXPECT_THROW(build_trace(find_model("llama-3-8b"), step), UsageError);
}

TEST(Titan, SaysWhatItHasNot) {
  const Model llama = find_model("llama-3-8b");
  EXPECT_THAT(titan_defect(llama, titan_step()), IsEmpty());
  EXPECT_THAT(titan_defect(find_model("llama-3-70b"), titan_step()), IsEmpty());
  for (const char* other : {"gpt2", "bert-base", "qwen2-7b", "mistral-7b", "llama-3.2-1b"})
    EXPECT_THAT(titan_defect(find_model(other), titan_step()), HasSubstr("LLaMA 3 alone")) << other;
  const auto with = [&](auto change) {
    StepOptions step = titan_step();
    change(step);
    return titan_defect(llama, step);
  };
  EXPECT_THAT(with([](StepOptions& s) { s.head = Head::SequenceClassification; }),
              HasSubstr("--head"));
  EXPECT_THAT(with([](StepOptions& s) { s.tuning = parse_tuning("lora:r=4,targets=q"); }),
              HasSubstr("--tuning"));
  EXPECT_THAT(with([](StepOptions& s) { s.attention = Attention::Math; }),
              HasSubstr("--attention"));
  EXPECT_THAT(with([](StepOptions& s) { s.dropout = 0.1; }), HasSubstr("--dropout"));
  EXPECT_THAT(with([](StepOptions& s) { s.dropout = 0; }), IsEmpty());
  EXPECT_THAT(with([](StepOptions& s) { s.padded = true; }), HasSubstr("--padded"));
  EXPECT_THAT(with([](StepOptions& s) { s.liger = true; }), HasSubstr("--liger"));
  EXPECT_THAT(with([](StepOptions& s) { s.loss = parse_token_loss("chunked:2"); }),
              HasSubstr("--loss"));
}

}  // namespace
}  // namespace tidemark::titan_test
