// Runs a kernel's threads forward, backward and shuffled: same bits, near the CPU's values.
#include "tests/emulation/twin.h"

#include <algorithm>

#include "kernels/in_step.h"
#include "tests/emulation/backend.h"
#include "tests/emulation/cuda.h"
#include "tests/emulation/leading_call.h"

namespace tidemark {

DeviceCheck device_check = nullptr;

std::vector<TestArray> run_emulated(const TwinCase& test, CudaKernel on_cuda) {
  using emulation::Order;
  std::vector<TestArray> first;
  std::vector<TestArray> memory;
  for (const Order order : {Order::Forward, Order::Backward, Order::Shuffled}) {
    memory = test.memory;
    emulation::run_in(order);
    emulation::Stream stream;
    stream.launch.state = test.state;
    const std::size_t before = emulation::kernels_run();
    on_cuda(in_step(test.bind(memory), test.state), stream.launch);
    EXPECT_GT(emulation::kernels_run(), before) << "no kernel was started";
    for (std::size_t i = 0; i < memory.size(); ++i) {
      EXPECT_TRUE(memory[i].is_intact()) << "array " << i << ": written beside its elements";
      if (first.empty()) continue;
      EXPECT_EQ(memory[i].bytes(), first[i].bytes())
          << "array " << i << " depends on the order of the threads";
    }
    if (first.empty()) first = memory;
  }
  emulation::run_in(Order::Forward);
  return memory;
}

namespace {

void expect_like_codes(const Values& got, const Values& wanted) {
  std::size_t differing = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(got[i] - wanted[i]), 1) << "code " << i;
    differing += got[i] == wanted[i] ? 0 : 1;
  }
  EXPECT_LE(differing, got.size() / 1000);
}

}  // namespace

void expect_like(const TwinCase& test, std::size_t i, TestArray& got, const TestArray& wanted,
                 double slack, std::string_view where) {
  if (std::ranges::count(test.rounded_codes, i) > 0)
    return expect_like_codes(got.values(), wanted.values());
  const double tolerance = slack * test.ulps * epsilon_of(got.array().dtype);
  EXPECT_LE(max_error(got.values(), wanted.values()), tolerance)
      << where << ": array " << i << ", " << to_text(got.array().shape) << " of "
      << to_string(got.array().dtype);
}

void expect_twins(const TwinCase& test, CpuKernel on_cpu, CudaKernel on_cuda) {
  ASSERT_NE(leading_call(on_cpu), nullptr) << "no call leads to this kernel";
  std::vector<TestArray> wanted = test.memory;
  cpu::Workspace workspace;
  workspace.state = test.state;
  on_cpu(in_step(test.bind(wanted), test.state), workspace);
  std::vector<TestArray> got = run_emulated(test, on_cuda);
  for (std::size_t i = 0; i < got.size(); ++i)
    expect_like(test, i, got[i], wanted[i], 1, "emulated");
  if (device_check != nullptr) device_check(test, on_cpu, wanted);
}

CallMaker& CallMaker::add(Place place, TestArray array) {
  entries_.push_back({place, test.memory.size(), {}});
  test.memory.push_back(std::move(array));
  return *this;
}
CallMaker& CallMaker::add_absent(Place place, const Shape& shape, DType dtype) {
  entries_.push_back({place, none, absent(shape, dtype)});
  return *this;
}

