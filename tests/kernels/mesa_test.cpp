// Mesa's quantizer: ranges, codes, and what they decode to.
#include "kernels/mesa/mesa.h"

#include "kernels/dither.h"
#include "kernels/stochastic_rounding.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::mesa_test {
namespace {

struct Case {
  Shape shape;
  std::int64_t groups, axis;
  int bits = 8;
};
const std::array cases = {
    Case{{1}, 1, 0}, Case{{31}, 1, 0}, Case{{2, 5, 96}, 3, 2}, Case{{2, 4, 33, 7}, 4, 1},
    Case{{2, 4, 33, 7}, 2, 1}, Case{{3, 1023}, 31, 1}, Case{{2, 3, 2000}, 1, 2},
    // Bytes that belong to two groups, or to none beyond the last element.
    Case{{2, 5, 96}, 3, 2, 4}, Case{{2, 4, 33, 7}, 4, 1, 4}, Case{{3, 1023}, 31, 1, 4},
    Case{{1}, 1, 0, 2}, Case{{2, 4, 3, 7}, 4, 1, 2}, Case{{2, 3, 2001}, 1, 2, 2}};

Call call_of(Pass pass, const Array& from, const Array& to, const Case& c, GroupRange* ranges,
             bool wraps = false) {
  Call call;
  call.pass = pass;
  call.inputs = {from}, call.outputs = {to};
  call.key = 5;
  call.quantizer = {
      .groups = c.groups, .group_axis = c.axis, .ranges = ranges, .wraps = wraps, .bits = c.bits};
  if (pass == Pass::Dequantize) call.inputs = {coded(from.data, c.shape, call.quantizer)};
  return call;
}

// Of consecutive elements, the first of a byte in its lowest bits.
Values codes_in(TestArray& array, std::size_t count, int bits) {
  const std::uint8_t* const bytes = elements<std::uint8_t>(array.array());
  const auto per_byte = static_cast<std::size_t>(8 / bits);
  Values codes;
  for (std::size_t i = 0; i < count; ++i)
    codes.push_back(bytes[i / per_byte] >> (i % per_byte * static_cast<std::size_t>(bits)) &
                    ((1 << bits) - 1));
  return codes;
}

std::size_t group_of(std::size_t i, const Case& c) {
  std::size_t inner = 1;
  for (std::size_t k = static_cast<std::size_t>(c.axis) + 1; k < c.shape.rank(); ++k)
    inner *= static_cast<std::size_t>(c.shape[k]);
  const auto extent = static_cast<std::size_t>(c.shape[static_cast<std::size_t>(c.axis)]);
  return i / inner % extent / (extent / static_cast<std::size_t>(c.groups));
}

struct Range {
  double range, minimum;
};
std::vector<Range> ranges_of(const Values& x, const Case& c) {
  std::vector<Range> result(static_cast<std::size_t>(c.groups));
  for (std::size_t g = 0; g < result.size(); ++g) {
    double least = 1e300, most = -1e300;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (group_of(i, c) == g) least = std::min(least, x[i]), most = std::max(most, x[i]);
    result[g] = {most - least, least};
  }
  return result;
}

TEST(Mesa, RangesAreExactAtFirstAndThenMove) {
  for (const Case& c : cases) {
    Workspace workspace;
    std::vector<GroupRange> ranges(static_cast<std::size_t>(c.groups), GroupRange{NAN, NAN});
    std::vector<Range> wanted;
    for (int step = 0; step < 3; ++step) {
      workspace.state.number = step;
      TestArray x(c.shape, random_values(c.shape, static_cast<unsigned>(step))),
          codes(c.shape, DType::UInt8);
      quantize(call_of(Pass::Quantize, x.array(), codes.array(), c, ranges.data()), workspace);
      const std::vector<Range> now = ranges_of(x.values(), c);
      if (step == 0) wanted = now;
      for (std::size_t g = 0; g < now.size(); ++g) {
        if (step > 0)
          wanted[g] = {0.9 * wanted[g].range + 0.1 * now[g].range,
                       0.9 * wanted[g].minimum + 0.1 * now[g].minimum};
        ASSERT_NEAR(static_cast<double>(ranges[g].range), wanted[g].range, 1e-5);
        ASSERT_NEAR(static_cast<double>(ranges[g].minimum), wanted[g].minimum, 1e-5);
      }
    }
  }
}

TEST(Mesa, CodesAreThePublishedFormulaAndDecodeWithinOneLevel) {
  for (const Case& c : cases)
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies) {
        Workspace workspace;
        workspace.state.seed = 404;
        std::vector<GroupRange> ranges(static_cast<std::size_t>(c.groups));
        TestArray x(c.shape, random_values(c.shape, 1), dtype, lie), codes(c.shape, DType::UInt8),
            back(c.shape, dtype, lie);
        quantize(call_of(Pass::Quantize, x.array(), codes.array(), c, ranges.data()), workspace);
        dequantize(call_of(Pass::Dequantize, codes.array(), back.array(), c, ranges.data()),
                   workspace);
        ASSERT_TRUE(codes.is_intact() && back.is_intact());
        const Values values = x.values(), decoded = back.values();
        const Values got = codes_in(codes, values.size(), c.bits);
        const double largest = (1 << c.bits) - 1;
        std::size_t differing = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::size_t g = group_of(i, c);
          const double range = static_cast<double>(ranges[g].range),
                       minimum = static_cast<double>(ranges[g].minimum);
          if (range == 0) continue;
          const double level = (values[i] - minimum) * largest / range +
                               static_cast<double>(rounding_at(404, 0, 5, i));
          const double wanted = std::clamp(std::nearbyint(level), 0.0, largest);
          ASSERT_LE(std::abs(got[i] - wanted), 1);
          differing += got[i] == wanted ? 0 : 1;  // fp32 may fall to the other side of a half
          ASSERT_NEAR(decoded[i], values[i],
                      1.001 * range / largest + 4 * epsilon_of(dtype) * std::abs(values[i]));
        }
        ASSERT_LE(differing, 1 + values.size() / 1000);
      }
}

