// Sums of gradients, also in place and over repeated axes.
#include "kernels/accumulate/accumulate.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::accumulate_test {
namespace {

Call call_of(Pass pass, std::vector<Array> inputs, const Array& output) {
  Call call;
  call.pass = pass;
  call.inputs = std::move(inputs), call.outputs = {output};
  return call;
}

Values sum_of(const Values& a, const Values& b, double sign = 1) {
  Values sum = a;
  for (std::size_t i = 0; i < a.size(); ++i) sum[i] += sign * b[i];
  return sum;
}

TEST(Accumulate, FillWritesOnes) {
  Workspace workspace;
  for (const DType dtype : data_dtypes) {
    TestArray scalar(Shape{}, dtype), array(Shape{3, 33}, dtype, Lie::Padded);
    fill(call_of(Pass::Fill, {}, scalar.array()), workspace);
    fill(call_of(Pass::Fill, {}, array.array()), workspace);
    EXPECT_EQ(scalar.values(), Values{1});
    EXPECT_EQ(array.values(), Values(99, 1));
    EXPECT_TRUE(array.is_intact());
  }
}

TEST(Accumulate, AddsTwoInAnyDtypeAndPlace) {
  Workspace workspace;
  for (const Shape& shape : {Shape{1}, Shape{1023}, Shape{2, 3, 33}, Shape{4, 1500}})
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies)
        for (int place = 0; place < 4; ++place) {
          TestArray a(shape, random_values(shape, 1), dtype, lie),
              b(shape, random_values(shape, 2), dtype, lie), out(shape, dtype, lie);
          const bool is_same =
              place == 3;  // both inputs are one array, and the sum takes its place
          const Values x = a.values(), y = is_same ? x : b.values();
          TestArray& target = place == 0 ? out : place == 2 ? b : a;
          accumulate(call_of(Pass::Accumulate, {a.array(), is_same ? a.array() : b.array()},
                             target.array()),
                     workspace);
          ASSERT_LE(max_error(target.values(), sum_of(x, y)), epsilon_of(dtype) + 1e-7);
          ASSERT_TRUE(target.is_intact());
        }
}

TEST(Accumulate, SumsTheAxesWhereAnInputIsLonger) {
  Workspace workspace;
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies)
      for (const bool in_place : {false, true}) {
        TestArray a(Shape{1, 3, 31}, random_values({1, 3, 31}, 1), dtype, lie),
            b(Shape{4, 3, 31}, random_values({4, 3, 31}, 2), DType::Float32, lie),
            out(Shape{1, 3, 31}, dtype, lie);
        Values wanted = a.values();
        for (std::size_t i = 0; i < 4 * 93; ++i) wanted[i % 93] += b.values()[i];
        TestArray& target = in_place ? a : out;
        accumulate(call_of(Pass::Accumulate, {b.array(), a.array()}, target.array()), workspace);
        ASSERT_LE(max_error(target.values(), wanted), epsilon_of(dtype) + 1e-6);
        ASSERT_TRUE(target.is_intact());
      }
}

TEST(Accumulate, AddsOneAndThree) {
  Workspace workspace;
  TestArray a(Shape{33}, random_values({33}, 1)), b(Shape{33}, random_values({33}, 2)),
      c(Shape{33}, random_values({33}, 3)), out(Shape{33});
  accumulate(call_of(Pass::Accumulate, {a.array()}, out.array()), workspace);
  EXPECT_EQ(out.values(), a.values());
  const Values wanted = sum_of(sum_of(a.values(), b.values()), c.values());
  accumulate(call_of(Pass::Accumulate, {a.array(), b.array(), c.array()}, b.array()), workspace);
  EXPECT_LE(max_error(b.values(), wanted), 1e-6);
}

TEST(Accumulate, SubtractsInAnyPlace) {
  Workspace workspace;
  for (const DType dtype : data_dtypes)
    for (int place = 0; place < 3; ++place) {
      const Shape shape{5, 3, 33};
      TestArray a(shape, random_values(shape, 1), dtype, Lie::Swapped),
          b(shape, random_values(shape, 2), dtype, Lie::Swapped), out(shape, dtype, Lie::Swapped);
      const Values wanted = sum_of(a.values(), b.values(), -1);
      TestArray& target = place == 0 ? out : place == 1 ? a : b;
      subtract(call_of(Pass::Subtract, {a.array(), b.array()}, target.array()), workspace);
      EXPECT_LE(max_error(target.values(), wanted), epsilon_of(dtype) + 1e-7);
      EXPECT_TRUE(target.is_intact());
    }
}

// What reversible streams rely on: a sum undone is the summand up to one rounding of the sum.
TEST(Accumulate, SubtractUndoesAnAddition) {
  Workspace workspace;
  const Shape shape{1023};
  TestArray x(shape, random_values(shape, 1)), f(shape, random_values(shape, 2)), y(shape),
      back(shape);
  accumulate(call_of(Pass::Accumulate, {x.array(), f.array()}, y.array()), workspace);
  subtract(call_of(Pass::Subtract, {y.array(), f.array()}, back.array()), workspace);
  EXPECT_LE(max_error(back.values(), x.values(), 4), 0x1p-23);
}

}  // namespace
}  // namespace tidemark::cpu::accumulate_test
