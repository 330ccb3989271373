// Blocks that are compiled one by one: sound, between the eager code of all else, and beside
// whatever is hooked on blocks from outside.
#include <set>
#include <string>
#include <vector>

#include "analysis/saved.h"
#include "base/error.h"
#include "tests/simulator/parallel/ranks.h"
#include "traces/models/config_reader.h"

namespace tidemark::compiled_blocks_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* compiled_blocks = "torch-compile-blocks-2.6";

StepOptions step_of(Precision precision, const char* framework = compiled_blocks) {
  StepOptions step{.batch = 2, .framework = framework};
  step.precision = precision;
  return step;
}

std::string refusal_of(const Model& model, const StepOptions& step) {
  try {
    build_rank_trace(model, step);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Name and operation of what lies outside of blocks.
std::vector<std::string> eager_ops(const Trace& trace) {
  std::vector<std::string> found;
  for (const Op& op : trace.ops)
    if (op.block < 0) found.push_back(fmt::format("{} {}", op.name, operation_name(trace, op)));
  return found;
}

Bytes saved_by(const Model& model, const StepOptions& step, std::string_view strategy) {
  const PlannedStep made = planned(build_rank_trace(model, step), strategy);
  return saved_bytes(*made.trace, made.plan).unique;
}

// What ops of the block have made that is there after the forward.
std::vector<std::string> kept_of_block(const PlannedStep& step, std::int32_t block) {
  const auto derived = derived_of(step);
  std::vector<std::string> names;
  for (std::size_t t = 0; t < step.trace->tensors.size(); ++t) {
    const OpId producer = derived->needs.producer[t];
    if (producer == no_op || step.trace->ops[index(producer)].block != block) continue;
    const bool is_kept = step.plan.decisions[t].action == Action::Keep &&
                         (derived->needs.uses[t] > 0 || derived->recovery.reads_kept[t]);
    if (is_kept) names.push_back(step.trace->tensors[t].name);
  }
  return names;
}

std::multiset<std::int64_t> exchanged_buffers(const Schedule& schedule) {
  std::multiset<std::int64_t> sizes;
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.category == Category::Communication) sizes.insert(buffer.size.count);
  return sizes;
}

TEST(CompiledBlocks, AreSound) {
  for (const Model& model :
       {small_gpt2(), small_llama(), small_bert(), small_roberta(), small_vit()})
    for (const Precision precision : {Precision::Fp32, Precision::AmpBf16, Precision::Bf16})
      for (const char* tuning : {"full", "lora:r=4,targets=all,dropout=0.1", "frozen:*norm*"})
        for (const char* strategy : {"vanilla", "checkpoint", "checkpoint:op"}) {
          SCOPED_TRACE(fmt::format("{} {}", to_string(precision), tuning));
          StepOptions step = step_of(precision);
          step.tuning = parse_tuning(tuning);
          expect_sound_ranks(model, step, strategy);
        }
}

StepOptions in_eight_bits(Precision precision) {
  StepOptions step = step_of(precision);
  step.linears = CodedLinears{LinearMath::Fp8};
  step.batch = 16;  // rows in multiples of as many
  return step;
}

TEST(CompiledBlocks, InEightBitsAreSound) {
  for (const Model& model : {small_llama(), small_bert(), small_vit()})
    for (const Precision precision : {Precision::Fp32, Precision::AmpBf16, Precision::Bf16})
      for (const char* tuning : {"full", "frozen:*norm*", "frozen:embed*,blocks.0.*"})
        for (const char* strategy : {"vanilla", "checkpoint", "checkpoint:op"}) {
          SCOPED_TRACE(fmt::format("{} {}", to_string(precision), tuning));
          StepOptions step = in_eight_bits(precision);
          step.tuning = parse_tuning(tuning);
          expect_sound_ranks(model, step, strategy);
        }
}

// The product in eight bits stays as one in sixteen does, its weight's codes are made again.
TEST(CompiledBlocks, InEightBitsKeepByOpProductsWithoutCodes) {
  const PlannedStep by_op =
      planned(build_rank_trace(small_llama(), in_eight_bits(Precision::Bf16)), "checkpoint:op");
  EXPECT_THAT(
      kept_of_block(by_op, 0),
      testing::ElementsAre("blocks.0.attn.q", "blocks.0.attn.v", "blocks.0.attn.q_rope.turned",
                           "blocks.0.attn.k_rope.turned", "blocks.0.attn.flash",
                           "blocks.0.attn.flash.lse", "blocks.0.mlp.gate", "blocks.0.add2"));
  const PlannedStep vanilla =
      planned(build_rank_trace(small_llama(), in_eight_bits(Precision::Bf16)), "vanilla");
  EXPECT_THAT(kept_of_block(vanilla, 0), testing::IsSupersetOf({"blocks.0.attn.q.weight_codes",
                                                                "blocks.0.attn.q.weight_factor",
                                                                "blocks.0.mlp.down.weight_codes"}));
}

TEST(CompiledBlocks, LieBetweenEagerCode) {
  const Trace trace = build_rank_trace(small_llama(), step_of(Precision::AmpBf16));
  const Trace eager =
      build_rank_trace(small_llama(), step_of(Precision::AmpBf16, "transformers-4.57"));
  EXPECT_EQ(eager_ops(trace), eager_ops(eager));
  ASSERT_EQ(trace.blocks.size(), eager.blocks.size());
  for (std::size_t b = 0; b < trace.blocks.size(); ++b) {
    EXPECT_EQ(trace.blocks[b].name, eager.blocks[b].name);
    EXPECT_LT(index(trace.blocks[b].end) - index(trace.blocks[b].begin),
              index(eager.blocks[b].end) - index(eager.blocks[b].begin));
  }
}

// As in each: nothing of one is fused with what lies in another.
TEST(CompiledBlocks, AreAlike) {
  const Trace trace = build_rank_trace(small_gpt2(3), step_of(Precision::Bf16));
  const auto operations = [&](const Block& block) {
    std::vector<std::string_view> found;
    for (std::size_t i = index(block.begin); i < index(block.end); ++i)
      found.push_back(operation_name(trace, trace.ops[i]));
    return found;
  };
  EXPECT_EQ(operations(trace.blocks[0]), operations(trace.blocks[1]));
  EXPECT_EQ(operations(trace.blocks[1]), operations(trace.blocks[2]));
}

TEST(CompiledBlocks, KeepLessThanEagerOnes) {
  for (const Model& model : {small_gpt2(), small_llama(), small_bert(), small_vit()})
    EXPECT_LT(saved_by(model, step_of(Precision::AmpBf16), "vanilla"),
              saved_by(model, step_of(Precision::AmpBf16, "transformers-4.57"), "vanilla"));
}

// A mask that hides nothing is dropped by the eager code in front of the blocks.
TEST(CompiledBlocks, HaveNoIdleMask) {
  const Trace trace = build_rank_trace(small_llama(), step_of(Precision::Bf16));
  for (const Tensor& tensor : trace.tensors)
    EXPECT_FALSE(std::string_view(tensor.name).starts_with("attention_mask")) << tensor.name;
}

// The wrapper is a part of the graph: what is kept is what eager checkpoints keep.
TEST(CompiledBlocks, MayBeCheckpointedAsAWhole) {
  for (const char* strategy : {"checkpoint", "checkpoint:blocks"})
    for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
      const StepOptions eager = step_of(precision, "transformers-4.57");
      const Model model = small_vit();
      EXPECT_EQ(saved_by(model, step_of(precision), strategy), saved_by(model, eager, strategy));
    }
  const auto trace =
      std::make_shared<const Trace>(build_rank_trace(small_gpt2(), step_of(Precision::Bf16)));
  for (const char* strategy : {"checkpoint:selective", "checkpoint:every=2", "checkpoint+overlap",
                               "checkpoint+mesa", "offload", "approx-bp", "reversible"})
    EXPECT_THAT(plan_step(trace, parse_strategy(strategy)).refusal,
                HasSubstr("torch.compile decides what blocks keep"));
}