// E[x̂] = x: over many keys the mean error goes to 0 with the root of their number.
void expect_right_on_average(const Case& c) {
  Workspace workspace;
  TestArray x(c.shape, random_values(c.shape, 1)), codes(c.shape, DType::UInt8), back(c.shape);
  GroupRange ranges[1];
  Values mean(33);
  const int keys = 4000;
  for (int key = 0; key < keys; ++key) {
    Call call = call_of(Pass::Quantize, x.array(), codes.array(), c, ranges);
    call.key = static_cast<std::uint64_t>(key);
    quantize(call, workspace);
    dequantize(call_of(Pass::Dequantize, codes.array(), back.array(), c, ranges), workspace);
    for (std::size_t i = 0; i < 33; ++i) mean[i] += back.values()[i] / keys;
  }
  const double level = static_cast<double>(ranges[0].range) / ((1 << c.bits) - 1);
  // a level's standard deviation is at most 1/2; five of the mean's
  for (std::size_t i = 0; i < 33; ++i)
    EXPECT_NEAR(mean[i], x.values()[i], 5 * 0.5 * level / std::sqrt(keys));
}

TEST(Mesa, RoundingIsRightOnAverage) {
  for (const int bits : {2, 4, 8}) expect_right_on_average({{33}, 1, 0, bits});
}

// Values outside of the running range: clipped as intended, or wrapped as released.
TEST(Mesa, ValuesAboveTheRangeAreClippedOrWrap) {
  Workspace workspace;
  const Case c{{4}, 1, 0};
  const auto second_step = [&](bool wraps) {
    GroupRange ranges[1];
    TestArray first(c.shape, {0, 1, 0.5, 0.25}), second(c.shape, {0, 2, 1, -1}),
        codes(c.shape, DType::UInt8);
    workspace.state.number = 0;
    quantize(call_of(Pass::Quantize, first.array(), codes.array(), c, ranges, wraps), workspace);
    workspace.state.number = 1;
    quantize(call_of(Pass::Quantize, second.array(), codes.array(), c, ranges, wraps), workspace);
    // range 0.9·1 + 0.1·3 = 1.2, minimum 0.9·0 − 0.1·1 = −0.1
    EXPECT_NEAR(static_cast<double>(ranges[0].range), 1.2, 1e-6);
    EXPECT_NEAR(static_cast<double>(ranges[0].minimum), -0.1, 1e-6);
    return codes.values();
  };
  const Values clipped = second_step(false), wrapped = second_step(true);
  EXPECT_EQ(clipped[1], 255);
  EXPECT_NEAR(wrapped[1], 446.25 - 256, 1);
  EXPECT_EQ(clipped[3], 0);
  EXPECT_EQ(wrapped[3], 0);
  EXPECT_EQ(clipped[0], wrapped[0]);
}

