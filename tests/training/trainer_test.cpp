// Small networks learn digits and text, and checkpointing learns them to the same bits.
#include "examples/training/trainer.h"

#include <gmock/gmock.h>

#include "examples/training/noise.h"

namespace tidemark::training::trainer_test {
namespace {

Task digits() {
  return digits_task(read_digits(TIDEMARK_SOURCE_DIR "/examples/training/data/digits.txt"));
}

TEST(LearningRate, RisesAndThenFallsAsACosine) {
  EXPECT_DOUBLE_EQ(learning_rate_at(1, 4, 100), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_at(1, 9, 100), 1);
  EXPECT_NEAR(learning_rate_at(1, 54, 100), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate_at(1, 99, 100), 0.1, 1e-12);
}

TEST(Trainer, LearnsDigits) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const Trained vanilla = train(digits(), "vanilla", 240, 1, *backend);
  ASSERT_EQ(vanilla.runs.size(), 1u);
  EXPECT_EQ(vanilla.runs[0].losses.size(), 240u);
  EXPECT_GT(vanilla.runs[0].losses.front(), 1.8);                 // chance is ln 10 = 2.3
  EXPECT_LT(measured(vanilla.runs[0], Measure::FinalLoss), 1.0);  // six seeds: 0.43 to 0.64
  EXPECT_GT(vanilla.runs[0].accuracy.value(), 0.5);               // chance is 0.1
}

TEST(Trainer, LearnsText) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "the cat sat ";
  const Trained vanilla = train(text_task(corpus_of(text)), "vanilla", 60, 1, *backend);
  EXPECT_GT(vanilla.runs[0].losses.front(), 1.5);  // chance is ln 7 = 1.9
  EXPECT_LT(vanilla.runs[0].held_out_loss, 1);     // 1.82 is the entropy of its letters
}

TEST(Trainer, CheckpointingLearnsTheSameBits) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const Trained vanilla = train(digits(), "vanilla", 4, 2, *backend);
  const Trained checkpoint = train(digits(), "checkpoint", 4, 2, *backend);
  EXPECT_TRUE(is_identical(vanilla, checkpoint));
  EXPECT_NE(vanilla.runs[0].losses, vanilla.runs[1].losses);  // seeds differ
  EXPECT_LT(checkpoint.runs[0].planned, vanilla.runs[0].planned);
}

TEST(Trainer, NormsWithoutAffineStartAsTheSameFunction) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const Trained vanilla = train(digits(), "vanilla", 1, 1, *backend);
  const Trained merged = train(digits(), "ms-bp", 1, 1, *backend);
  EXPECT_NEAR(merged.runs[0].losses[0], vanilla.runs[0].losses[0], 1e-5);
}

TEST(Trainer, SaysWhatDoesNotApply) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const Trained refused = train(digits(), "reversible+mesa", 1, 1, *backend);
  EXPECT_NE(refused.refusal, "");
  EXPECT_TRUE(refused.runs.empty());
}

}  // namespace
}  // namespace tidemark::training::trainer_test
