// What a policy by operators keeps of a block is counted as PyTorch's dispatcher sees its calls,
// and stays until the block's graph is gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/strategies/strategy.h"
#include "tests/traces/small_trace.h"
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

std::vector<std::string> run_again(const PlannedStep& step) {
  std::vector<std::string> names;
  const Derived derived = derive(*step.trace, step.plan);
  for (std::size_t i = 0; i < step.trace->ops.size(); ++i)
    if (derived.recovery.reruns[i]) names.push_back(step.trace->ops[i].name);
  return names;
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

/// "freed behind 'backward a'"
std::string last_run_before_free_of(const PlannedStep& step, std::string_view tensor) {
  const Schedule schedule = lower(*step.trace, step.plan);
  std::string last;
  for (const Step& each : schedule.steps) {
    if (const auto* run = std::get_if<tidemark::Run>(&each); run && run->op != no_op)
      last =
          fmt::format("{} {}", to_string(run->task), std::string_view((*step.trace)[run->op].name));
    const auto* free = std::get_if<Free>(&each);
    if (free && schedule[free->buffer].role == Role::Value &&
        (*step.trace)[schedule[free->buffer].tensor].name == tensor)
      return last;
  }
  return "never";
}

// The last product's result is read by the sum alone, which does not run again: it stays as long as
// the function's graph does, until the gradients of the first op that keeps anything.
TEST(KeptCalls, StayUnreadUntilTheirBlockIsOver) {
  EXPECT_EQ(last_run_before_free_of(three_products(1, Bias::No), "c"), "accumulate before_a");
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
