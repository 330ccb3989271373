// Every option of a step is an input of the window, because both read one table.
#include "gui/step_text.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace tidemark::gui::step_text_test {
namespace {

const StepField& field_called(std::string_view key) {
  return *std::ranges::find(step_fields(), key, &StepField::key);
}

TEST(StepText, WhatHasNoSliderIsOffered) {
  std::vector<std::string_view> keys;
  for (const StepField* field : other_fields()) keys.push_back(field->key);
  for (const char* key :
       {"tuning", "optimizer", "dropout", "drop_path", "framework", "ema", "ddp", "padded"})
    EXPECT_THAT(keys, testing::Contains(key));
  EXPECT_EQ(keys.size() + 5, step_fields().size());  // batch, sequence, image, precision, attention
}

TEST(StepText, OneIsChangedAndTheOthersStay) {
  StepOptions step;
  step.batch = 7, step.precision = Precision::Bf16, step.dropout = 0.25, step.ema = true;
  const StepOptions changed = with_typed(field_called("optimizer"), step, "sgd");
  EXPECT_NE(changed, step);
  step.optimizer = Optimizer::Sgd;
  EXPECT_EQ(changed, step);
}

TEST(StepText, NothingTypedIsNothingSaid) {
  StepOptions step;
  step.dropout = 0.25, step.ema = true;
  const StepOptions without = with_typed(field_called("ema"), step, "");
  EXPECT_FALSE(without.ema);
  EXPECT_EQ(without.dropout, 0.25);
  EXPECT_EQ(with_typed(field_called("dropout"), without, ""), StepOptions{});
}

// What is shown is what is read back, for every choice of every list.
TEST(StepText, EachChoiceIsReadBack) {
  for (const StepField* field : other_fields())
    for (const StepChoice& choice : choices_of(*field)) {
      EXPECT_NE(choice.shown, "");
      EXPECT_EQ(typed(*field, with_typed(*field, {}, choice.text)), choice.text) << field->key;
    }
}

TEST(StepText, OnlyWhatCanBeUnsetHasADefault) {
  EXPECT_EQ(choices_of(field_called("ema")).front().shown, "default");
  EXPECT_EQ(choices_of(field_called("optimizer")).front().shown, "sgd");
  EXPECT_TRUE(choices_of(field_called("tuning")).empty());  // any text may be right
}

TEST(StepText, WhatCannotBeReadIsRefused) {
  EXPECT_THROW(with_typed(field_called("dropout"), {}, "2"), InputError);
  EXPECT_THROW(with_typed(field_called("tuning"), {}, "lorra"), InputError);
}

}  // namespace
}  // namespace tidemark::gui::step_text_test
