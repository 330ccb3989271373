// Kernels that work with Mesa's codes: a backward computes from codes what it computes from their
// values, and a forward notes the extremes of what it writes.
#include <gtest/gtest.h>

#include "kernels/cpu/workspace.h"
#include "kernels/dither.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark::profiler::mesa_kernels_test {
namespace {

const Shape shape{3, 5, 96}, width{96}, rows{3, 5, 1};

/// Shapes of the op's operands, none of them spread; inputs, then outputs.
struct Operation {
  std::vector<Shape> inputs, outputs;
};

Operation operation_of(OpKind kind) {
  switch (kind) {
    case OpKind::LayerNorm:
      return {{shape, width, width}, {shape, rows, rows}};
    case OpKind::RmsNorm:
      return {{shape, width}, {shape, rows}};
    case OpKind::MsLayerNorm:
    case OpKind::MsRmsNorm:
      return {{shape}, {shape, rows}};
    case OpKind::Mul:
      return {{shape, shape}, {shape}};
    case OpKind::GeluComposed:
      return {{shape}, {shape, shape, shape, shape}};
    default:
      return {{shape}, {shape}};
  }
}

/// All saved operands and gradients of an op, one of the saved ones as codes.
class Decoded {
 public:
  explicit Decoded(OpKind kind, int bit, DType dtype, Lie lie, int bits)
      : kind_(kind), bit_(bit), bits_(bits) {
    const Operation op = operation_of(kind);
    unsigned seed = 1;
    // Positive, as 1/σ is; saved numbers need not belong together here.
    const auto random = [&](const Shape& of) {
      Values values = random_values(of, seed++, 1, dtype);
      for (double& x : values) x = std::abs(x);
      return values;
    };
    const auto numbers_dtype = [&](const Shape& of) { return of == rows ? DType::Float32 : dtype; };
    for (const Shape& of : op.inputs) inputs_.emplace_back(of, random(of), numbers_dtype(of), lie);
    for (const Shape& of : op.outputs)
      outputs_.emplace_back(of, random(of), numbers_dtype(of), lie);
    d_output_.emplace_back(shape, random_values(shape, seed++, 1, dtype), dtype, lie);
    Values codes = random_values(shape, seed++);
    for (double& code : codes) code = std::fmod(std::floor(std::abs(code) * 100), 256);
    codes_.emplace_back(shape, codes, DType::UInt8);
    for (int g = 0; g < groups; ++g) ranges_.push_back({3.0f + static_cast<float>(g), -1.5f});
  }

  /// The gradients, with the operand as codes or as what they decode to.
  std::vector<Values> gradients(bool as_codes) {
    const Array codes =
        coded(codes_[0].array().data, shape,
              {.groups = groups, .group_axis = 2, .ranges = ranges_.data(), .bits = bits_});
    TestArray values(shape);
    Call decode;
    decode.pass = Pass::Dequantize, decode.inputs = {codes}, decode.outputs = {values.array()};
    cpu::Workspace workspace;
    cpu::run(decode, workspace);

    Call call;
    call.pass = Pass::Backward, call.kind = kind_;
    std::vector<TestArray> results;
    for (TestArray& input : inputs_) {
      call.inputs.push_back(input.array());
      results.emplace_back(input.array().shape, input.array().dtype);
    }
    for (TestArray& output : outputs_) call.outputs.push_back(output.array());
    Array& operand = bit_ < 16 ? call.inputs[static_cast<std::size_t>(bit_)]
                               : call.outputs[static_cast<std::size_t>(bit_ - 16)];
    operand = as_codes ? codes : values.array();
    call.d_outputs.assign(outputs_.size(), absent());
    call.d_outputs[0] = d_output_[0].array();
    for (TestArray& result : results) call.d_inputs.push_back(result.array());
    cpu::run(call, workspace);
    std::vector<Values> all;
    for (const TestArray& result : results) all.push_back(result.values());
    return all;
  }

