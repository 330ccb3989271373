// GPTs that predict further tokens (--mtp-num-layers of Megatron-LM): what they hold and keep, and
// who holds it among ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/parallel/user_buffers.h"
#include "tests/simulator/parallel/ranks.h"
#include "tests/support/all_strategies.h"
#include "traces/models/config_reader.h"
#include "traces/trace_check.h"
#include "traces/trace_json.h"

namespace tidemark::further_tokens_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t width = 64, mlp = 96, words = 256, tokens = 16;

Model gpt(std::int64_t depth, std::string_view more = "") {
  const std::string config = fmt::format(
      R"({{"model_type": "megatron-gpt", "num_layers": {}, "hidden_size": {}, "vocab_size": {},
          "num_attention_heads": 4, "ffn_hidden_size": {}, "max_position_embeddings": {},
          "add_bias_linear": false, "normalization": "RMSNorm", "position_embedding_type": "rope",
          "untie_embeddings_and_output_weights": true, "attention_dropout": 0, "hidden_dropout": 0
          {}}})",
      depth, width, words, mlp, tokens, more);
  return small_model("small-gpt", read_model_config(config, "config.json").config);
}

constexpr std::string_view one_ahead = R"(, "mtp_num_layers": 1)";
constexpr std::string_view two_ahead = R"(, "mtp_num_layers": 2)";
constexpr std::string_view two_repeated =
    R"(, "mtp_num_layers": 2, "mtp_use_repeated_layer": true)";
constexpr std::string_view of_experts =
    R"(, "mtp_num_layers": 1, "num_experts": 4, "moe_ffn_hidden_size": 32, "swiglu": true)";

StepOptions on(std::string_view mesh) {
  StepOptions options = of_bf16(1, "megatron");
  options.batch = 1;
  options.framework = "megatron";
  options.attention = Attention::Flash;
  options.mesh = parse_mesh(mesh);
  options.sequence_parallel = options.mesh[Axis::Tensor] > 1;
  options.accumulate = {4};
  return options;
}

Shape shape_of(const Trace& trace, std::string_view name) {
  const auto found = std::ranges::find(trace.tensors, name, &Tensor::name);
  return found == trace.tensors.end() ? Shape() : found->shape;
}

bool has_op(const Trace& trace, std::string_view name) {
  return std::ranges::find(trace.ops, name, &Op::name) != trace.ops.end();
}

constexpr std::int64_t of_block = 4 * width * width + 2 * mlp * width + 2 * width;
constexpr std::int64_t of_further = 3 * width + 2 * width * width + of_block;

// Three norms, a product of what two of them wrote, and a layer like the last: one for each token,
// or the same for all. Other frameworks leave them out.
TEST(FurtherTokensOfGpt, HaveLayersOfTheirOwnUnlessTheyAreRepeated) {
  const auto parameters = [](std::string_view more) {
    return parameters_of(build_trace(gpt(2, more), on("dp=1")));
  };
  const std::int64_t without = parameters("");
  EXPECT_EQ(without, 2 * words * width + width + 2 * of_block);
  EXPECT_EQ(parameters(one_ahead), without + of_further);
  EXPECT_EQ(parameters(two_ahead), without + 2 * of_further);
  EXPECT_EQ(parameters(two_repeated), without + of_further);
  EXPECT_EQ(build_trace(gpt(2, two_ahead), {}), build_trace(gpt(2), {}));
}

// In 16 bits the word, what was read, both joined, what the last norm reads, and its row of what
// all heads read; in fp32 three norms' 1/rms and probabilities of all words; and what the layer
// keeps.
TEST(FurtherTokensOfGpt, KeepWhatTheirLayerAndTheirLossKeep) {
  const auto kept = [](std::int64_t depth, std::string_view more) {
    return kept_at_the_loss(gpt(depth, more), on("dp=1"));
  };
  const std::int64_t block = kept(3, "") - kept(2, "");
  const std::int64_t loss = tokens * (4 * words + 1 + 8);
  for (const std::string_view more : {two_ahead, two_repeated})
    EXPECT_EQ(kept(2, more) - kept(2, one_ahead),
              block + 2 * tokens * 6 * width + 3 * 4 * tokens + loss);
}