// Of LLaMA's block, beside what it returns: the products of q and v, what a rotation has
// swapped of q and of k, attention with its sums, and the gate's product; nothing of down, which
// the backward does not read.
TEST(CompiledBlocks, KeepByOpProductsAndCats) {
  const StepOptions step = step_of(Precision::Bf16);
  const PlannedStep by_op = planned(build_rank_trace(small_llama(), step), "checkpoint:op");
  EXPECT_THAT(
      kept_of_block(by_op, 0),
      testing::ElementsAre("blocks.0.attn.q", "blocks.0.attn.v", "blocks.0.attn.q_rope.turned",
                           "blocks.0.attn.k_rope.turned", "blocks.0.attn.flash",
                           "blocks.0.attn.flash.lse", "blocks.0.mlp.gate", "blocks.0.add2"));
}

// The policy is a part of what is compiled: a file of compiled blocks does not have their code.
TEST(CompiledBlocks, AreCheckpointedByOpWhereTheirCodeIsKnown) {
  Trace trace = build_rank_trace(small_llama(), step_of(Precision::Bf16));
  const auto known = std::make_shared<const Trace>(trace);
  EXPECT_THAT(plan_step(known, parse_strategy("checkpoint:op")).refusal, IsEmpty());
  trace.eager = {};
  const auto unknown = std::make_shared<const Trace>(trace);
  EXPECT_EQ(*unknown, *known);
  EXPECT_EQ(plan_step(unknown, parse_strategy("checkpoint:op")).refusal,
            "a trace does not say what code its blocks were compiled from, with which a policy is "
            "compiled (name the model)");
}

