// The fused attention kernels, emulated, against the CPU twins.
#include "kernels/attention/attention.cu"

#include "kernels/attention/attention_backward.cu"
#include "tests/emulation/twin.h"

namespace tidemark::attention_test {
namespace {

struct AttentionCase {
  std::int64_t batches = 1, heads = 2, key_heads = 2, tokens = 5, keys = 5, d = 8, e = 8;
  bool causal = false;
  std::int64_t window = 0;
  std::optional<Shape> bias{};
  DType dtype = DType::Float32;
  Lie lie = Lie::Dense;
  bool saves_lse = true;
};

/// fp32: sums in another order, and two ways to compute exp. 16 bits: weights and errors are
/// rounded to the dtype on the way, which the CPU does not do.
double attention_ulps(DType dtype) { return dtype == DType::Float32 ? 256 : 8; }

CallMaker maker_of(const AttentionCase& c) {
  CallMaker maker;
  maker.call.kind = OpKind::FlashAttention;
  maker.call.settings.causal = c.causal, maker.call.settings.window = c.window;
  maker.input({c.batches, c.heads, c.tokens, c.d}, c.dtype, c.lie);
  maker.input({c.batches, c.key_heads, c.keys, c.d}, c.dtype, c.lie);
  maker.input({c.batches, c.key_heads, c.keys, c.e}, c.dtype, c.lie);
  if (c.bias) maker.input(*c.bias, c.dtype, c.lie);
  return maker;
}

/// y and lse as the CPU computes them: what the backward was given.
struct Saved {
  Values y, lse;
};
Saved forward_of(const AttentionCase& c) {
  CallMaker maker = maker_of(c);
  maker.output({c.batches, c.heads, c.tokens, c.e}, c.dtype);
  maker.output({c.batches, c.heads, c.tokens});
  TwinCase test = maker.finish();
  cpu::Workspace workspace;
  cpu::flash_attention_forward(test.bind(test.memory), workspace);
  const std::size_t last = test.memory.size() - 1;
  return {test.memory[last - 1].values(), test.memory[last].values()};
}

void expect_attention(const AttentionCase& c) {
  CallMaker forward = maker_of(c);
  forward.output({c.batches, c.heads, c.tokens, c.e}, c.dtype, c.lie);
  if (c.saves_lse) forward.output({c.batches, c.heads, c.tokens});
  expect_twins(forward.finish(attention_ulps(c.dtype)), cpu::flash_attention_forward,
               cuda::flash_attention_forward);

  const Saved saved = forward_of(c);
  CallMaker backward = maker_of(c);
  backward.call.pass = Pass::Backward;
  backward.saved({c.batches, c.heads, c.tokens, c.e}, saved.y, c.dtype, c.lie);
  if (c.saves_lse) backward.saved({c.batches, c.heads, c.tokens}, saved.lse);
  backward.d_output({c.batches, c.heads, c.tokens, c.e}, c.dtype, c.lie);
  backward.d_input({c.batches, c.heads, c.tokens, c.d}, c.dtype, c.lie);
  backward.d_input({c.batches, c.key_heads, c.keys, c.d}, c.dtype, c.lie);
  backward.d_input({c.batches, c.key_heads, c.keys, c.e}, c.dtype, c.lie);
  if (c.bias) backward.d_input(*c.bias, c.dtype, c.lie);
  expect_twins(backward.finish(attention_ulps(c.dtype)), cpu::flash_attention_backward,
               cuda::flash_attention_backward);
}

TEST(AttentionTwins, AnyDtypeAndLayout) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies) expect_attention({.dtype = dtype, .lie = lie});
}

TEST(AttentionTwins, LengthsThatNoTileDivides) {
  for (const std::int64_t tokens : {1, 31, 33, 67})
    expect_attention({.heads = 1, .key_heads = 1, .tokens = tokens, .keys = 70, .d = 12, .e = 20});
}

TEST(AttentionTwins, EveryWidthOfHeads) {
  for (const DType dtype : {DType::Float32, DType::BFloat16})
    for (const std::int64_t d : {1, 33, 80, 160})
      expect_attention(
          {.heads = 1, .key_heads = 1, .tokens = 19, .keys = 18, .d = d, .e = d, .dtype = dtype});
}

TEST(AttentionTwins, CausalAndWindows) {
  for (const bool causal : {false, true})
    for (const std::int64_t window : {0, 1, 7, 40}) {
      if (!causal && window == 0) continue;
      expect_attention({.heads = 1,
                        .key_heads = 1,
                        .tokens = 41,
                        .keys = 37,
                        .causal = causal,
                        .window = window});
    }
}

// Tiles of which every query sees every key take another way than those that a mask or the end
// cuts, and a last tile has warps without any query or key. Borders that meet the tiles', and do
// not.
TEST(AttentionTwins, WholeTilesBesideCutOnes) {
  for (const DType dtype : {DType::Float32, DType::BFloat16}) {
    const AttentionCase c{.heads = 1, .key_heads = 1, .tokens = 81, .keys = 133, .dtype = dtype};
    expect_attention(c);
    for (const std::int64_t window : {0, 16, 65}) {
      AttentionCase causal = c;
      causal.tokens = causal.keys = 129, causal.causal = true, causal.window = window;
      expect_attention(causal);
    }
    AttentionCase with_bias = c;
    with_bias.bias = Shape{81, 133};
    expect_attention(with_bias);
  }
}

TEST(AttentionTwins, QueryHeadsThatShareKeys) {
  expect_attention({.batches = 2, .heads = 4, .key_heads = 2, .tokens = 9, .keys = 11});
  expect_attention({.heads = 3, .key_heads = 1, .causal = true});
}

