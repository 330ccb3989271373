// Scratch inside ops against what PyTorch 2.6 asked its allocator for, on a device of 108
// multiprocessors and compute capability 8.0.
#include "simulator/cost/scratch.h"

#include <gtest/gtest.h>

#include "simulator/allocator/allocator_calls.h"
#include "simulator/lower.h"
#include "tests/support/small_models.h"
#include "traces/trace_builder.h"

namespace tidemark::scratch_test {
namespace {

TEST(ColumnSum, StagesWhatTheAllocatorWasAskedFor) {
  const Device device = find_device("a100-80gb");
  EXPECT_EQ(column_sum_staging(665, 576, device), 0);
  EXPECT_EQ(column_sum_staging(745, 688, device), 0);
  EXPECT_EQ(column_sum_staging(2072, 500, device), 8448000);
  EXPECT_EQ(column_sum_staging(4728, 3072, device), 113246208);
  EXPECT_EQ(column_sum_staging(8190, 4096, device), 113246208);
  EXPECT_EQ(column_sum_staging(8192, 768, device), 50331648);
  EXPECT_EQ(column_sum_staging(8192, 770, device), 12615680);  // 770 is even, no more
}

/// What the only op of `kind` takes in this pass, in all.
std::int64_t scratch_in(Task task, const Trace& trace, OpKind kind,
                        const Device& device = find_device("a100-80gb")) {
  const Schedule schedule = lower(trace, keep_everything(trace));
  std::int64_t sum = 0;
  for (const Step& step : schedule.steps) {
    const auto* run = std::get_if<Run>(&step);
    if (!run || run->task != task || trace[run->op].kind != kind) continue;
    const Scratch scratch = scratch_of(trace, schedule, *run, device);
    for (const Bytes request : scratch.requests()) sum += request.count;
  }
  return sum;
}

std::int64_t backward_scratch(const Trace& trace, OpKind kind) {
  return scratch_in(Task::Backward, trace, kind);
}

// The weight's gradient is added up by columns, which counts where the tensors inside of x's
// gradient (inner_tensors.h) are not more: in a norm whose x has none.
TEST(RmsNormBackward, StagesTheSumOfItsWeightsGradient) {
  const auto scratch = [](std::string_view tuning) {
    TraceBuilder b("norm", "toy", {.precision = Precision::Fp32, .tuning = parse_tuning(tuning)});
    const TensorId x = b.linear("fc", b.input("x", {4728, 3072}, DType::Float32), 3072);
    return backward_scratch(b.finish(b.mean("loss", b.rms_norm("norm", x, 1e-6))), OpKind::RmsNorm);
  };
  EXPECT_EQ(scratch("full"), 0);
  EXPECT_EQ(scratch("frozen:norm*"), 0);
  EXPECT_EQ(scratch("frozen:fc*"), 113246208);
}

struct Heads {
  std::int64_t batch, heads, tokens, width;
};

std::int64_t attention_scratch(Precision precision, Heads of, std::int64_t key_heads,
                               bool memory_efficient) {
  TraceBuilder b("attention", "", {.precision = precision});
  const auto projected = [&](const char* name, std::int64_t heads) {
    const Shape shape = {of.batch, heads, of.tokens, of.width};
    return b.to_compute(b.parameter(name, shape));
  };
  const TensorId q = projected("q", of.heads), k = projected("k", key_heads),
                 v = projected("v", key_heads);
  const TensorId y = b.flash_attention("attention", q, k, v, true, no_tensor, 0,
                                       {.memory_efficient = memory_efficient});
  return backward_scratch(b.finish(b.mean("loss", y)), OpKind::FlashAttention);
}

// A bias over rows is summed in memory of the sum's own; one as large as the result is not summed.
TEST(BroadcastBackward, StagesTheSumOfWhatWasSpread) {
  const auto scratch = [](const Shape& bias) {
    TraceBuilder b("spread", "toy", {});
    const TensorId x = b.parameter("x", {4728, 3072});
    return backward_scratch(b.finish(b.add("add", x, b.parameter("bias", bias))), OpKind::Add);
  };
  EXPECT_EQ(scratch({3072}), column_sum_staging(4728, 3072, find_device("a100-80gb")));
  EXPECT_EQ(scratch({1, 3072}), scratch({3072}));
  EXPECT_EQ(scratch({4728, 3072}), 0);
  EXPECT_EQ(scratch({4728, 1}), 0);  // not over leading axes
}

TEST(FlashBackward, AddsUpQueriesInFp32AndExpandsGroupedHeads) {
  EXPECT_EQ(attention_scratch(Precision::Bf16, {2, 3, 133, 80}, 3, false), 6144 + 589824);
  EXPECT_EQ(attention_scratch(Precision::Bf16, {1, 2, 300, 160}, 2, false), 3072 + 491520);
  EXPECT_EQ(attention_scratch(Precision::Bf16, {2, 6, 133, 64}, 2, false),
            12288 + 786432 + 2 * 204288);
}

TEST(MemoryEfficientBackward, HasATileAndALockForEveryQuarter) {
  EXPECT_EQ(attention_scratch(Precision::Bf16, {2, 3, 300, 64}, 3, true), 7200 + 492000);
  EXPECT_EQ(attention_scratch(Precision::Bf16, {2, 3, 133, 96}, 3, true), 3192 + 786624);
  EXPECT_EQ(attention_scratch(Precision::Bf16, {1, 2, 300, 160}, 2, true), 2400 + 1900832);
  EXPECT_EQ(attention_scratch(Precision::Bf16, {1, 2, 300, 256}, 2, true), 2400 + 2097536);
  EXPECT_EQ(attention_scratch(Precision::Fp32, {2, 3, 300, 128}, 3, true), 7200 + 1180224);
  EXPECT_EQ(attention_scratch(Precision::Fp32, {1, 2, 300, 160}, 2, true), 2400 + 590112);
}

TEST(EmbeddingBackward, SortsManyIndicesAndSumsSegments) {
  const auto scratch = [](std::int64_t indices, std::int64_t words, std::int64_t width) {
    TraceBuilder b("embedding", "", {.precision = Precision::Bf16});
    const TensorId ids = b.input("ids", {1, indices}, DType::Int64, fill::Words{});
    const TensorId y = b.embedding("embed", ids, b.parameter("table", {words, width}));
    return backward_scratch(b.finish(b.mean("loss", y)), OpKind::Embedding);
  };
  EXPECT_EQ(scratch(3072, 2111, 192), 0);
  EXPECT_EQ(scratch(4000, 2111, 192), 3 * 32000 + 2 * 16888 + 20088 + 1928448);
  EXPECT_EQ(scratch(8192, 50257, 768), 5 * 65536 + 72088 + 27681792);
}

// Asked of PyTorch 2.6 and 2.15 by the stand-in for the CUDA runtime, per compute capability.
TEST(BlasWorkspace, IsLargeOnHopperAndInLaterVersionsOnBlackwell) {
  const Framework &kept = find_framework("transformers-4.57"),
                  &per_call = find_framework("transformers-5");
  Device device = find_device("a100-80gb");
  const auto both = [&](const char* capability) {
    device.compute_capability = capability;
    return std::pair(blas_workspace(kept, device).count, blas_workspace(per_call, device).count);
  };
  EXPECT_EQ(both("7.5"), std::pair(8'519'680L, 8'519'680L));
  EXPECT_EQ(both("8.0"), std::pair(8'519'680L, 8'519'680L));
  EXPECT_EQ(both("9.0"), std::pair(33'554'432L, 33'554'432L));
  EXPECT_EQ(both("10.0"), std::pair(8'519'680L, 33'554'432L));
  EXPECT_EQ(both("12.0"), std::pair(8'519'680L, 33'554'432L));
}

TEST(BlasWorkspace, IsScratchOfEachProductWhereItDoesNotStay) {
  const auto scratch = [](const char* framework, Task task, bool bias, std::int64_t rows) {
    TraceBuilder b("linear", "", {.framework = framework});
    const TensorId x = b.to_compute(b.parameter("x", {rows, 768}));
    return scratch_in(task, b.finish(b.mean("loss", b.linear("fc", x, 3072, bias))),
                      OpKind::Linear);
  };
  constexpr std::int64_t of_lt = 1024 * 1024, of_blas = 8'519'680, of_sum = 113'246'208;
  EXPECT_EQ(scratch("transformers-4.57", Task::Forward, false, 64), 0);
  EXPECT_EQ(scratch("transformers-5", Task::Forward, false, 64), of_blas);
  EXPECT_EQ(scratch("transformers-5", Task::Forward, true, 64), of_lt);
  EXPECT_EQ(scratch("transformers-4.57", Task::Backward, true, 64), 0);
  EXPECT_EQ(scratch("transformers-5", Task::Backward, true, 64), of_blas);
  // The products and the bias's sum come one after the other.
  EXPECT_EQ(scratch("transformers-5", Task::Backward, true, 4728), of_sum);
}

TEST(Scratch, IsNothingOnAProcessor) {
  Device processor = find_device("a100-80gb");
  processor.compute_capability.clear();
  TraceBuilder b("linear", "", {});
  const TensorId x = b.input("x", {4728, 768}, DType::Float32);
  const Trace trace = b.finish(b.mean("loss", b.linear("fc", x, 3072)));
  const Schedule schedule = lower(trace, keep_everything(trace));
  for (const Step& step : schedule.steps) {
    const auto* run = std::get_if<tidemark::Run>(&step);
    if (run == nullptr || run->op == no_op) continue;
    EXPECT_TRUE(scratch_of(trace, schedule, *run, processor).requests().empty());
  }
  EXPECT_GT(column_sum_staging(4728, 3072, find_device("a100-80gb")), 0);
}

// One for all products, and one for each stream of a grouped one.
TEST(EngineWorkspaces, AreMoreWhereProductsOfExpertsAreGrouped) {
  const auto count = [](const Model& model) {
    return engine_workspaces(build_trace(model, {.framework = "megatron"}));
  };
  Model mixture = small_mixture();
  EXPECT_EQ(count(mixture), 5);
  std::get<DecoderConfig>(mixture.config).experts.is_grouped = false;
  EXPECT_EQ(count(mixture), 1);
  EXPECT_EQ(count(small_llama(2)), 1);
}

// 4 MiB, on Hopper 32 MiB and 1 KiB: beside what a step of one expert after the other has.
TEST(EngineWorkspaces, StayBetweenSteps) {
  Model mixture = small_mixture();
  Model one_by_one = mixture;
  std::get<DecoderConfig>(one_by_one.config).experts.is_grouped = false;
  for (const auto& [name, each] :
       {std::pair("a100-80gb", Bytes{4 << 20}), std::pair("h100", Bytes{(32 << 20) + 1024})}) {
    const Device device = find_device(name);
    const auto kept = [&](const Model& model) {
      const Trace trace = build_trace(model, {.framework = "megatron"});
      const Schedule schedule = lower(trace, keep_everything(trace));
      Bytes sum;
      for (const auto& call :
           allocator::calls_of(trace, schedule, find_framework("megatron"), device).before)
        sum += call.size;
      return sum;
    };
    EXPECT_EQ(kept(mixture) - kept(one_by_one), Bytes{4 * each.count}) << name;
  }
}

}  // namespace
}  // namespace tidemark::scratch_test
