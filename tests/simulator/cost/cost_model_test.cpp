// Costs on a toy device follow by hand from tiles, streamed bytes, gaps and measured curves.
#include "simulator/cost/cost_model.h"

#include <gtest/gtest.h>

#include "simulator/lower.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/chain.h"
#include "tests/simulator/cost/toy_device.h"
#include "tests/simulator/hand_made.h"
#include "tests/support/small_models.h"
#include "tests/traces/small_trace.h"
#include "traces/presets.h"

namespace tidemark::cost_model_test {
namespace {

/// y = x · wᵀ for x [m, k] and w [n, k].
Trace product(std::int64_t m, std::int64_t n, std::int64_t k) {
  TraceBuilder b("product", "toy", {.precision = Precision::Fp32});
  const TensorId x = b.linear("in", b.input("in.x", {m, 1}, DType::Float32), k, false);
  const TensorId y = b.linear("fc", x, n, false);
  return b.finish(b.cross_entropy("loss", y, b.input("targets", {m}, DType::Int64)));
}

Cost cost_of(const Trace& trace, Task task, std::string_view op, const Device& device,
             std::string_view strategy = "vanilla") {
  const PlannedStep step =
      plan_step(std::make_shared<const Trace>(trace), parse_strategy(strategy));
  const Schedule schedule = lower(trace, step.plan);
  for (const auto& run : runs_of(schedule))
    if (run.task == task && (run.op == no_op || trace[run.op].name == op))
      return CostModel(trace, derive_needs(trace), device).of(schedule, run);
  ADD_FAILURE() << "no " << to_string(task) << " of " << op;
  return {};
}

std::int64_t ns(const Cost& cost) { return cost.time.count(); }

/// Memory is free, so that only arithmetic counts.
Device compute_bound() {
  Device device = toy_device();
  device.bytes_per_second = 1e18;
  return device;
}

// Tiles of 32 × 32: two SMs do two of them in one wave, 2 · 32 · 32 FLOP each at half of the
// device's 1 FLOP/ns; a third costs a second wave.
TEST(CostModel, AThirdTileCostsASecondWave) {
  const Device device = compute_bound();
  const Cost two = cost_of(product(64, 32, 1), Task::Forward, "fc", device);
  const Cost three = cost_of(product(96, 32, 1), Task::Forward, "fc", device);
  EXPECT_EQ(ns(two), 4096);
  EXPECT_EQ(ns(three), 8192);
  EXPECT_DOUBLE_EQ(two.sm_share, 1);
  EXPECT_DOUBLE_EQ(three.sm_share, 0.75);
  EXPECT_DOUBLE_EQ(three.flops, 2 * 96 * 32);
}

// 256 × 256 is two tiles of 256 × 128, one per SM. With a row more the best is 9 · 8 tiles of
// 32 × 32 in 36 waves instead of the 32 waves that 256 rows would need.
TEST(CostModel, OneRowTooManyIsPaidInTiles) {
  const Device device = compute_bound();
  EXPECT_EQ(ns(cost_of(product(256, 256, 1), Task::Forward, "fc", device)), 2 * 256 * 256);
  EXPECT_EQ(ns(cost_of(product(257, 256, 1), Task::Forward, "fc", device)), 36 * 2 * 2 * 32 * 32);
}

// dx and dW are two products of the same size as the forward's.
TEST(CostModel, ALinearsBackwardIsTwoProducts) {
  const Device device = compute_bound();
  const Trace trace = product(64, 64, 64);
  const Cost forward = cost_of(trace, Task::Forward, "fc", device);
  const Cost backward = cost_of(trace, Task::Backward, "fc", device);
  EXPECT_EQ(ns(backward), 2 * ns(forward));
  EXPECT_DOUBLE_EQ(backward.flops, 2 * forward.flops);
  EXPECT_EQ(backward.kernels, 2);
}

TEST(CostModel, AFrozenWeightsBackwardIsOne) {
  Trace trace = product(64, 64, 64);
  trace.tensors[index(tensor_named(trace, "fc.weight"))].trainable = false;
  const Device device = compute_bound();
  EXPECT_EQ(ns(cost_of(trace, Task::Backward, "fc", device)),
            ns(cost_of(trace, Task::Forward, "fc", device)));
}

// Reads 4000 B, writes 4000 B at 1 B/ns.
TEST(CostModel, AnElementwiseOpStreamsItsOperands) {
  TraceBuilder b("gelu", "toy", {.precision = Precision::Fp32});
  const TensorId p = b.parameter("p", {1000});
  const Trace trace = b.finish(b.gelu("gelu", p));
  const Cost cost = cost_of(trace, Task::Forward, "gelu", toy_device());
  EXPECT_EQ(ns(cost), 8000);
  EXPECT_DOUBLE_EQ(cost.bytes, 8000);
  EXPECT_DOUBLE_EQ(cost.memory_share, 1);
  EXPECT_EQ(cost.kernels, 1);
}

TEST(CostModel, EachKernelHasAGap) {
  Device device = toy_device();
  device.kernel_gap = Nanoseconds(8000);
  TraceBuilder b("gelu", "toy", {.precision = Precision::Fp32});
  const Trace trace = b.finish(b.gelu("gelu", b.parameter("p", {1000})));
  const Cost cost = cost_of(trace, Task::Forward, "gelu", device);
  EXPECT_EQ(ns(cost), 16'000);
  EXPECT_DOUBLE_EQ(cost.memory_share, 0.5);
}

// SGD reads p and g and writes p: three times the bytes of the weights.
TEST(CostModel, AnUpdateStreamsWeightGradientAndState) {
  const auto update = [](Optimizer optimizer, const char* framework) {
    StepOptions options{.framework = framework};
    options.optimizer = optimizer;
    TraceBuilder b("gelu", "toy", options);
    const Trace trace = b.finish(b.gelu("gelu", b.parameter("p", {1000})));
    return cost_of(trace, Task::Optimizer, "", toy_device());
  };
  EXPECT_EQ(ns(update(Optimizer::Sgd, "torch-2")), 3 * 4000);
  EXPECT_EQ(ns(update(Optimizer::AdamW, "paper")), 7 * 4000);         // fused
  EXPECT_EQ(ns(update(Optimizer::AdamW, "torch-2")), 4000 * 45 / 2);  // nine kernels
  EXPECT_EQ(update(Optimizer::AdamW, "torch-2").kernels, 9);
}

// Paged states are read and written where they are; those that move take the link at 0.5 B/ns
// twice.
TEST(CostModel, AnUpdateStreamsPagedStatesAndMayMoveThem) {
  const auto update = [](Optimizer optimizer, bool moves) {
    TraceBuilder b("gelu", "toy", {.precision = Precision::Fp32, .optimizer = optimizer});
    const Trace trace = b.finish(b.gelu("gelu", b.parameter("p", {100'000})));
    const Device device = toy_device();
    const PlannedStep step =
        plan_step(std::make_shared<const Trace>(trace), parse_strategy("vanilla"));
    const Schedule schedule = lower(step);
    const CostModel costs(*step.trace, step.derived->needs, device, moves);
    for (const auto& run : runs_of(schedule))
      if (run.task == Task::Optimizer) return ns(costs.of(schedule, run));
    return std::int64_t{0};
  };
  EXPECT_EQ(update(Optimizer::AdamW32bit, false), 7 * 400'000);
  EXPECT_EQ(update(Optimizer::PagedAdamW32bit, false), 7 * 400'000);
  EXPECT_EQ(update(Optimizer::PagedAdamW32bit, true), 7 * 400'000 + 2 * 2 * 800'000);
  EXPECT_EQ(update(Optimizer::AdamW32bit, true), 7 * 400'000);
}

// Per element of fp32: ours reads a product's result twice, and what an activation wrote once, for
// that has noted its extremes; and it writes a code. The released code moves 21 bytes to
// make codes and 13 to get values back (its passes, counted in custom_quant.py).
TEST(CostModel, CodesCostTheirPasses) {
  TraceBuilder b("codes", "toy", {.precision = Precision::Fp32});
  const TensorId x = b.linear("fc1", b.input("x", {2, 8}, DType::Float32), 8);
  const TensorId y = b.linear("fc2", b.gelu("gelu", x), 8);
  const Trace trace = b.finish(b.cross_entropy("loss", y, b.input("t", {2}, DType::Int64)));
  const auto bytes_per_element = [&](Task task, std::string_view op, std::string_view strategy) {
    return cost_of(trace, task, op, toy_device(), strategy).bytes / 16;
  };
  EXPECT_EQ(bytes_per_element(Task::Quantize, "fc1", "mesa"), 4 + 4 + 1);
  EXPECT_EQ(bytes_per_element(Task::Quantize, "gelu", "mesa"), 4 + 1);
  EXPECT_EQ(bytes_per_element(Task::Dequantize, "gelu", "mesa"), 1 + 4);
  EXPECT_EQ(bytes_per_element(Task::Quantize, "gelu", "mesa:released"), 21);
  EXPECT_EQ(bytes_per_element(Task::Dequantize, "gelu", "mesa:released"), 13);
  // Floats: rows of eight are one group, which is read for its magnitude first; and a backward
  // reads values.
  EXPECT_EQ(bytes_per_element(Task::Quantize, "fc1", "fp8-activations") * 16, 16 * (4 + 4 + 1) + 4);
  EXPECT_EQ(bytes_per_element(Task::Dequantize, "fc1", "fp8-activations") * 16, 16 * (1 + 4) + 4);
  EXPECT_EQ(bytes_per_element(Task::Backward, "gelu", "fp8-activations"), 4 + 4 + 4);
  // Delayed: one pass over what a product wrote, and none over what a norm wrote.
  EXPECT_EQ(bytes_per_element(Task::Quantize, "fc1", "mesa:delayed"), 4 + 1);
  EXPECT_EQ(bytes_per_element(Task::Recompute, "gelu", "mesa:delayed"), 4 + 4);
  EXPECT_EQ(bytes_per_element(Task::Backward, "gelu", "vanilla"), 4 + 4 + 4);
  EXPECT_EQ(bytes_per_element(Task::Backward, "gelu", "mesa"), 4 + 1 + 4);
}

// A norm that writes its codes in passing writes a byte per element more, and its range moves
// before; codes of four bits are made in a pass of their own, after a range that has moved.
TEST(CostModel, CodesInPassingCostTheirBytes) {
  TraceBuilder b("codes", "toy", {.precision = Precision::Fp32});
  const TensorId y = b.linear(
      "fc", b.layer_norm("norm", b.linear("in", b.input("x", {2, 8}, DType::Float32), 8), 1e-5), 8);
  const Trace trace = b.finish(b.cross_entropy("loss", y, b.input("t", {2}, DType::Int64)));
  const auto cost = [&](Task task, std::string_view strategy) {
    return cost_of(trace, task, "norm", toy_device(), strategy);
  };
  const Cost vanilla = cost(Task::Forward, "vanilla"),
             delayed = cost(Task::Forward, "mesa:delayed");
  EXPECT_EQ(delayed.bytes - vanilla.bytes, 16 * 1);
  EXPECT_EQ(delayed.kernels, vanilla.kernels + 1);
  EXPECT_EQ(cost(Task::Forward, "mesa").bytes, vanilla.bytes);
  EXPECT_EQ(cost(Task::Quantize, "mesa").kernels, 2);
  EXPECT_EQ(cost(Task::Quantize, "mesa:delayed,bits=4").kernels, 1);
  EXPECT_EQ(cost(Task::Quantize, "mesa:delayed,bits=4").bytes, 16 * 4.5);
}

TEST(CostModel, ARecomputationCostsWhatTheForwardDid) {
  const Trace trace = small_trace();
  const Device device = toy_device();
  const Needs needs = derive_needs(trace);
  const CostModel costs(trace, needs, device);
  const Schedule schedule = lower(trace, keep_everything(trace));
  for (auto run : runs_of(schedule)) {
    if (run.task != Task::Forward) continue;
    const Cost first = costs.of(schedule, run);
    run.task = Task::Recompute;
    EXPECT_EQ(costs.of(schedule, run).time, first.time);
  }
}

bool are_equal(const Cost& a, const Cost& b) {
  return a.time == b.time && a.kernels == b.kernels && a.flops == b.flops && a.bytes == b.bytes &&
         a.sm_share == b.sm_share && a.memory_share == b.memory_share;
}

// Without blocks no op is like another, and each is computed for itself. Blocks of Swin differ in
// their shifts, those of MViT in their shapes, and the first of GPT-2 with frozen embeddings gets
// no gradient; Mesa's backward reads codes, and a curve is the device's own.
TEST(CostModel, OpsOfRepeatedBlocksCostWhatEachWouldCostAlone) {
  Device device = toy_device();
  device.curves["backward linear float32"] = {{1, 5}, {1e9, 5e9}};
  StepOptions lora{.batch = 1};
  lora.tuning = parse_tuning("lora");
  for (const auto& [model, step] :
       {std::pair("vit-ti-16", StepOptions{.batch = 1}),
        std::pair("swin-t", StepOptions{.batch = 1}),
        std::pair("mvitv2-t", StepOptions{.batch = 1}), std::pair("gpt2", lora)})
    for (const char* strategy : {"vanilla", "checkpoint", "mesa"}) {
      const PlannedStep planned =
          plan_step(std::make_shared<const Trace>(build_trace(find_model(model), step)),
                    parse_strategy(strategy));
      ASSERT_EQ(planned.refusal, "") << model << ' ' << strategy;
      Trace without_blocks = *planned.trace;
      without_blocks.blocks.clear();
      const Schedule schedule = lower(planned);
      const CostModel costs(*planned.trace, planned.derived->needs, device);
      const CostModel each(without_blocks, planned.derived->needs, device);
      for (const auto& run : runs_of(schedule))
        EXPECT_TRUE(are_equal(costs.of(schedule, run), each.of(schedule, run)))
            << model << ' ' << strategy << ": " << to_string(run.task);
    }
}

TEST(CostModel, ACopyTakesTheHostsLinkAndNothingElse) {
  const Trace trace = chain(1);
  const Device device = toy_device();
  const Cost cost = CostModel(trace, derive_needs(trace), device).of_copy({1000});
  EXPECT_EQ(ns(cost), 2000);
  EXPECT_EQ(cost.sm_share, 0);
  EXPECT_EQ(cost.memory_share, 0);
}

TEST(CostModel, ACausalMaskHalvesAttention) {
  const auto flops = [](bool causal) {
    TraceBuilder b("attention", "toy", {.precision = Precision::Fp32});
    const TensorId q = b.parameter("q", {1, 1, 64, 64});
    const Trace trace = b.finish(b.flash_attention("attention", q, q, q, causal));
    return cost_of(trace, Task::Forward, "attention", toy_device()).flops;
  };
  EXPECT_DOUBLE_EQ(flops(false), 4.0 * 64 * 64 * 64);
  EXPECT_DOUBLE_EQ(flops(true), 2.0 * 64 * 64 * 64);
}

// Of 16 bits at its own rate, a quarter of the products' here; of others at that of products.
TEST(CostModel, FusedAttentionHasARateOfItsOwn) {
  const auto time = [](Precision precision, Task task, std::optional<double> efficiency) {
    TraceBuilder b("attention", "toy", {.precision = precision});
    const TensorId q = b.parameter("q", {1, 1, 256, 64});
    const Trace trace = b.finish(b.flash_attention("attention", q, q, q, false));
    Device device = toy_device();
    device.bytes_per_second = 1e15;
    device.attention_efficiency = efficiency;
    return ns(cost_of(trace, task, "attention", device));
  };
  for (const Task task : {Task::Forward, Task::Backward}) {
    const auto products = time(Precision::Bf16, task, {});
    EXPECT_NEAR(static_cast<double>(time(Precision::Bf16, task, 0.25)),
                4 * static_cast<double>(products), 2);
    EXPECT_EQ(time(Precision::Fp32, task, 0.25), time(Precision::Fp32, task, {}));
  }
}

// A measured curve takes the place of the rates: what they promise lies half way, on a logarithmic
// scale, between its points. What is known of the very kernels counts before what is of their kind.
TEST(CostModel, CalibrationSaysHowLongAKernelTakes) {
  Device device = compute_bound();
  const Trace trace = product(64, 32, 1);
  const auto promised =
      static_cast<double>(ns(cost_of(trace, Task::Forward, "fc", compute_bound())));
  device.curves["forward linear float32"] = {{promised / 2, 100}, {promised * 2, 400}};
  EXPECT_EQ(ns(cost_of(trace, Task::Forward, "fc", device)), 200);
  EXPECT_EQ(ns(cost_of(trace, Task::Backward, "fc", device)),
            ns(cost_of(trace, Task::Backward, "fc", compute_bound())));
  device.curves["forward linear float32, 3 operands, odd"] = {{promised, 50}};
  EXPECT_EQ(ns(cost_of(trace, Task::Forward, "fc", device)), 200);
  device.curves["forward linear float32, 2 operands, odd"] = {{promised, 70}};
  EXPECT_EQ(ns(cost_of(trace, Task::Forward, "fc", device)), 70);
}

// Rows of 32 begin at multiples of eight elements, of 34 at every second, of 33 at any. Of 16 bits
// that has a price, in the forward and in either gradient, whichever of the sides is odd.
TEST(CostModel, ProductsOfOddRowsHaveRatesOfTheirOwn) {
  Device device = compute_bound(), slow = compute_bound();
  slow.even_rows_gemm_share = 0.5, slow.odd_rows_gemm_share = 0.125;
  const auto slower = [&](std::int64_t n, std::int64_t k, Precision precision, Task task) {
    TraceBuilder b("product", "toy", {.precision = precision});
    const TensorId x = b.parameter("x", {64, k}), w = b.parameter("w", {k, n});
    const Trace trace = b.finish(b.matmul("y", x, w));
    return static_cast<double>(ns(cost_of(trace, task, "y", slow))) /
           static_cast<double>(ns(cost_of(trace, task, "y", device)));
  };
  for (const Task task : {Task::Forward, Task::Backward}) {
    EXPECT_DOUBLE_EQ(slower(32, 32, Precision::Bf16, task), 1);
    EXPECT_DOUBLE_EQ(slower(36, 32, Precision::Bf16, task), 2);
    EXPECT_DOUBLE_EQ(slower(32, 34, Precision::Bf16, task), 2);
    EXPECT_DOUBLE_EQ(slower(33, 32, Precision::Bf16, task), 8);
    EXPECT_DOUBLE_EQ(slower(34, 33, Precision::Bf16, task), 8);
    EXPECT_DOUBLE_EQ(slower(33, 33, Precision::Fp32, task), 1);
  }
  const Trace linear = product(64, 33, 32);
  EXPECT_EQ(row_alignment(linear, linear.ops[0]), 1);  // from one column
  EXPECT_EQ(row_alignment(linear, linear.ops[1]), 1);  // to 33
  EXPECT_EQ(row_alignment(linear, linear.ops[2]), 8);  // no product
  const Trace aligned = product(63, 32, 16);
  EXPECT_EQ(row_alignment(aligned, aligned.ops[1]), 8);
}

// An SM of capability 9.0 takes 34.7 bytes per cycle, so that 10 SMs at 1 GHz could take 347 B/ns.
Device with_fast_memory(double bytes_per_ns) {
  Device device = toy_device();
  device.sm_count = 10, device.compute_capability = "9.0";
  device.bytes_per_second = bytes_per_ns * 1e9;
  return device;
}

// Four of ten SMs saturate a memory of 138.8 B/ns; one that is faster than all of them needs all.
// Where no rate is known an SM takes 14.7 bytes, the least that was measured.
TEST(CostModel, AStreamingKernelNeedsTheSmsThatSaturateTheMemory) {
  TraceBuilder b("gelu", "toy", {.precision = Precision::Fp32});
  // 512 elements per block, 16 blocks per SM: ten full SMs.
  const Trace trace = b.finish(b.gelu("gelu", b.parameter("p", {512 * 160})));
  const auto share = [&](double bytes_per_ns) {
    return cost_of(trace, Task::Forward, "gelu", with_fast_memory(bytes_per_ns)).sm_share;
  };
  EXPECT_NEAR(share(138.8), 0.4, 1e-12);
  EXPECT_EQ(share(694), 1);
  Device unknown = with_fast_memory(73.5);
  unknown.compute_capability = "99.0";
  EXPECT_NEAR(cost_of(trace, Task::Forward, "gelu", unknown).sm_share, 0.5, 1e-12);
}

// One block alone holds one of 160 slots, however fast the memory is.
TEST(CostModel, ASmallStreamingKernelHoldsNoMoreThanItsBlocks) {
  TraceBuilder b("gelu", "toy", {.precision = Precision::Fp32});
  const Trace trace = b.finish(b.gelu("gelu", b.parameter("p", {512})));
  EXPECT_DOUBLE_EQ(cost_of(trace, Task::Forward, "gelu", with_fast_memory(138.8)).sm_share,
                   1.0 / 160);
}

// Ten tiles of 32 × 32 on ten SMs, whose memory takes a hundred times as long as their arithmetic:
// two fifths would do. Where arithmetic takes as long as memory all are needed.
TEST(CostModel, AProductThatWaitsForMemoryNeedsFewerSms) {
  const Trace trace = product(320, 32, 32);
  Device device = with_fast_memory(138.8);
  const double bytes = cost_of(trace, Task::Forward, "fc", device).bytes,
               flops = 2.0 * 320 * 32 * 32;
  const double memory = bytes / 138.8;
  device.flops_per_second.fill(100 * flops / memory * 1e9);
  EXPECT_NEAR(cost_of(trace, Task::Forward, "fc", device).sm_share, 0.4, 1e-12);
  device.flops_per_second.fill(flops / memory * 1e9);
  EXPECT_NEAR(cost_of(trace, Task::Forward, "fc", device).sm_share, 1, 1e-12);
}

// What its kernels hold was measured: cores, not parts of one.
TEST(CostModel, OnACpuAStreamingKernelHoldsItsCore) {
  TraceBuilder b("gelu", "toy", {.precision = Precision::Fp32});
  const Trace trace = b.finish(b.gelu("gelu", b.parameter("p", {512 * 160})));
  Device device = with_fast_memory(138.8);
  device.product_share = 0.5;
  EXPECT_DOUBLE_EQ(cost_of(trace, Task::Forward, "gelu", device).sm_share, 0.5);
}

TEST(CostModel, AKernelHoldsNoMoreThanItsShareOfTheDevice) {
  Device device = toy_device();
  device.product_share = 0.5, device.stream_share = 0.25;
  const Trace trace = product(64, 32, 1);
  const Cost whole = cost_of(trace, Task::Forward, "fc", toy_device());
  const Cost part = cost_of(trace, Task::Forward, "fc", device);
  EXPECT_EQ(ns(part), ns(whole));
  EXPECT_DOUBLE_EQ(part.sm_share, 0.5);  // of a whole device, as two tiles on two SMs hold
  EXPECT_DOUBLE_EQ(part.memory_share, whole.memory_share / 4);
}

// Of R rows of V logits in 16 bits one kernel reads all, the next one reads them again and writes
// over them; targets are 8 bytes, and of each row 9 more are kept.
TEST(CostModel, AFusedLossReadsItsLogitsTwiceAndWritesThemOnce) {
  StepOptions options{.batch = 2, .framework = "megatron"};
  options.loss = parse_token_loss("fused");
  const Trace trace = build_rank_trace(small_gpt2(), options);
  const auto loss = std::ranges::find(trace.ops, OpKind::VocabularyLoss, &Op::kind);
  ASSERT_NE(loss, trace.ops.end());
  const Tensor& logits = trace[trace.inputs(*loss)[0]];
  const std::int64_t rows = numel(logits.shape) / logits.shape.back();
  const Cost cost = cost_of(trace, Task::Forward, loss->name, toy_device());
  const std::int64_t mean = size(trace[trace.outputs(*loss)[0]]).count;
  EXPECT_EQ(ns(cost), 3 * 2 * numel(logits.shape) + rows * (8 + 9) + mean);
  EXPECT_EQ(cost.kernels, 2);
}

// One that torch.compile makes reads them in 16 bits and writes fp32, which exp and the division
// read and write; its backward reads that, copies it, and reads the copy to write two gradients.
TEST(CostModel, ACompiledLossReadsAndWritesItsSoftmaxAgain) {
  StepOptions options{.batch = 2, .framework = "megatron"};
  options.loss = parse_token_loss("native");
  const Trace trace = build_rank_trace(small_gpt2(), options);
  const auto loss = std::ranges::find(trace.ops, OpKind::VocabularyLoss, &Op::kind);
  ASSERT_NE(loss, trace.ops.end());
  const Tensor& logits = trace[trace.inputs(*loss)[0]];
  const std::int64_t rows = numel(logits.shape) / logits.shape.back();
  const std::int64_t mean = size(trace[trace.outputs(*loss)[0]]).count;
  const Cost forward = cost_of(trace, Task::Forward, loss->name, toy_device());
  EXPECT_EQ(ns(forward), (2 + 5 * 4) * numel(logits.shape) + rows * (8 + 9) + mean);
  EXPECT_EQ(forward.kernels, 6);
  const Cost backward = cost_of(trace, Task::Backward, loss->name, toy_device());
  EXPECT_EQ(ns(backward), (2 + 4 * 4) * numel(logits.shape) + rows * 9 + mean);
  EXPECT_EQ(backward.kernels, 3);
}

}  // namespace
}  // namespace tidemark::cost_model_test