TEST(AttentionTwins, BiasesOfEveryShape) {
  for (const Shape& bias : {Shape{4, 2, 5, 6}, Shape{1, 2, 5, 6}, Shape{2, 2, 5, 6}, Shape{2, 5, 6},
                            Shape{5, 6}, Shape{4, 1, 1, 6}, Shape{1, 1, 5, 1}})
    expect_attention({.batches = 4, .keys = 6, .bias = bias});
}

// Many batches that share a bias are summed in several sums first, as the windows of Swin.
TEST(AttentionTwins, ABiasThatManyBatchesShare) {
  for (const Shape& bias : {Shape{1, 2, 5, 6}, Shape{2, 2, 5, 6}, Shape{5, 6}})
    expect_attention({.batches = 34, .keys = 6, .bias = bias});
}

TEST(AttentionTwins, WithoutTheLogSumExpItIsComputedAgain) {
  expect_attention({.tokens = 33, .keys = 35, .causal = true, .saves_lse = false});
}

TEST(AttentionTwins, MixedDtypesAreComputedInFp32) {
  CallMaker maker;
  maker.call.kind = OpKind::FlashAttention;
  maker.input({1, 2, 5, 8}, DType::BFloat16)
      .input({1, 2, 6, 8})
      .input({1, 2, 6, 8}, DType::Float16);
  maker.output({1, 2, 5, 8}, DType::Float16).output({1, 2, 5}, DType::Float32, Lie::Reversed);
  expect_twins(maker.finish(attention_ulps(DType::Float32)), cpu::flash_attention_forward,
               cuda::flash_attention_forward);
}

TEST(AttentionTwins, RowsThatSeeNothingAndRowsWithoutANumber) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Values bias(static_cast<std::size_t>(5 * 6), 0.0);
  for (std::size_t j = 0; j < 6; ++j) bias[6 + j] = -infinity;
  bias[2 * 6 + 3] = nan, bias[3 * 6 + 1] = infinity;
  CallMaker maker;
  maker.call.kind = OpKind::FlashAttention;
  maker.input({1, 1, 5, 8}).input({1, 1, 6, 8}).input({1, 1, 6, 8});
  maker.input_of({5, 6}, bias, DType::Float32).output({1, 1, 5, 8}).output({1, 1, 5});
  expect_twins(maker.finish(attention_ulps(DType::Float32)), cpu::flash_attention_forward,
               cuda::flash_attention_forward);
}

// Padding: a query whose every key a mask hides, by as much as models hide it, and whose gradient
// is zero. In the forward its weights are alike, also where the mask is the dtype's least number,
// which by powers of two would be beyond it; in the backward nothing of it is left.
TEST(AttentionTwins, RowsThatAMaskHidesWholly) {
  for (const double hidden : {-1e9, -1e30, -3.402823466e38})
    for (const bool causal : {false, true})
      for (const std::int64_t d : {8, 160}) {
        const AttentionCase c{.tokens = 5, .keys = 9, .d = d, .e = d, .causal = causal};
        Values bias(45);
        for (std::size_t j = 0; j < 9; ++j) bias[2 * 9 + j] = hidden;
        const auto maker = [&] {
          CallMaker made = maker_of(c);
          made.input_of({5, 9}, bias, DType::Float32);
          return made;
        };
        CallMaker alone = maker(), forward = maker();
        alone.output({1, 2, 5, d});
        expect_twins(alone.finish(attention_ulps(c.dtype)), cpu::flash_attention_forward,
                     cuda::flash_attention_forward);
        // The log-sum-exp of such a row is any number that large: the GPU's is of its own scores.
        forward.output({1, 2, 5, d}).output({1, 2, 5});
        const std::vector<TestArray> made =
            run_emulated(forward.finish(), cuda::flash_attention_forward);
        CallMaker backward = maker();
        backward.call.pass = Pass::Backward;
        backward.saved({1, 2, 5, d}, made[4].values()).saved({1, 2, 5}, made[5].values());
        backward.d_output({1, 2, 5, d});
        backward.d_input({1, 2, 5, d}).d_input({1, 2, 9, d}).d_input({1, 2, 9, d});
        TwinCase gradients = backward.finish(attention_ulps(c.dtype));
        float* const dy = elements<float>(gradients.memory[6].array());
        for (std::int64_t h = 0; h < 2; ++h) std::fill_n(dy + (h * 5 + 2) * d, d, 0.0f);
        expect_twins(gradients, cpu::flash_attention_backward, cuda::flash_attention_backward);
      }
}

TEST(AttentionTwins, AnAbsentGradientIsZero) {
  CallMaker maker;
  maker.call.kind = OpKind::FlashAttention, maker.call.pass = Pass::Backward;
  for (int i = 0; i < 3; ++i) maker.input({1, 2, 5, 8});
  maker.output({1, 2, 5, 8}).absent_d_output({1, 2, 5, 8});
  for (int i = 0; i < 3; ++i) maker.d_input({1, 2, 5, 8});
  expect_twins(maker.finish(0), cpu::flash_attention_backward, cuda::flash_attention_backward);
}

TEST(AttentionTwins, HeadsThatAreTooWideAreRefused) {
  CallMaker maker = maker_of({.d = 257, .e = 257});
  maker.output({1, 2, 5, 257});
  EXPECT_THROW(run_emulated(maker.finish(), cuda::flash_attention_forward), InputError);
}

}  // namespace
}  // namespace tidemark::attention_test