TEST(Mesa, ConstantsDecodeToThemselvesAndNotANumberShows) {
  Workspace workspace;
  const Case c{{2, 8}, 2, 0};
  Values values(16, 3);
  values[12] = NAN;
  TestArray x(c.shape, values), codes(c.shape, DType::UInt8), back(c.shape);
  GroupRange ranges[2];
  quantize(call_of(Pass::Quantize, x.array(), codes.array(), c, ranges), workspace);
  dequantize(call_of(Pass::Dequantize, codes.array(), back.array(), c, ranges), workspace);
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_EQ(max_error({back.values()[i]}, {i < 8 ? 3 : NAN}), 0) << i;
}

// A second micro-batch of the first step moves the range; it does not begin anew.
TEST(Mesa, RangesOfTheFirstStepRunOverItsMicroBatches) {
  Workspace workspace;
  const Case c{{4}, 1, 0};
  GroupRange ranges[1];
  TestArray first(c.shape, {0, 1, 0.5, 0.25}), second(c.shape, {0, 2, 1, -1}),
      codes(c.shape, DType::UInt8);
  quantize(call_of(Pass::Quantize, first.array(), codes.array(), c, ranges), workspace);
  Call call = call_of(Pass::Quantize, second.array(), codes.array(), c, ranges);
  call.quantizer.continues = true;
  quantize(call, workspace);
  EXPECT_NEAR(static_cast<double>(ranges[0].range), 1.2, 1e-6);  // 0.9·1 + 0.1·3
  EXPECT_NEAR(static_cast<double>(ranges[0].minimum), -0.1, 1e-6);
}

