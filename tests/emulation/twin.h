// Compares a CUDA launch function, emulated, with its CPU twin on the same call.
#pragma once

#include <functional>
#include <vector>

#include "kernels/cuda/launch.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark {

/// The memory of a call, and the call bound to it: binding again to copies of the memory gives the
/// same call elsewhere.
struct TwinCase {
  std::vector<TestArray> memory;
  std::function<Call(std::vector<TestArray>&)> bind;
  /// Largest difference allowed, in units of each array's own rounding.
  double ulps = 4;
  StepState state{};
  /// Arrays of codes of values that differ by so little: one in a thousand may fall to the other
  /// side of a half.
  std::vector<std::size_t> rounded_codes{};
};

using CpuKernel = void (*)(const Call&, cpu::Workspace&);
using CudaKernel = void (*)(const Call&, cuda::Launch&);

/// Runs the CPU kernel once and the CUDA one with its threads in three orders. Each array must
/// agree with the CPU's, and have the same bits in all three orders; nothing beside the elements
/// may be touched.
void expect_twins(const TwinCase& test, CpuKernel on_cpu, CudaKernel on_cuda);

/// Where a GPU is tested: expect_twins() calls it too, with what the CPU made of the case.
using DeviceCheck = void (*)(const TwinCase& test, CpuKernel on_cpu,
                             const std::vector<TestArray>& wanted);
extern DeviceCheck device_check;

/// Array `i` of the case is the CPU's, up to so many times what the case allows.
void expect_like(const TwinCase& test, std::size_t i, TestArray& got, const TestArray& wanted,
                 double slack, std::string_view where);

/// Runs the CUDA kernel in each order and returns the arrays of the last one, after checking that
/// all orders agree.
std::vector<TestArray> run_emulated(const TwinCase& test, CudaKernel on_cuda);

/// Collects the arrays of a call in order of their naming.
class CallMaker {
 public:
  TwinCase test;
  unsigned seed = 1;

  /// Random numbers.
  CallMaker& input(const Shape& shape, DType dtype = DType::Float32, Lie lie = Lie::Dense,
                   double scale = 1);
  CallMaker& input_of(const Shape& shape, const Values& values, DType dtype, Lie lie = Lie::Dense);
  CallMaker& absent_input(const Shape& shape, DType dtype = DType::Float32);
  CallMaker& output(const Shape& shape, DType dtype = DType::Float32, Lie lie = Lie::Dense);
  /// Of a backward pass: an output that was saved.
  CallMaker& saved(const Shape& shape, const Values& values, DType dtype = DType::Float32,
                   Lie lie = Lie::Dense);
  CallMaker& absent_output(const Shape& shape, DType dtype = DType::Float32);
  CallMaker& d_output(const Shape& shape, DType dtype = DType::Float32, Lie lie = Lie::Dense);
  CallMaker& absent_d_output(const Shape& shape = {}, DType dtype = DType::Float32);
  CallMaker& d_input(const Shape& shape, DType dtype = DType::Float32, Lie lie = Lie::Dense);
  CallMaker& absent_d_input();
  /// Codes of Mesa in place of the values of an input, or of an output that was saved.
  CallMaker& coded_input(const Shape& shape, std::int64_t groups, std::int64_t axis, int bits = 8);
  CallMaker& coded_saved(const Shape& shape, std::int64_t groups, std::int64_t axis);
  /// The last operand's extremes are noted by groups.
  CallMaker& watched(std::int64_t groups, std::int64_t axis);
  /// And codes of it are written in passing.
  CallMaker& coded_in_passing(std::int64_t groups, std::int64_t axis);

  /// What bind() starts from: kind, pass, settings, key, moves.
  Call call;
  TwinCase finish(double ulps = 4);

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  enum class Place : std::uint8_t { Input, Output, DOutput, DInput };
  struct Entry {
    Place place;
    std::size_t memory;  ///< none = absent
    Array shape;
    std::size_t ranges = none;  ///< of codes, or of a watched output
    std::size_t codes = none;   ///< that are written with it
    Quantizer quantizer{};
  };
  CallMaker& add_codes(Place place, const Shape& shape, std::int64_t groups, std::int64_t axis);
  CallMaker& add_ranges(std::int64_t groups, std::int64_t axis);
  CallMaker& add(Place place, TestArray array);
  CallMaker& add_absent(Place place, const Shape& shape, DType dtype);
  std::vector<Entry> entries_;
};

}  // namespace tidemark