// The last block may be of another kind than those before.
TEST(FurtherTokensOfGpt, HaveExpertsIfTheLastBlockHas) {
  const auto router = [](std::string_view frequency) {
    const std::string more = fmt::format("{}, \"moe_layer_freq\": {}", of_experts, frequency);
    const Trace trace = build_trace(gpt(3, more), on("dp=1"));
    std::vector<bool> has;
    for (const char* name : {"blocks.0", "blocks.1", "blocks.2", "mtp1.blocks.0"})
      has.push_back(shape_of(trace, fmt::format("{}.mlp.router.weight", name)).rank() > 0);
    return has;
  };
  using Expected = std::vector<bool>;
  EXPECT_EQ(router("1"), Expected({true, true, true, true}));
  EXPECT_EQ(router("2"), Expected({true, false, true, true}));
  EXPECT_EQ(router("[0, 1, 1]"), Expected({false, true, true, true}));
  EXPECT_EQ(router("[1, 1, 0]"), Expected({true, true, false, false}));
}

// eh_proj has some columns of each rank, whose results are gathered and dealt out again.
TEST(FurtherTokensOfGpt, AreSharedByTensorRanks) {
  const Trace trace = build_rank_trace(gpt(2, two_ahead), on("tp=2"));
  for (const int number : {1, 2}) {
    const std::string name = fmt::format("mtp{}.", number);
    const std::string made = fmt::format("ahead{}.{}", number, name);
    EXPECT_EQ(shape_of(trace, name + "eh_proj.weight"), Shape({width / 2, 2 * width}));
    EXPECT_EQ(shape_of(trace, made + "join"), Shape({1, tokens / 2, 2 * width}));
    EXPECT_EQ(shape_of(trace, made + "eh_proj"), Shape({1, tokens, width / 2}));
    EXPECT_EQ(shape_of(trace, made + "eh_proj.gather"), Shape({1, tokens, width}));
    EXPECT_EQ(shape_of(trace, made + "eh_proj.scatter"), Shape({1, tokens / 2, width}));
    EXPECT_EQ(shape_of(trace, made + "blocks.0.attn.qkv"), Shape({1, tokens, 3 * width / 2}));
    EXPECT_EQ(shape_of(trace, made + "norm"), Shape({1, tokens / 2, width}));
    EXPECT_EQ(shape_of(trace, fmt::format("ahead{}.lm_head", number)),
              Shape({1, tokens, words / 2}));
  }
}

// Transformer Engine has no buffer of that name, but those of the layer.
TEST(FurtherTokensOfGpt, GatherColumnsBesideNothing) {
  StepOptions options = on("tp=2");
  options.tp_overlap = true;
  const Trace trace = build_rank_trace(gpt(2, one_ahead), options);
  std::vector<std::string> beside;
  for (const std::vector<OpId>& products : products_beside_exchanges(trace))
    for (const OpId product : products)
      if (const std::string_view name = trace[product].name; name.starts_with("ahead1."))
        beside.emplace_back(name);
  EXPECT_THAT(beside,
              testing::ElementsAre("ahead1.mtp1.blocks.0.attn.qkv", "ahead1.mtp1.blocks.0.attn.o",
                                   "ahead1.mtp1.blocks.0.mlp.fc1", "ahead1.mtp1.blocks.0.mlp.fc2"));
}

// … in the precision of other blocks, which four bits are left out of.
TEST(FurtherTokensOfGpt, MultiplyCodesOfEightBits) {
  const auto kind = [](LinearMath math, std::string_view name, std::int64_t last = 0) {
    StepOptions options = on("tp=2");
    options.linears = CodedLinears{.math = math, .last = last};
    const Trace trace = build_rank_trace(gpt(2, one_ahead), options);
    return std::ranges::find(trace.ops, name, &Op::name)->kind;
  };
  for (const char* product : {"ahead1.mtp1.eh_proj", "ahead1.mtp1.blocks.0.mlp.fc1"}) {
    EXPECT_EQ(kind(LinearMath::Fp8, product), OpKind::Opaque) << product;
    EXPECT_EQ(kind(LinearMath::Fp8, product, 1), OpKind::Opaque) << product;
    EXPECT_EQ(kind(LinearMath::NvFp4, product), OpKind::Linear) << product;
  }
  EXPECT_EQ(kind(LinearMath::Fp8, "blocks.1.mlp.fc1", 1), OpKind::Linear);
  EXPECT_EQ(kind(LinearMath::NvFp4, "blocks.0.mlp.fc1"), OpKind::Opaque);
}

