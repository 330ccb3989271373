// PEFT's target names find the linears of each family, and unknown ones list the model's own.
#include "traces/linear_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::linear_names_test {
namespace {

using testing::ElementsAre;

// The linears of the first block that have an adapter: "attn.q".
std::set<std::string> adapted(const std::string& model, const std::string& targets,
                              std::optional<BaseWeights> base = {}) {
  const std::string tuning = targets.empty() ? "lora" : "lora:targets=" + targets;
  const StepOptions step{.sequence = 16, .tuning = parse_tuning(tuning), .base = base};
  const Trace trace = build_trace(find_model(model), step);
  require_used_options(trace);
  std::set<std::string> names;
  constexpr std::string_view head = "blocks.0.", tail = ".lora_a.weight";
  for (const Tensor& tensor : trace.tensors)
    if (tensor.name.starts_with(head) && tensor.name.ends_with(tail))
      names.emplace(
          tensor.name.substr(head.size(), tensor.name.size() - head.size() - tail.size()));
  return names;
}

TEST(LinearNames, OfPeftFindTheLinearsOfLlama) {
  EXPECT_THAT(adapted("llama-7b", "q_proj,v_proj"), ElementsAre("attn.q", "attn.v"));
  EXPECT_EQ(adapted("llama-7b", "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"),
            adapted("llama-7b", "all"));
  EXPECT_EQ(adapted("llama-7b", "all-linear"), adapted("llama-7b", "all"));
}

TEST(LinearNames, OfPeftFindTheLinearsOfLaterFamilies) {
  EXPECT_THAT(adapted("falcon-7b", "query_key_value,dense"), ElementsAre("attn.o", "attn.qkv"));
  EXPECT_THAT(adapted("modernbert-base", "Wqkv,Wo"), ElementsAre("attn.o", "attn.qkv", "mlp.down"));
  EXPECT_THAT(adapted("clip-vit-b-32-vision", "q_proj"), ElementsAre("attn.q"));
  EXPECT_THAT(adapted("deberta-v3-base", "query_proj,value_proj"), ElementsAre("attn.q", "attn.v"));
  EXPECT_THAT(adapted("beit-base", "query,dense"),
              ElementsAre("attn.proj", "attn.q", "fc1", "fc2"));
}

TEST(LinearNames, OfPeftFindTheLinearsOfGpt2) {
  EXPECT_THAT(adapted("gpt2", "c_attn"), ElementsAre("attn.qkv"));
  EXPECT_THAT(adapted("gpt2", "c_proj"), ElementsAre("attn.proj", "mlp.fc2"));
  EXPECT_THAT(adapted("gpt2", "c_fc"), ElementsAre("mlp.fc1"));
}

TEST(LinearNames, OfPeftFindTheLinearsOfBert) {
  EXPECT_THAT(adapted("bert-base", "query,key,value"), ElementsAre("attn.k", "attn.q", "attn.v"));
  EXPECT_THAT(adapted("bert-base", "dense"), ElementsAre("attn.dense", "mlp.fc1", "mlp.fc2"));
}

// "dense" is the attention's there; the MLP's have names that only begin so.
TEST(LinearNames, OfPeftFindTheLinearsOfGptNeox) {
  EXPECT_THAT(adapted("pythia-1.4b", "dense"), ElementsAre("attn.o"));
  EXPECT_THAT(adapted("pythia-1.4b", "query_key_value,dense_h_to_4h"),
              ElementsAre("attn.qkv", "mlp.fc1"));
}

TEST(LinearNames, ThatNobodyGivesAreThoseOfTheFamily) {
  EXPECT_THAT(adapted("llama-7b", ""), ElementsAre("attn.q", "attn.v"));
  for (const char* packed : {"gpt2", "pythia-1.4b", "falcon-7b", "phi-3-mini", "modernbert-base"})
    EXPECT_THAT(adapted(packed, ""), ElementsAre("attn.qkv")) << packed;
  EXPECT_THAT(adapted("phi-2", ""), ElementsAre("attn.q", "attn.v", "mlp.fc1", "mlp.fc2"));
  EXPECT_EQ(to_text(completed(find_model("phi-2"), {.tuning = parse_tuning("lora-fa")}).tuning),
            "lora-fa:r=8,targets=q,v,fc1,fc2");
}

std::string refusal(const std::string& model, const std::string& targets,
                    std::optional<BaseWeights> base = {}) {
  try {
    adapted(model, targets, base);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// Not those of adapters that are there already, and in few bits as in many.
TEST(LinearNames, OfAnotherModelAreRefusedWithThoseOfThisOne) {
  const std::string known = "unknown linear 'c_attn' (known: q, k, v, o, gate, up, down)";
  EXPECT_EQ(refusal("llama-7b", "c_attn"), known);
  EXPECT_EQ(refusal("llama-7b", "q,c_attn"), known);
  for (const BaseWeights base : {BaseWeights::Nf4, BaseWeights::Int8, BaseWeights::Fp8})
    EXPECT_EQ(refusal("llama-7b", "q,c_attn", base), known);
  EXPECT_EQ(refusal("bert-base", "vocab_transfrom"),
            "unknown linear 'vocab_transfrom' (known: q, k, v, dense, fc1, fc2)");
}

TEST(LinearNames, ThatPeftDoesNotKnowHaveToBeGiven) {
  EXPECT_EQ(refusal("deepseek-v2-lite", ""),
            "tuning: peft takes no linears of deepseek-v2-lite by itself (name them, as in "
            "lora:r=8,targets=q,v; known: q, kv_a, kv_b, o, gate, up, down)");
}

TEST(LinearNames, OfTheHeadAreForCopies) {
  for (const char* head : {"lm_head", "embed_out"})
    EXPECT_EQ(refusal("llama-7b", head),
              "tuning: an adapter beside the head is not modelled (train a copy of it: "
              "save=lm_head)");
}

}  // namespace
}  // namespace tidemark::linear_names_test
