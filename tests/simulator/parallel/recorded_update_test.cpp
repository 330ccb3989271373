// A recorded optimizer of whole parameters becomes one of any sizes, or is refused.
#include "simulator/parallel/recorded_update.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "traces/trace.h"
#include "traces/trace_json.h"

namespace tidemark::recorded_update_test {
namespace {

Trace captured() {
  return load_trace(TIDEMARK_TESTS_DIR "/reference/captures/llama-bf16.trace.json.zst");
}

std::int64_t states_in(const Trace& trace) {
  return std::ranges::count(trace.tensors, Category::OptimizerState, &Tensor::category);
}

std::string problem_of(const Trace& trace) {
  try {
    with_update_by_its_row(trace);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RecordedUpdate, GivesWayToTheRowOfItsOptimizer) {
  const Trace recorded = captured();
  ASSERT_GT(states_in(recorded), 0);
  const Trace made = with_update_by_its_row(recorded);
  EXPECT_EQ(states_in(made), 0);
  EXPECT_FALSE(made.update);
  EXPECT_EQ(made.step.optimizer, Optimizer::AdamW);
  EXPECT_EQ(made.tensors.size() + static_cast<std::size_t>(states_in(recorded)),
            recorded.tensors.size());
  for (std::size_t i = 0; i < made.operands.size(); ++i)
    EXPECT_EQ(made[made.operands[i]].name, recorded[recorded.operands[i]].name);
  EXPECT_EQ(made[made.loss].name, recorded[recorded.loss].name);
  EXPECT_TRUE(check(made).empty());
}

TEST(RecordedUpdate, StaysWhereNoneWasRecorded) {
  const Trace made = with_update_by_its_row(captured());
  EXPECT_EQ(with_update_by_its_row(made), made);
}

// BERT's pooler under a loss of words, say: it is trained, gets no gradient, and so has no states.
TEST(RecordedUpdate, HasNoStatesOfWhatTheLossDoesNotDependOn) {
  Trace recorded = captured();
  recorded.tensors.push_back({.name = "pooler",
                              .shape = {64, 64},
                              .dtype = DType::BFloat16,
                              .category = Category::Parameter,
                              .trainable = true,
                              .storage = static_cast<TensorId>(recorded.tensors.size())});
  ASSERT_TRUE(check(recorded).empty());
  EXPECT_EQ(with_update_by_its_row(recorded).step.optimizer, Optimizer::AdamW);
}

// nanoGPT's optimizer: fused kernels read how many steps each weight has made.
TEST(RecordedUpdate, IsFusedWhereCountersLieOnTheDevice) {
  Trace recorded = captured();
  EXPECT_EQ(with_update_by_its_row(recorded).step.optimizer_form, std::nullopt);
  recorded.tensors.push_back({.name = "norm.weight.step",
                              .shape = {},
                              .dtype = DType::Float32,
                              .category = Category::OptimizerState,
                              .trainable = false,
                              .storage = static_cast<TensorId>(recorded.tensors.size())});
  ASSERT_TRUE(check(recorded).empty());
  const Trace made = with_update_by_its_row(recorded);
  EXPECT_EQ(made.step.optimizer, Optimizer::AdamW);
  EXPECT_EQ(made.step.optimizer_form, OptimizerForm::Fused);
  EXPECT_EQ(states_in(made), 0);
  recorded.tensors.back().shape = {1};  // a state of one number
  EXPECT_NE(problem_of(recorded), "no error");
}

TEST(RecordedUpdate, IsRefusedWhereStatesAreNotThoseOfARow) {
  Trace other = captured();
  other.update->optimizer = "RMSprop";
  EXPECT_EQ(
      problem_of(other),
      "of RMSprop's states, as they are here, it is not known what a rank keeps when parameters "
      "are cut (capture with plain AdamW or SGD, or give --shard ddp)");
  Trace more = captured();
  for (Tensor& tensor : more.tensors)
    if (tensor.name.ends_with(".exp_avg")) tensor.category = Category::Parameter;
  EXPECT_NE(problem_of(more), "no error");
}

}  // namespace
}  // namespace tidemark::recorded_update_test