// The last stage has them, with a table of words of its own; stages deal out the other blocks.
TEST(FurtherTokensOfGpt, StandOnTheLastStage) {
  for (const char* schedule : {"1f1b", "interleaved:v=2", "interleaved:v=2,blocks=1-1-2-0"}) {
    StepOptions options = on("pp=2");
    options.schedule = parse_schedule(schedule);
    const auto stage = [&](std::int64_t number) {
      options.rank = RankClass{number};
      return build_rank_trace(gpt(4, two_ahead), options);
    };
    const Trace first = stage(0), last = stage(1);
    EXPECT_EQ(first.blocks.size() + last.blocks.size(), 6u) << schedule;
    EXPECT_EQ(shared_blocks(first), first.blocks.size());
    EXPECT_EQ(shared_blocks(last) + 2, last.blocks.size());
    EXPECT_EQ(shape_of(first, "mtp1.eh_proj.weight"), Shape());
    EXPECT_EQ(shape_of(last, "mtp2.eh_proj.weight"), Shape({width, 2 * width}));
    EXPECT_TRUE(has_op(first, "embed"));
    EXPECT_FALSE(has_op(last, "embed"));
    EXPECT_TRUE(has_op(last, "ahead1.embed"));
    EXPECT_TRUE(has_op(last, "ahead2.lm_head"));
    EXPECT_EQ(parameters_of(first) + parameters_of(last),
              parameters_of(build_trace(gpt(4, two_ahead), on("dp=1"))) + words * width);
    for (std::int64_t number : {0, 1}) {
      options.rank = RankClass{number};
      expect_sound_ranks(gpt(4, two_ahead), options, "checkpoint");
    }
  }
}

TEST(FurtherTokensOfGpt, WithEveryStrategyAreSound) {
  for (const char* strategy : all_strategies)
    for (const std::string_view more : {two_ahead, two_repeated, of_experts}) {
      expect_sound_ranks(gpt(2, more), on("dp=2,tp=2"), strategy);
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(FurtherTokensOfGpt, AreSoundOnEveryAxis) {
  for (const char* mesh : {"dp=2,ep=2", "cp=2", "cp=2,tp=2", "pp=2,tp=2,ep=2,etp=1", "pp=2,cp=2"})
    for (const char* strategy : {"vanilla", "checkpoint", "checkpoint:selective"}) {
      StepOptions options = on(mesh);
      options.rank = RankClass{options.mesh[Axis::Pipeline] - 1};
      expect_sound_ranks(gpt(2, of_experts), options, strategy);
      if (testing::Test::HasFatalFailure()) return;
    }
}

// Megatron-LM's checkpoint wraps all of it but the word, which it reads.
TEST(FurtherTokensOfGpt, AreOneBlockForCheckpoints) {
  StepOptions options = on("dp=1");
  const auto kept = [&](std::string_view more) {
    return kept_at_the_loss(gpt(2, more), options, "checkpoint");
  };
  const std::int64_t loss = tokens * (4 * words + 1 + 8);
  EXPECT_EQ(kept(two_ahead) - kept(one_ahead), 2 * tokens * 3 * width + loss);
}

TEST(FurtherTokensOfGpt, AreWrittenAndRead) {
  Trace trace = build_trace(gpt(2, two_ahead), on("dp=1"));
  EXPECT_EQ(read_trace(write_trace(trace), "trace.json"), trace);
  EXPECT_THAT(check(trace), IsEmpty());
  trace.blocks[3].is_further = false;
  EXPECT_THAT(check(trace),
              testing::ElementsAre("/blocks/3/is_further: 'ahead1.mtp1' predicts a further token; "
                                   "need that of all blocks behind it"));
}

}  // namespace
}  // namespace tidemark::further_tokens_test
