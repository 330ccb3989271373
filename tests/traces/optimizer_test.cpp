// The table of optimizers against sizes worked out by hand; against PyTorch's own allocator in
// tests/analysis/measured_optimizers_test.cpp.
#include "traces/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/optimizer_of.h"
#include "traces/step_fields.h"
#include "traces/trace_builder.h"

namespace tidemark::optimizer_test {
namespace {

using testing::HasSubstr;

Tensor parameter(Shape shape, DType dtype = DType::Float32) {
  Tensor tensor;
  tensor.shape = shape;
  tensor.dtype = dtype;
  return tensor;
}

std::int64_t state(Optimizer optimizer, const Tensor& tensor, bool master_weights = false) {
  return state_bytes(row_of(optimizer), tensor, master_weights).count;
}

TEST(Optimizers, KeepMomentsLikeTheParameterOrInFp32) {
  const Tensor matrix = parameter({64, 100}, DType::BFloat16);
  EXPECT_EQ(state(Optimizer::Sgd, matrix), 0);
  EXPECT_EQ(state(Optimizer::SgdMomentum, matrix), 6400 * 2);
  EXPECT_EQ(state(Optimizer::AdamW, matrix), 2 * 6400 * 2);
  EXPECT_EQ(state(Optimizer::AdamW32bit, matrix), 2 * 6400 * 4);
}

TEST(Optimizers, KeepACodePerElementAndAFactorPerBlockUnlessTheParameterIsSmall) {
  EXPECT_EQ(state(Optimizer::AdamW8bit, parameter({64, 100})), 2 * (6400 + 25 * 4));
  EXPECT_EQ(state(Optimizer::Lion8bit, parameter({64, 101})), 6464 + 26 * 4);
  EXPECT_EQ(state(Optimizer::AdamW8bit, parameter({4095})), 2 * 4095 * 4);
  EXPECT_EQ(state(Optimizer::AdamW8bit, parameter({4096})), 2 * (4096 + 16 * 4));
}

TEST(Optimizers, FactorMatricesOnly) {
  EXPECT_EQ(state(Optimizer::Adafactor, parameter({64, 100}, DType::BFloat16)), 164 * 2);
  EXPECT_EQ(state(Optimizer::AdafactorTransformers, parameter({64, 100}, DType::BFloat16)),
            164 * 4);
  EXPECT_EQ(state(Optimizer::Adafactor, parameter({3, 64, 100})), 3 * 164 * 4);
  EXPECT_EQ(state(Optimizer::Adafactor, parameter({100})), 400);
}

TEST(Optimizers, KeepMasterWeightsOfSixteenBitsOnly) {
  EXPECT_EQ(state(Optimizer::AdamW, parameter({10}, DType::BFloat16), true), 3 * 40);
  EXPECT_EQ(state(Optimizer::AdamW, parameter({10}), true), 2 * 40);
}

TEST(Optimizers, TakeTheSquareMatricesOfNewtonSchulz) {
  const OptimizerRow& muon = row_of(Optimizer::Muon);
  const UpdateMemory memory = update_memory(muon, *muon.for_loop, parameter({300, 20}), false);
  EXPECT_EQ(memory.released,
            (std::vector<Bytes>{Bytes{24000}, Bytes{12000}, Bytes{12000}, Bytes{800}, Bytes{800}}));
  EXPECT_TRUE(memory.held.empty());
  // One expert after the other.
  EXPECT_EQ(update_memory(muon, *muon.for_loop, parameter({8, 300, 20}), false).released,
            memory.released);
  EXPECT_EQ(newton_schulz({8, 300, 20}).size(), 8 * newton_schulz({300, 20}).size());
}

TEST(Optimizers, RunInAFormThatTheyHave) {
  for (const OptimizerRow& row : optimizers)
    for (const OptimizerForm framework : {OptimizerForm::ForLoop, OptimizerForm::Foreach})
      for (const auto& form : optimizer_forms)
        EXPECT_TRUE(row.in(form_of(row, form.value, framework)).has_value()) << row.name;
  const OptimizerRow& adafactor = row_of(Optimizer::Adafactor);
  EXPECT_EQ(form_of(adafactor, {}, OptimizerForm::Foreach), OptimizerForm::ForLoop);
  EXPECT_EQ(form_of(adafactor, OptimizerForm::Foreach, OptimizerForm::ForLoop),
            OptimizerForm::Foreach);
}

std::string refusal(StepOptions step) {
  Trace trace;
  trace.step = std::move(step);
  try {
    require_used_options(trace);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Optimizers, AreRefusedInAFormThatTheyDoNotHave) {
  EXPECT_THAT(refusal({.optimizer = Optimizer::Lion, .optimizer_form = OptimizerForm::Fused}),
              HasSubstr("--optimizer-form: lion has no fused form (it has: for-loop)"));
  EXPECT_THAT(refusal({.accumulate = {2}, .update_in_backward = true}),
              HasSubstr("2 micro-batches would add to"));
  EXPECT_THAT(refusal({.optimizer = Optimizer::Lion, .master_weights = true}),
              HasSubstr("keeps no master weights"));
  EXPECT_EQ(refusal({.optimizer = Optimizer::Lion, .optimizer_form = OptimizerForm::ForLoop}),
            "accepted");
}

}  // namespace
}  // namespace tidemark::optimizer_test
