// What a policy by operators keeps of a block is counted as PyTorch's dispatcher sees its calls,
// and stays until the block's graph is gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/recovered.h"
#include "tests/support/small_models.h"
#include "traces/trace_builder.h"

namespace tidemark::kept_calls_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

enum class Bias : bool { No, Yes };

/// Blocks of x → tanh → a → tanh → b → tanh → c → x + c, behind a first product.
PlannedStep three_products(int blocks, Bias bias) {
  TraceBuilder b("products", "toy", {.precision = Precision::Fp32});
  TensorId x = b.linear("first", b.input("x", {2, 4}, DType::Float32), 4);
  for (int block = 0; block < blocks; ++block) {
    b.begin_block("block" + std::to_string(block), x, -1);
    TensorId y = x;
    for (const char* name : {"a", "b", "c"})
      y = b.linear(name, b.tanh(std::string("before_") + name, y), 4, bias == Bias::Yes);
    x = b.add("sum", x, y);
    b.end_block();
  }
  return plan_step(std::make_shared<const Trace>(b.finish(b.mean("loss", b.linear("last", x, 4)))),
                   parse_strategy("checkpoint:op"));
}

// The first and third stay, in each block.
TEST(KeptCalls, AreEverySecondProductOfEachBlock) {
  const PlannedStep step = three_products(2, Bias::No);
  EXPECT_THAT(run_again(step), ElementsAre("before_a", "before_b", "b", "before_c",  //
                                           "before_a", "before_b", "b", "before_c"));
  EXPECT_THAT(check(*step.trace, step.plan), IsEmpty());
  EXPECT_THAT(validate(*step.trace, lower(*step.trace, step.plan)), IsEmpty());
}

// A bias makes it another call, aten.addmm, which is not counted.
TEST(KeptCalls, AreAllProductsWithABias) {
  EXPECT_THAT(run_again(three_products(1, Bias::Yes)),
              ElementsAre("before_a", "before_b", "before_c"));
}

// The last product's result is read by the sum alone, which does not run again: it stays as long as
// the function's graph does, until the gradients of the first op that keeps anything.
TEST(KeptCalls, StayUnreadUntilTheirBlockIsOver) {
  const PlannedStep step = three_products(1, Bias::No);
  EXPECT_EQ(last_run_before_free_of(*step.trace, lower(*step.trace, step.plan), "c"),
            "accumulate before_a");
}

// Sums that ranks have scattered stay; what they gather is gathered again.
TEST(KeptCalls, AreScatteredSums) {
  StepOptions options{.batch = 2, .precision = Precision::Bf16};
  options.mesh[Axis::Tensor] = 2;
  options.sequence_parallel = true;
  const auto trace = std::make_shared<const Trace>(build_rank_trace(small_llama(), options));
  const auto scattered_again = [&](const char* strategy) {
    const PlannedStep step = plan_step(trace, parse_strategy(strategy));
    const Derived derived = derive(*step.trace, step.plan);
    int count = 0;
    for (std::size_t i = 0; i < trace->ops.size(); ++i)
      count += derived.recovery.reruns[i] && trace->ops[i].kind == OpKind::ReduceScatter;
    return count;
  };
  EXPECT_EQ(scattered_again("checkpoint"), 3);  // in each block that of attention is read again
  EXPECT_EQ(scattered_again("checkpoint:op"), 0);
}

// A policy cannot choose from calls that nobody knows.
TEST(KeptCalls, OfUnknownOpsAreRefused) {
  TraceBuilder b("opaque", "toy", {.precision = Precision::Fp32});
  TensorId x = b.linear("first", b.input("x", {2, 4}, DType::Float32), 4);
  b.begin_block("block", x, -1);
  const OutputSpec like_x{"", {2, 4}, DType::Float32};
  x = b.opaque("scan", {&x, 1}, {&like_x, 1},
               {.operation = "toy::scan", .gradients = 1, .saved = 1});
  b.end_block();
  const PlannedStep step = plan_step(std::make_shared<const Trace>(b.finish(b.mean("loss", x))),
                                     parse_strategy("checkpoint:op"));
  EXPECT_THAT(step.refusal, HasSubstr("'scan'"));
}

}  // namespace
}  // namespace tidemark::kept_calls_test