CallMaker& CallMaker::input(const Shape& shape, DType dtype, Lie lie, double scale) {
  return add(Place::Input,
             TestArray(shape, random_values(shape, seed++, scale, dtype), dtype, lie));
}
CallMaker& CallMaker::input_of(const Shape& shape, const Values& values, DType dtype, Lie lie) {
  return add(Place::Input, TestArray(shape, values, dtype, lie));
}
CallMaker& CallMaker::absent_input(const Shape& shape, DType dtype) {
  return add_absent(Place::Input, shape, dtype);
}
CallMaker& CallMaker::output(const Shape& shape, DType dtype, Lie lie) {
  return add(Place::Output, TestArray(shape, dtype, lie));
}
CallMaker& CallMaker::saved(const Shape& shape, const Values& values, DType dtype, Lie lie) {
  return add(Place::Output, TestArray(shape, values, dtype, lie));
}
CallMaker& CallMaker::absent_output(const Shape& shape, DType dtype) {
  return add_absent(Place::Output, shape, dtype);
}
CallMaker& CallMaker::d_output(const Shape& shape, DType dtype, Lie lie) {
  return add(Place::DOutput, TestArray(shape, random_values(shape, seed++, 1, dtype), dtype, lie));
}
CallMaker& CallMaker::absent_d_output(const Shape& shape, DType dtype) {
  return add_absent(Place::DOutput, shape, dtype);
}
CallMaker& CallMaker::d_input(const Shape& shape, DType dtype, Lie lie) {
  return add(Place::DInput, TestArray(shape, dtype, lie));
}
CallMaker& CallMaker::coded_input(const Shape& shape, std::int64_t groups, std::int64_t axis,
                                  int bits) {
  add_codes(Place::Input, shape, groups, axis);
  entries_.back().quantizer.bits = bits;
  return *this;
}
CallMaker& CallMaker::coded_saved(const Shape& shape, std::int64_t groups, std::int64_t axis) {
  return add_codes(Place::Output, shape, groups, axis);
}

CallMaker& CallMaker::add_codes(Place place, const Shape& shape, std::int64_t groups,
                                std::int64_t axis) {
  Values codes = random_values(shape, seed++);
  for (double& code : codes) code = std::fmod(std::abs(std::floor(code * 1e3)), 256);
  return add(place, TestArray(shape, codes, DType::UInt8)).add_ranges(groups, axis);
}

CallMaker& CallMaker::watched(std::int64_t groups, std::int64_t axis) {
  return add_ranges(groups, axis);
}

// Every group has a range and a minimum of its own, and no extremes yet.
CallMaker& CallMaker::add_ranges(std::int64_t groups, std::int64_t axis) {
  Values ranges;
  for (std::int64_t g = 0; g < groups; ++g)
    for (const double x : {4.0 + static_cast<double>(g), -2.5, 0.0, 0.0}) ranges.push_back(x);
  entries_.back().ranges = test.memory.size();
  entries_.back().quantizer = {.groups = groups, .group_axis = axis};
  test.memory.emplace_back(Shape{groups, 4}, ranges);
  return *this;
}

CallMaker& CallMaker::coded_in_passing(std::int64_t groups, std::int64_t axis) {
  const Shape shape = test.memory[entries_.back().memory].array().shape;
  watched(groups, axis);
  entries_.back().codes = test.memory.size();
  test.rounded_codes.push_back(test.memory.size());
  test.memory.emplace_back(shape, DType::UInt8);
  return *this;
}

CallMaker& CallMaker::absent_d_input() { return add_absent(Place::DInput, {}, DType::Float32); }

TwinCase CallMaker::finish(double ulps) {
  test.ulps = ulps;
  test.bind = [start = call, entries = entries_](std::vector<TestArray>& memory) {
    Call bound = start;
    for (const Entry& entry : entries) {
      std::vector<Array>& list = entry.place == Place::Input     ? bound.inputs
                                 : entry.place == Place::Output  ? bound.outputs
                                 : entry.place == Place::DOutput ? bound.d_outputs
                                                                 : bound.d_inputs;
      list.push_back(entry.memory == none ? entry.shape : memory[entry.memory].array());
      if (entry.ranges == none) continue;
      Quantizer quantizer = entry.quantizer;
      quantizer.ranges = elements<GroupRange>(memory[entry.ranges].array());
      Groups& groups = list.back().groups;
      groups = groups_of(quantizer, list.back().shape, list.back().data);
      if (entry.codes == none) continue;
      groups.codes = elements<std::uint8_t>(memory[entry.codes].array());
      groups.dither = entry.codes;
    }
    return bound;
  };
  return test;
}

}  // namespace tidemark