// Four elements of two bits fill a byte, and nothing behind the last one is written.
TEST(Mesa, ShortCodesArePacked) {
  Workspace workspace;
  const Case c{{6}, 1, 0, 2};
  GroupRange ranges[1];
  TestArray x(c.shape, {0, 1, 2, 3, 3, 0}), codes(c.shape, DType::UInt8);
  std::uint8_t* const bytes = elements<std::uint8_t>(codes.array());
  for (int i = 0; i < 6; ++i) bytes[i] = 0xaa;
  quantize(call_of(Pass::Quantize, x.array(), codes.array(), c, ranges), workspace);
  EXPECT_EQ(bytes[0], 0b11'10'01'00);
  EXPECT_EQ(bytes[1], 0b00'11);
  EXPECT_EQ(bytes[2], 0xaa);
}

/// One step of the delayed quantizer as a replay runs it.
Values delayed_codes(TestArray& x, const Case& c, GroupRange* ranges, Workspace& workspace,
                     std::uint64_t key = 5) {
  TestArray codes(c.shape, DType::UInt8);
  Call call = call_of(Pass::Quantize, x.array(), codes.array(), c, ranges);
  call.key = key, call.quantizer.delayed = true;
  move_range(call, workspace);
  quantize(call, workspace);
  return codes_in(codes, x.values().size(), c.bits);
}

// Steps of [0, 1], [0, 2] and [−1, 1]: by the first's own range, by the first's again, which clips
// what is above, and by 0.9·1 + 0.1·2 = 1.1.
TEST(Mesa, DelayedCodesAreByTheRangeBeforeThisStep) {
  Workspace workspace;
  const Case c{{4}, 1, 0};
  GroupRange ranges[1];
  const auto step = [&](std::int64_t number, const Values& values) {
    workspace.state.number = number;
    TestArray x(c.shape, values);
    return delayed_codes(x, c, ranges, workspace);
  };
  const Values first = step(0, {0, 1, 0.5, 0.25}), second = step(1, {0, 2, 1, 0.5});
  EXPECT_EQ(first[0], 0);
  EXPECT_EQ(first[1], 255);
  EXPECT_NEAR(first[2], 127.5, 1);
  EXPECT_NEAR(static_cast<double>(ranges[0].range), 1, 1e-6);
  EXPECT_EQ(second[1], 255);
  EXPECT_NEAR(second[2], 255, 1);
  EXPECT_NEAR(second[3], 127.5, 1);
  const Values third = step(2, {0, -1, 1, 0.5});
  EXPECT_NEAR(static_cast<double>(ranges[0].range), 1.1, 1e-6);
  EXPECT_EQ(third[1], 0);
  EXPECT_NEAR(third[2], 255 / 1.1, 1);
  step(3, {0, 0, 0, 0});  // the third's: 0.9·1.1 + 0.1·2, from −0.1 on
  EXPECT_NEAR(static_cast<double>(ranges[0].range), 1.19, 1e-6);
  EXPECT_NEAR(static_cast<double>(ranges[0].minimum), -0.1, 1e-6);
}

// The second micro-batch of the first step codes by the range of the first one.
TEST(Mesa, DelayedRangesOfTheFirstStepRunOverItsMicroBatches) {
  Workspace workspace;
  const Case c{{4}, 1, 0};
  GroupRange ranges[1];
  TestArray first(c.shape, {0, 1, 0.5, 0.25}), second(c.shape, {0, 3, 0.5, 0});
  delayed_codes(first, c, ranges, workspace);
  TestArray codes(c.shape, DType::UInt8);
  Call call = call_of(Pass::Quantize, second.array(), codes.array(), c, ranges);
  call.quantizer.delayed = call.quantizer.continues = true;
  move_range(call, workspace);
  quantize(call, workspace);
  EXPECT_NEAR(static_cast<double>(ranges[0].range), 1, 1e-6);
  EXPECT_NEAR(codes.values()[2], 127.5, 1);
}

// Over many keys the mean error goes to 0 but for what bytes of dither are too coarse for: 1/512.
TEST(Mesa, DitherIsRightOnAverage) {
  for (const int bits : {2, 4, 8}) {
    Workspace workspace;
    const Case c{{33}, 1, 0, bits};
    TestArray x(c.shape, random_values(c.shape, 1));
    GroupRange ranges[1];
    Values mean(33);
    const int keys = 4000;
    for (int key = 0; key < keys; ++key) {
      const Values codes = delayed_codes(x, c, ranges, workspace, static_cast<std::uint64_t>(key));
      for (std::size_t i = 0; i < 33; ++i) mean[i] += codes[i] / keys;
    }
    const double levels = (1 << bits) - 1;
    for (std::size_t i = 0; i < 33; ++i) {
      const double level = (x.values()[i] - static_cast<double>(ranges[0].minimum)) * levels /
                           static_cast<double>(ranges[0].range);
      EXPECT_NEAR(mean[i], level, 5 * 0.5 / std::sqrt(keys) + 1.0 / 512) << bits << ", " << i;
    }
  }
}

// Neighbours' dither is not alike, nor that of one element in two steps: correlations of 2^16
// uniform numbers are below 5 / √n.
TEST(Mesa, DitherOfNeighboursAndStepsIsIndependent) {
  constexpr int count = 1 << 16;
  const auto numbers = [](std::int64_t step) {
    Values found;
    const std::uint64_t key = step_dither(7, step, 11);
    for (std::uint64_t i = 0; i < count; ++i)
      found.push_back(static_cast<double>(dither_of(dither_word(key, i / 4), i)));
    return found;
  };
  const Values now = numbers(3), next = numbers(4);
  double mean = 0, own = 0, neighbours = 0, fifth = 0, steps = 0;
  for (std::size_t i = 0; i + 4 < count; ++i) {
    mean += now[i], own += now[i] * now[i];
    neighbours += now[i] * now[i + 1], fifth += now[i] * now[i + 4], steps += now[i] * next[i];
  }
  const double bound = 5 / std::sqrt(count);
  EXPECT_NEAR(own / count, 1.0 / 12, bound / 12);
  for (const double sum : {neighbours, fifth, steps}) EXPECT_NEAR(12 * sum / count, 0, bound);
  EXPECT_NEAR(mean / count, 0, bound / std::sqrt(12));
}

TEST(Mesa, SameStepAndKeyGiveTheSameCodes) {
  Workspace workspace;
  const Case c{{3, 1023}, 1, 1};
  TestArray x(c.shape, random_values(c.shape, 1)), a(c.shape, DType::UInt8),
      b(c.shape, DType::UInt8);
  GroupRange ranges[1];
  quantize(call_of(Pass::Quantize, x.array(), a.array(), c, ranges), workspace);
  quantize(call_of(Pass::Quantize, x.array(), b.array(), c, ranges), workspace);
  EXPECT_EQ(a.values(), b.values());
}

}  // namespace
}  // namespace tidemark::cpu::mesa_test
