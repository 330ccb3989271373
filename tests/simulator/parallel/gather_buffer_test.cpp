// The memory that Megatron-LM's own linears gather a sequence in, and who has none.
#include "simulator/parallel/gather_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulator/parallel/ranks.h"
#include "tests/simulator/parallel/small_megatron.h"

namespace tidemark::gather_buffer_test {
namespace {

constexpr std::int64_t h = 64, s = 32, b = 3;

StepOptions asked() {
  StepOptions options{.batch = b, .precision = Precision::Bf16, .framework = "megatron"};
  options.shard = parse_sharding("megatron");
  options.mesh[Axis::Tensor] = 2;
  options.sequence_parallel = true;
  return options;
}

/// Of values that lie in memory that stays and that no parameter or input has.
std::vector<std::string> kept_names(const Trace& trace) {
  std::vector<std::string> names;
  for (const Buffer& buffer : lower(planned(trace, "vanilla")).buffers)
    if (buffer.persistent && buffer.category == Category::Workspace)
      names.emplace_back(trace[buffer.tensor].name);
  return names;
}

// core/tensor_parallel/layers.py: all tokens of the sequences, in the dtype of what is gathered.
TEST(GatherBuffer, IsWhereTheHeadsSequenceLies) {
  for (const char* framework : {"megatron", "megatron-local"}) {
    StepOptions options = asked();
    options.framework = framework;
    const Trace trace = build_rank_trace(small_megatron(2), options);
    EXPECT_THAT(kept_names(trace), testing::ElementsAre("norm.gather")) << framework;
    const Schedule schedule = lower(planned(trace, "vanilla"));
    EXPECT_EQ(resting(schedule, Category::Workspace), 2 * b * s * h);
    const TensorId gathered = gathered_in_place(trace);
    EXPECT_EQ(std::ranges::count_if(schedule.buffers,
                                    [&](const Buffer& buffer) {
                                      return buffer.tensor == gathered &&
                                             buffer.role == Role::Value;
                                    }),
              1);
  }
}

TEST(GatherBuffer, IsNotOfSequencesThatAreWholeOrGatheredByOthers) {
  StepOptions options = asked();
  options.sequence_parallel = false;
  EXPECT_EQ(gathered_in_place(build_rank_trace(small_megatron(2), options)), no_tensor);
  options = asked();
  options.framework = default_framework;
  options.shard = {};
  EXPECT_EQ(gathered_in_place(build_rank_trace(small_llama(), options)), no_tensor);
}

TEST(GatherBuffer, IsOfTheStageThatHasTheHeadOrLinearsOfItsOwn) {
  for (const char* framework : {"megatron", "megatron-local"})
    for (const std::int64_t stage : {0, 1}) {
      StepOptions options = asked();
      options.framework = framework;
      options.mesh[Axis::Pipeline] = 2;
      options.accumulate = {2};
      options.rank = RankClass{stage};
      const bool has_own = stage == 1 || options.framework == "megatron-local";
      EXPECT_EQ(kept_names(build_rank_trace(small_megatron(2), options)).size(), has_own ? 1 : 0)
          << framework << stage;
    }
}

// Whoever multiplies for a weight later would read what another micro-batch has gathered since.
TEST(GatherBuffer, IsSoundWithEverySchedule) {
  for (const char* framework : {"megatron", "megatron-local"})
    for (const char* schedule : {"", "gpipe", "1f1b", "interleaved:v=2", "zb-h1", "zb-v"})
      for (const char* strategy : {"vanilla", "checkpoint", "checkpoint:selective"}) {
        StepOptions options = asked();
        options.framework = framework;
        options.accumulate = {4};
        if (const std::string text = schedule; !text.empty()) {
          options.mesh[Axis::Pipeline] = 2;
          options.schedule = parse_schedule(text);
          options.rank = RankClass{1};
        }
        expect_sound_ranks(small_megatron(4), options, strategy);
      }
}

/// How many tensors of that size come and go while the op's backward runs.
std::int64_t parts_beside(const Trace& trace, std::string_view op, std::int64_t bytes) {
  const Schedule schedule = lower(planned(trace, "vanilla"));
  for (const Step& step : schedule.steps) {
    const Run* run = std::get_if<Run>(&step);
    if (!run || run->task != Task::Backward || trace[run->op].name != op) continue;
    return std::ranges::count_if(schedule.writes(*run), [&](BufferId written) {
      return schedule[written].role == Role::Temporary && schedule[written].size == Bytes{bytes};
    });
  }
  ADD_FAILURE() << "no backward of " << op;
  return -1;
}

// … whose gradient is scattered beside the product for the weight's.
TEST(GatherBuffer, PartsOfGradientsLieBesideTheWeights) {
  constexpr std::int64_t part = 2 * b * s * h / 2;
  for (const bool has_codes : {false, true}) {
    StepOptions options = asked();
    if (has_codes) options.linears = CodedLinears{LinearMath::Fp8};
    const Trace parts = build_rank_trace(small_megatron(2), options);
    for (const char* op : {"lm_head", "blocks.1.attn.qkv", "blocks.0.mlp.gate_up"})
      EXPECT_EQ(parts_beside(parts, op, part), 1) << op << has_codes;
    for (const char* op : {"blocks.0.attn.o", "blocks.1.mlp.down"})
      EXPECT_EQ(parts_beside(parts, op, part), 0) << op << has_codes;
  }
}

TEST(GatherBuffer, OtherCodeScattersAfterThat) {
  StepOptions options = asked();
  options.framework = default_framework;
  options.shard = {};
  const Trace trace = build_rank_trace(small_llama(), options);
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::Linear) continue;
    const Bytes x = size(trace[trace.inputs(op)[0]]);
    EXPECT_EQ(parts_beside(trace, op.name, x.count / 2), 0) << std::string_view(op.name);
  }
}

}  // namespace
}  // namespace tidemark::gather_buffer_test
