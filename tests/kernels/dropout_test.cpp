// Dropout and stochastic depth: which elements, how many, and the same ones again.
#include "kernels/dropout/dropout.h"

#include "kernels/cpu/random.h"
#include "kernels/stochastic_rounding.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::dropout_test {
namespace {

void set_state(Workspace& workspace, std::int64_t number = 7, std::uint64_t seed = 404) {
  workspace.state.number = number, workspace.state.seed = seed;
}

Call keyed(Call call, std::uint64_t key) {
  call.key = key;
  return call;
}

// Salmon et al.'s known answers (Random123, kat_vectors) for philox4x32-10 and philox4x32-7.
TEST(Random, PhiloxGivesThePublishedWords) {
  const PhiloxBlock zero = philox(0, 0, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[1], 0xe169c58du);
  EXPECT_EQ(zero.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
  const PhiloxBlock ones = philox(~0ull, ~0ull, ~0ull);
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[1], 0x41c83b0eu);
  EXPECT_EQ(ones.word[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);
  const PhiloxBlock seven = philox<7>(~0ull, ~0ull, ~0ull);
  EXPECT_EQ(seven.word[0], 0x5207ddc2u);
  EXPECT_EQ(seven.word[1], 0x45165e59u);
  EXPECT_EQ(seven.word[2], 0x4d8ee751u);
  EXPECT_EQ(seven.word[3], 0x8c52f662u);
}

TEST(Random, ManyWordsAreTheSingleOnes) {
  std::uint32_t buffer[word_buffer];
  for (const std::int64_t first : {0, 1, 2, 3, 4, 1021})
    for (const std::int64_t n : {1, 3, 4, 5, 1024}) {
      const std::uint32_t* words = random_words({404, 7, 99}, first, n, buffer);
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_EQ(static_cast<float>(words[i] + 1) * 0x1p-24f,
                  uniform_at(404, 7, 99, static_cast<std::uint64_t>(first + i)));
    }
  // beyond 2^34 elements, where the block's number has more than 32 bits
  const std::int64_t far = (std::int64_t{1} << 36) + 1;
  EXPECT_EQ(static_cast<float>(*random_words({1, 2, 3}, far, 1, buffer) + 1) * 0x1p-24f,
            uniform_at(1, 2, 3, static_cast<std::uint64_t>(far)));
}

TEST(Random, ManyBitsToRoundByAreTheSingleOnes) {
  std::uint32_t buffer[word_buffer];
  for (const std::int64_t first :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{8}, std::int64_t{1021},
        (std::int64_t{1} << 36) + 3})
    for (const std::int64_t n : {1, 7, 8, 9, 1024}) {
      const std::uint16_t* bits = many_rounding_bits({404, 7, 99}, first, n, buffer);
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_EQ(rounding_of(bits[i]),
                  rounding_at(404, 7, 99, static_cast<std::uint64_t>(first + i)));
    }
}

TEST(Random, WhatIsAddedBeforeRoundingIsZeroInTheMean) {
  double sum = 0;
  for (std::uint32_t bits = 0; bits < 1u << 16; ++bits) {
    const auto added = static_cast<double>(rounding_of(bits));
    ASSERT_EQ(added, (bits + 0.5) / 65536 - 0.5);
    sum += added;
  }
  EXPECT_EQ(sum, 0);
}

TEST(Dropout, KeepsWhatTheGeneratorSaysInAnyDtypeAndLayout) {
  Workspace workspace;
  set_state(workspace);
  for (const double p : {0.0, 0.1, 0.5, 1.0})
    for (const Shape& shape : {Shape{1}, Shape{31}, Shape{33, 3}, Shape{2, 3, 1023}})
      for (const DType dtype : data_dtypes)
        for (const Lie lie : lies) {
          const Settings settings{.probability = p};
          TestArray x(shape, random_values(shape, 1), dtype, lie), y(shape, dtype, lie),
              mask(shape, DType::Bool, lie), dx(shape, dtype, lie);
          dropout_forward(
              keyed(forward(OpKind::Dropout, {x.array()}, {y.array(), mask.array()}, settings), 5),
              workspace);
          dropout_backward(backward(OpKind::Dropout, {absent(shape)}, {absent(shape), mask.array()},
                                    {x.array()}, {dx.array()}, settings),
                           workspace);
          Values wanted = x.values();
          const Values kept_ones = mask.values();
          for (std::size_t i = 0; i < wanted.size(); ++i) {
            const bool kept = static_cast<double>(uniform_at(404, 7, 5, i)) > p;
            ASSERT_EQ(kept_ones[i], kept ? 1 : 0);
            wanted[i] *= kept ? 1 / (1 - p) : 0;
          }
          ASSERT_LE(max_error(y.values(), wanted), epsilon_of(dtype) + 1e-6);
          ASSERT_EQ(dx.values(), y.values());
          ASSERT_TRUE(y.is_intact() && mask.is_intact() && dx.is_intact());
        }
}

TEST(Dropout, DropsTheShareThatWasAskedForAndOthersNextStep) {
  Workspace workspace;
  const Shape shape{100'000};
  const Settings settings{.probability = 0.1};
  TestArray x(shape, Values(100'000, 1)), y(shape), mask(shape, DType::Bool), next(shape);
  const auto run = [&](TestArray& to, std::int64_t number) {
    set_state(workspace, number);
    dropout_forward(
        keyed(forward(OpKind::Dropout, {x.array()}, {to.array(), mask.array()}, settings), 5),
        workspace);
    return to.values();
  };
  const Values first = run(y, 0);
  double kept = 0;
  for (const double value : mask.values()) kept += value;
  EXPECT_NEAR(kept, 90'000, 4 * std::sqrt(100'000 * 0.1 * 0.9));  // four standard deviations
  EXPECT_EQ(run(next, 0), first);
  EXPECT_NE(run(next, 1), first);
}

TEST(Dropout, NotANumberStaysEvenWhereItIsDropped) {
  Workspace workspace;
  TestArray x(Shape{64}, Values(64, NAN)), y(Shape{64}), mask(Shape{64}, DType::Bool);
  dropout_forward(
      forward(OpKind::Dropout, {x.array()}, {y.array(), mask.array()}, {.probability = 0.5}),
      workspace);
  for (const double value : y.values()) EXPECT_TRUE(std::isnan(value));
}

TEST(DropPath, DropsWholeSamples) {
  Workspace workspace;
  set_state(workspace);
  const Settings settings{.probability = 0.3};
  struct Case {
    Shape shape;
    std::int64_t samples;
  };
  for (const Case& c : {Case{{64, 3, 5}, 64}, Case{{64, 33}, 64}, Case{{64, 3, 5}, 16},
                        Case{{64}, 64}, Case{{64, 2, 3, 4}, 1}})
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies) {
        TestArray x(c.shape, random_values(c.shape, 1), dtype, lie), y(c.shape, dtype, lie),
            mask(Shape{c.samples, 1, 1}, dtype), dx(c.shape, dtype, lie);
        drop_path_forward(
            keyed(forward(OpKind::DropPath, {x.array()}, {y.array(), mask.array()}, settings), 5),
            workspace);
        drop_path_backward(
            backward(OpKind::DropPath, {absent(c.shape)}, {absent(c.shape), mask.array()},
                     {x.array()}, {dx.array()}, settings),
            workspace);
        Values wanted = x.values();
        const std::size_t each = wanted.size() / static_cast<std::size_t>(c.samples);
        for (std::size_t i = 0; i < wanted.size(); ++i)
          wanted[i] *= static_cast<double>(uniform_at(404, 7, 5, i / each)) > 0.3 ? 1 / 0.7 : 0;
        ASSERT_LE(max_error(y.values(), wanted), 2 * epsilon_of(dtype) + 1e-6);
        ASSERT_EQ(dx.values(), y.values());
        ASSERT_TRUE(y.is_intact() && mask.is_intact() && dx.is_intact());
      }
}

TEST(Dropout, WithoutGradientOfTheOutputItIsZero) {
  Workspace workspace;
  TestArray mask(Shape{9}, Values(9, 1), DType::Bool), of_samples(Shape{9, 1, 1}, Values(9, 1)),
      dx(Shape{9}), dz(Shape{9});
  dropout_backward(backward(OpKind::Dropout, {absent({9})}, {absent({9}), mask.array()},
                            {absent({9})}, {dx.array()}),
                   workspace);
  drop_path_backward(backward(OpKind::DropPath, {absent({9})}, {absent({9}), of_samples.array()},
                              {absent({9})}, {dz.array()}),
                     workspace);
  EXPECT_EQ(dx.values(), Values(9, 0));
  EXPECT_EQ(dz.values(), Values(9, 0));
}

}  // namespace
}  // namespace tidemark::cpu::dropout_test