// A copy of another number of micro-batches keeps its number.
TEST(CompiledBlocks, AreCompiledAnewForTheStepThatIsAskedFor) {
  Trace trace = build_rank_trace(small_llama(), step_of(Precision::Bf16));
  trace.step.accumulate = MicroBatches{3};
  const PlannedStep step =
      plan_step(std::make_shared<const Trace>(trace), parse_strategy("checkpoint:op"));
  EXPECT_EQ(step.trace->step, trace.step);
}

TEST(CompiledBlocks, OnOneRankAreTheStepAlone) {
  const StepOptions alone = step_of(Precision::Bf16);
  for (const char* shard : {"ddp", "fsdp1", "fsdp2", "zero3"})
    for (const char* strategy : {"vanilla", "checkpoint"}) {
      const auto lowered = [&](const StepOptions& step) {
        return lower(planned(build_rank_trace(small_llama(), step), strategy));
      };
      const Schedule sharded = lowered(of_ranks(1, shard, alone)), whole = lowered(alone);
      EXPECT_EQ(sharded.buffers, whole.buffers) << shard << " " << strategy;
      EXPECT_EQ(live_bytes(sharded), live_bytes(whole)) << shard << " " << strategy;
    }
}

// Parameters are gathered, and gradients reduced, outside of graphs: as those of eager blocks.
TEST(CompiledBlocks, AreShardedAsEagerOnes) {
  for (const char* shard : {"ddp", "fsdp1", "fsdp2", "fsdp2:no-reshard", "zero1", "zero2"})
    for (const char* strategy : {"vanilla", "checkpoint"}) {
      SCOPED_TRACE(fmt::format("{} {}", shard, strategy));
      const auto lowered = [&](const char* framework) {
        const StepOptions step = of_ranks(4, shard, step_of(Precision::Fp32, framework));
        expect_sound_ranks(small_gpt2(), step, strategy);
        return lower(planned(build_rank_trace(small_gpt2(), step), strategy));
      };
      const Schedule compiled = lowered(compiled_blocks), eager = lowered("transformers-4.57");
      EXPECT_EQ(exchanged_buffers(compiled), exchanged_buffers(eager));
      for (const Category category : {Category::Parameter, Category::OptimizerState,
                                      Category::Gradient, Category::Communication})
        EXPECT_EQ(resting(compiled, category), resting(eager, category));
      EXPECT_LE(live_peak(compiled), live_peak(eager));
    }
}

TEST(CompiledBlocks, NeedNoMoreOnMoreRanks) {
  for (const char* shard : {"fsdp1", "fsdp2", "zero1", "zero2", "zero3"}) {
    Bytes before{std::int64_t{1} << 50};
    for (const std::int64_t ranks : {2, 4, 8, 16}) {
      const StepOptions step = of_ranks(ranks, shard, step_of(Precision::Fp32));
      const Bytes peak =
          live_peak(lower(planned(build_rank_trace(small_llama(), step), "vanilla")));
      EXPECT_LE(peak, before) << shard << " " << ranks;
      before = peak;
    }
  }
}

TEST(CompiledBlocks, OfStagesAreRefused) {
  StepOptions step = step_of(Precision::Bf16);
  step.mesh[Axis::Pipeline] = 2;
  EXPECT_THAT(refusal_of(small_llama(2), step), HasSubstr("leave pp out of --mesh"));
}

TEST(CompiledBlocks, OfTensorRanksInEightBitsAreRefused) {
  StepOptions step = in_eight_bits(Precision::Bf16);
  step.mesh[Axis::Tensor] = 2;
  EXPECT_THAT(refusal_of(small_llama(), step), HasSubstr("gather codes"));
}

