// CUDA kernels of floats of eight bits, emulated, against their CPU twins: equal to the bit.
#include "kernels/float8/float8.cu"

#include "tests/emulation/twin.h"

namespace tidemark::float8_test {
namespace {

struct Case {
  Shape shape;
  std::int64_t groups;
};
// Groups of one vector, of several, of none that is whole; longer than a warp; one for all.
const std::array cases = {Case{{2, 5, 64}, 40}, Case{{2, 5, 64}, 5}, Case{{3, 33}, 3},
                          Case{{6, 7}, 6},      Case{{3, 1024}, 3},  Case{{3, 1023}, 1},
                          Case{{40, 1024}, 1},  Case{{1}, 1},        Case{{300, 16}, 300}};

TEST(Float8Twins, CodesAndMagnitudesAreEqual) {
  for (const Case& c : cases)
    for (const DType dtype : data_dtypes) {
      CallMaker maker;
      maker.call.pass = Pass::Quantize;
      maker.input(c.shape, dtype).output(c.shape, DType::Float8).output({c.groups});
      expect_twins(maker.finish(0), cpu::quantize_to_float8, cuda::quantize_to_float8);
    }
}

TEST(Float8Twins, ValuesAreEqual) {
  for (const Case& c : cases)
    for (const DType dtype : data_dtypes) {
      Values codes;
      for (std::int64_t i = 0; i < numel(c.shape); ++i)
        codes.push_back(static_cast<double>(i * 37 % 256));
      CallMaker maker;
      maker.call.pass = Pass::Dequantize;
      maker.input_of(c.shape, codes, DType::Float8).input({c.groups}).output(c.shape, dtype);
      expect_twins(maker.finish(0), cpu::dequantize_from_float8, cuda::dequantize_from_float8);
    }
}

TEST(Float8Twins, ZerosAndBrokenValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double odd : {0.0, 0x1p-120, std::nan(""), infinity, -infinity})
    for (const std::int64_t groups : {1, 4}) {
      Values x(64, odd == 0 ? 0 : 1);
      x[40] = odd;
      CallMaker maker;
      maker.call.pass = Pass::Quantize;
      maker.input_of({64}, x, DType::Float32).output({64}, DType::Float8).output({groups});
      expect_twins(maker.finish(0), cpu::quantize_to_float8, cuda::quantize_to_float8);
    }
}

}  // namespace
}  // namespace tidemark::float8_test