 private:
  static constexpr int groups = 4;
  OpKind kind_;
  int bit_, bits_;
  std::vector<TestArray> inputs_, outputs_, d_output_, codes_;
  std::vector<GroupRange> ranges_;
};

TEST(DecodedOperands, GiveTheGradientsOfTheirValues) {
  std::size_t cases = 0;
  for (const OpRow& row : op_rows)
    for (Operands bits = decoded_operands(row.value); bits != 0; bits &= bits - 1)
      for (const DType dtype : data_dtypes)
        for (const int code_width : {2, 4, 8}) {
          const Lie lie = code_width == 8 ? Lie::Reversed : Lie::Dense;
          Decoded op(row.value, __builtin_ctz(bits), dtype, lie, code_width);
          const std::vector<Values> of_codes = op.gradients(true), of_values = op.gradients(false);
          ASSERT_EQ(of_codes.size(), of_values.size());
          for (std::size_t i = 0; i < of_codes.size(); ++i)
            EXPECT_EQ(max_error(of_codes[i], of_values[i]), 0)
                << row.name << ", operand " << __builtin_ctz(bits) << ", gradient " << i;
          ++cases;
        }
  EXPECT_GE(cases, 9u * 14);  // fourteen operands of ten ops today
}

// x̂ is less than a step r/L from x, and the slope of GELU's derivative is 2φ(0) = 0.798 at most.
TEST(DecodedOperands, ErrByNoMoreThanTheirStepAllows) {
  for (const int code_width : {2, 4, 8}) {
    TestArray x(shape, random_values(shape, 1)), dy(shape, random_values(shape, 2)),
        bytes(shape, DType::UInt8), exact(shape), found(shape);
    std::vector<GroupRange> ranges(4);
    const Quantizer quantizer{
        .groups = 4, .group_axis = 2, .ranges = ranges.data(), .bits = code_width};
    cpu::Workspace workspace;
    Call quantize;
    quantize.pass = Pass::Quantize, quantize.key = 5, quantize.quantizer = quantizer;
    quantize.inputs = {x.array()}, quantize.outputs = {bytes.array()};
    cpu::run(quantize, workspace);
    const auto backward = [&](const Array& saved, const Array& dx) {
      Call call;
      call.pass = Pass::Backward, call.kind = OpKind::Gelu;
      call.inputs = {saved}, call.outputs = {absent()};
      call.d_outputs = {dy.array()}, call.d_inputs = {dx};
      cpu::run(call, workspace);
    };
    backward(x.array(), exact.array());
    backward(coded(bytes.array().data, shape, quantizer), found.array());
    double largest = 0;
    for (std::size_t i = 0; i < exact.values().size(); ++i) {
      const double range = static_cast<double>(ranges[i / 24 % 4].range);
      const double step = range / ((1 << code_width) - 1);
      const double error = std::abs(found.values()[i] - exact.values()[i]);
      ASSERT_LE(error, 0.798 * step * std::abs(dy.values()[i]) + 1e-6);
      largest = std::max(largest, error / (step * std::abs(dy.values()[i])));
    }
    EXPECT_GT(largest, 0.1) << code_width;  // and it does err
  }
}

TEST(DecodedOperands, AreSomeOfThoseThatAreQuantized) {
  for (const OpRow& row : op_rows) {
    const Operands decoded = decoded_operands(row.value);
    EXPECT_EQ(decoded & ~row.quantized, 0u) << row.name;
    EXPECT_TRUE(!is_product(row.work) || decoded == 0) << row.name;
  }
}

TEST(NotedMinMax, AreThoseOfWhatWasWritten) {
  std::size_t cases = 0;
  for (const OpRow& row : op_rows) {
    if (!row.notes_min_max) continue;
    Operation op = operation_of(row.value);
    if (row.value == OpKind::Add) op.inputs.push_back(shape);
    for (const DType dtype : data_dtypes) {
      std::vector<TestArray> inputs, plain, noted;
      unsigned seed = 1;
      for (const Shape& of : op.inputs) inputs.emplace_back(of, random_values(of, seed++), dtype);
      for (const Shape& of : op.outputs) {
        plain.emplace_back(of, of == rows ? DType::Float32 : dtype);
        noted.push_back(plain.back());
      }
      std::vector<GroupRange> ranges(4);
      const auto run = [&](std::vector<TestArray>& outputs, bool is_watched) {
        Call call;
        call.kind = row.value;
        call.settings.factor = 1.5;
        for (TestArray& input : inputs) call.inputs.push_back(input.array());
        for (TestArray& output : outputs) call.outputs.push_back(output.array());
        Array& y = call.outputs[0];
        if (is_watched)
          y.groups =
              groups_of({.groups = 4, .group_axis = 2, .ranges = ranges.data()}, shape, y.data);
        cpu::Workspace workspace;
        cpu::run(call, workspace);
        return outputs[0].values();
      };
      const Values y = run(plain, false);
      ASSERT_EQ(run(noted, true), y) << row.name;
      for (std::size_t g = 0; g < 4; ++g) {
        double least = INFINITY, most = -INFINITY;
        for (std::size_t i = 0; i < y.size(); ++i)
          if (i / 24 % 4 == g) least = std::min(least, y[i]), most = std::max(most, y[i]);
        const auto as_stored = [&](float x) {
          std::byte cell[8];
          store(cell, dtype, static_cast<double>(x));
          return load(cell, dtype);
        };
        EXPECT_EQ(as_stored(-number_of_key(ranges[g].least)), least) << row.name;
        EXPECT_EQ(as_stored(number_of_key(ranges[g].most)), most) << row.name;
      }
      ++cases;
    }
  }
  EXPECT_EQ(cases, 3u * 14);  // twelve ops today
}

// What is written and what is coded are the same numbers, but for the digits that 16 bits lose.
TEST(NotedMinMax, GoWithTheCodesOfWhatWasWritten) {
  for (const OpRow& row : op_rows) {
    if (!row.notes_min_max) continue;
    Operation op = operation_of(row.value);
    if (row.value == OpKind::Add) op.inputs.push_back(shape);
    for (const DType dtype : data_dtypes) {
      std::vector<TestArray> inputs, outputs;
      unsigned seed = 1;
      for (const Shape& of : op.inputs) inputs.emplace_back(of, random_values(of, seed++), dtype);
      for (const Shape& of : op.outputs)
        outputs.emplace_back(of, of == rows ? DType::Float32 : dtype);
      std::vector<GroupRange> ranges(4, GroupRange{6, -3});
      const Quantizer quantizer{.groups = 4, .group_axis = 2, .ranges = ranges.data()};
      TestArray codes(shape, DType::UInt8);
      Call call;
      call.kind = row.value;
      call.settings.factor = 1.5;
      for (TestArray& input : inputs) call.inputs.push_back(input.array());
      for (TestArray& output : outputs) call.outputs.push_back(output.array());
      Groups& groups = call.outputs[0].groups;
      groups = groups_of(quantizer, shape, call.outputs[0].data);
      groups.codes = elements<std::uint8_t>(codes.array()), groups.dither = 77;
      cpu::Workspace workspace;
      workspace.state.number = 4, workspace.state.seed = 9;
      cpu::run(call, workspace);
      const Values y = outputs[0].values(), found = codes.values();
      const std::uint64_t key = step_dither(9, 4, 77);
      std::size_t differing = 0;
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double dither = static_cast<double>(dither_of(dither_word(key, i / 4), i));
        const double wanted = std::clamp(std::nearbyint((y[i] + 3) * 255 / 6 + dither), 0.0, 255.0);
        ASSERT_LE(std::abs(found[i] - wanted), 1) << row.name << ", element " << i;
        differing += found[i] == wanted ? 0 : 1;
      }
      // A code of bf16 may be another one where y's last digit is worth that much: 3·2^-9·255/6.
      EXPECT_LE(differing, dtype == DType::Float32 ? y.size() / 1000 : y.size() / 3) << row.name;
    }
  }
}

TEST(OrderKey, GrowsWithItsNumberAndKeepsIt) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::array ordered = {-infinity, -3e38f, -1.0f, -1e-45f, 0.0f,
                              1e-45f,    1.0f,   3e38f, infinity};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    EXPECT_EQ(number_of_key(order_key(ordered[i])), ordered[i]);
    EXPECT_GT(order_key(ordered[i]), i == 0 ? 0 : order_key(ordered[i - 1]));
    EXPECT_EQ(order_key(-ordered[i]), ~order_key(ordered[i]));
    EXPECT_GT(order_key(std::nanf("")), order_key(ordered[i]));
    EXPECT_LT(order_key(-std::nanf("")), order_key(ordered[i]));
  }
  EXPECT_TRUE(std::isnan(number_of_key(order_key(std::nanf("")))));
}

}  // namespace
}  // namespace tidemark::profiler::mesa_kernels_test