// LLaMA's block in bf16, five sequences of 112 tokens on two ranks.
PlannedStep on_two_ranks(const char* strategy) {
  StepOptions step{.batch = 5, .framework = compiled_blocks};
  step.precision = Precision::Bf16;
  step.mesh[Axis::Tensor] = 2;
  step.sequence_parallel = true;
  const Model model = small_model("llama", DecoderConfig{.width = 240,
                                                         .depth = 2,
                                                         .heads = 6,
                                                         .mlp = 656,
                                                         .key_heads = 2,
                                                         .head_width = 40,
                                                         .vocabulary = 64,
                                                         .positions = 112});
  return planned(build_rank_trace(model, step), strategy);
}

/// "134400 blocks.0.add2": what a block has made that is there after the forward.
std::vector<std::string> sizes_kept(const PlannedStep& step) {
  std::vector<std::string> found;
  for (const std::string& name : kept_of_block(step, 0)) {
    const auto tensor = std::ranges::find(step.trace->tensors, name, &Tensor::name);
    found.push_back(fmt::format("{} {}", size(*tensor).count, name));
  }
  return found;
}

// Byte for byte what AOTAutograd saves of such a block that DTensor cuts (PyTorch 2.6,
// SequenceParallel and ColwiseParallel, RowwiseParallel): what was gathered stays, whole, because
// the partitioner makes no exchange again.
TEST(CompiledBlocks, OfTensorRanksKeepWhatTheyGather) {
  EXPECT_THAT(
      sizes_kept(on_two_ranks("vanilla")),
      testing::ElementsAre("1120 blocks.0.input_norm.rstd", "268800 blocks.0.input_norm.gather",
                           "44800 blocks.0.attn.v", "134400 blocks.0.attn.q_rope",
                           "44800 blocks.0.attn.k_rope", "134400 blocks.0.attn.flash",
                           "6720 blocks.0.attn.flash.lse", "134400 blocks.0.attn.o.reduce_scatter",
                           "1120 blocks.0.post_norm.rstd", "268800 blocks.0.post_norm.gather",
                           "367360 blocks.0.mlp.gate", "367360 blocks.0.mlp.up",
                           "367360 blocks.0.mlp.product", "134400 blocks.0.add2"));
}

TEST(CompiledBlocks, OfTensorRanksGatherAgainInCheckpoints) {
  EXPECT_THAT(sizes_kept(on_two_ranks("checkpoint")), testing::ElementsAre("134400 blocks.0.add2"));
  EXPECT_THAT(sizes_kept(on_two_ranks("checkpoint:op")),
              testing::ElementsAre(
                  "134400 blocks.0.attn.q", "44800 blocks.0.attn.v",
                  "134400 blocks.0.attn.q_rope.turned", "44800 blocks.0.attn.k_rope.turned",
                  "134400 blocks.0.attn.flash", "6720 blocks.0.attn.flash.lse",
                  "134400 blocks.0.attn.o.reduce_scatter", "367360 blocks.0.mlp.gate",
                  "134400 blocks.0.mlp.down.reduce_scatter", "134400 blocks.0.add2"));
}

TEST(CompiledBlocks, OfRanksThatExchangeInsideAreSound) {
  for (const Axis axis : {Axis::Tensor, Axis::Context})
    for (const bool shares_sequence : {false, true})
      for (const bool is_coded : {false, true})
        for (const char* strategy : {"vanilla", "checkpoint", "checkpoint:op"}) {
          const bool is_of_tensor = axis == Axis::Tensor;
          if ((shares_sequence && !is_of_tensor) || (is_coded && is_of_tensor)) continue;
          StepOptions step = is_coded ? in_eight_bits(Precision::Bf16) : step_of(Precision::Bf16);
          step.mesh[axis] = 2;
          step.sequence_parallel = shares_sequence;
          expect_sound_ranks(small_llama(), step, strategy);
        }
}

// As many keys and values as of all ranks are gathered once more for an attention's backward.
TEST(CompiledBlocks, OfContextRanksKeepTheirOwnKeys) {
  StepOptions step = step_of(Precision::Bf16);
  step.mesh[Axis::Context] = 2;
  const std::vector<std::string> kept =
      kept_of_block(planned(build_rank_trace(small_llama(), step), "vanilla"), 0);
  for (const std::string& name : kept) EXPECT_FALSE(name.ends_with(".gather")) << name;
}

TEST(CompiledBlocks, OfOtherFamiliesAreRefused) {
  EXPECT_THAT(refusal_of(small_swin(), step_of(Precision::Fp32)),
              HasSubstr("only of the families"));
}

}  // namespace
}  // namespace tidemark::compiled_blocks_test
