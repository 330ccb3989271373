// Linears of stored weights, emulated, against their CPU twins.
#include "kernels/stored_linear/stored_linear.cu"

#include "tests/emulation/twin.h"

namespace tidemark::stored_linear_test {
namespace {

constexpr std::int64_t in = 50, out = 13, factors = (in * out + 63) / 64;

Values bytes(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  Values values(static_cast<std::size_t>(count));
  for (double& x : values) x = static_cast<double>(random() % 256);
  return values;
}

Values positive(std::int64_t count, unsigned seed) {
  Values values = random_values({count}, seed, 0.1);
  for (double& x : values) x = std::abs(x) + 0.01;
  return values;
}

/// The weight's parts behind x.
void add_weight(CallMaker& maker, Formula formula, bool nests) {
  if (formula == Formula::Int8Linear) {
    maker.input_of({out, in}, bytes(in * out, 3), DType::UInt8);
    maker.input_of({out}, positive(out, 4), DType::Float32);
    return;
  }
  maker.input_of({in * out / 2, 1}, bytes(in * out / 2, 3), DType::UInt8);
  if (nests)
    maker.input_of({factors}, bytes(factors, 5), DType::UInt8);
  else
    maker.input_of({factors}, positive(factors, 5), DType::Float32);
  maker.input_of({16}, Values(std::begin(nf4_numbers), std::end(nf4_numbers)), DType::Float32);
  if (!nests) return;
  maker.input_of({1}, {0.25}, DType::Float32);
  maker.input_of({256}, random_values({256}, 6, 0.3), DType::Float32);
}

void expect_stored_linear(Formula formula, bool nests, DType dtype, Lie lie, bool has_bias) {
  const bool is_int8 = formula == Formula::Int8Linear;
  const double ulps = dtype == DType::Float32 ? 64 : 2;
  const Shape x{2, 3, in}, y{2, 3, out};
  CallMaker up;
  up.call.kind = OpKind::Opaque, up.call.formula = formula;
  up.input(x, dtype, lie);
  add_weight(up, formula, nests);
  if (has_bias) up.input({out}, dtype);
  up.output(y, dtype, lie);
  // A sum that rounds to the other fp16 number differs by one of its 2^-11 in fp32.
  expect_twins(up.finish(is_int8 && dtype == DType::Float32 ? 0x1p14 : ulps),
               is_int8 ? cpu::int8_linear_forward : cpu::nf4_linear_forward,
               is_int8 ? cuda::int8_linear_forward : cuda::nf4_linear_forward);
  CallMaker down;
  down.call.kind = OpKind::Opaque, down.call.formula = formula, down.call.pass = Pass::Backward;
  down.absent_input(x, dtype);
  add_weight(down, formula, nests);
  if (has_bias) down.absent_input({out}, dtype);
  down.absent_output(y, dtype).d_output(y, dtype, lie).d_input(x, dtype, lie);
  expect_twins(down.finish(ulps), cpu::stored_linear_backward, cuda::stored_linear_backward);
}

TEST(StoredLinearTwins, FourAndEightBits) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies)
      for (const bool has_bias : {true, false}) {
        expect_stored_linear(Formula::Nf4Linear, false, dtype, lie, has_bias);
        expect_stored_linear(Formula::Nf4Linear, true, dtype, lie, has_bias);
        expect_stored_linear(Formula::Int8Linear, false, dtype, lie, has_bias);
      }
}

}  // namespace
}  // namespace tidemark::stored_linear_test
