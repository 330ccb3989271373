// Threads that stay in one group: whole periods, and more vectors than a grid has threads, so that
// threads come back for a second one.
#include "kernels/cuda/own_group.cuh"

#include "kernels/activation/activation.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mesa/mesa.h"
#include "tests/emulation/twin.h"

namespace tidemark::own_group_test {
namespace {

constexpr std::int64_t groups = 12;
const Shape large{96, 3072};

Groups groups_of(std::int64_t stretch, std::int64_t count) {
  Groups made;
  made.stretch = stretch, made.count = count;
  return made;
}

TEST(OwnGroup, BlocksMakeWholePeriods) {
  constexpr int vector = 8;
  const std::int64_t many = std::int64_t{1} << 24;
  for (const auto& [stretch, count] :
       {std::pair{64, 12}, {256, 12}, {64, 48}, {128, 40}, {12608, 12}}) {
    const Groups made = groups_of(stretch, count);
    const std::int64_t blocks = cuda::own_group_blocks(8448, many, vector, made);
    EXPECT_TRUE(cuda::comes_again_after(made, blocks * 256 * vector)) << stretch << " " << count;
    EXPECT_LE(blocks, 8448);
    EXPECT_GT(blocks, 8448 / 2);
  }
}

TEST(OwnGroup, NoThreadHasASecondVectorWhereAPeriodIsTooLong) {
  // 4096 blocks make a period of 32 heads of 2048 × 128.
  const Groups heads = groups_of(2048 * 128, 32);
  EXPECT_EQ(cuda::own_group_blocks(1056, std::int64_t{1} << 23, 8, heads), 4096u);
  EXPECT_EQ(cuda::own_group_blocks(1056, 1000, 8, heads), 4u);
  EXPECT_EQ(cuda::own_group_blocks(1056, 1000 * 256, 8, heads), 1000u);
  EXPECT_EQ(cuda::own_group_blocks(1056, 2000 * 256, 8, heads), 2000u);
}

TEST(OwnGroup, VectorsOfTwoGroupsAreFound) {
  std::byte memory[64] = {};
  Array array = array_at(memory, DType::BFloat16, dense({32}));
  array.groups = groups_of(16, 2);
  array.groups.first = memory;
  EXPECT_TRUE(cuda::has_groups_of_vectors(array, 8));
  array.groups.stretch = 12;
  EXPECT_FALSE(cuda::has_groups_of_vectors(array, 8));
  array.groups.stretch = 16, array.data = memory + 8;  // begins inside of a vector
  EXPECT_FALSE(cuda::has_groups_of_vectors(array, 8));
  array.data = memory, array.groups.bits = 4;
  EXPECT_FALSE(cuda::has_groups_of_vectors(array, 8));
}

TEST(OwnGroup, WatchedResultsOfManyVectors) {
  for (const bool writes_codes : {false, true}) {
    CallMaker gelu, add;
    gelu.input(large).output(large);
    writes_codes ? gelu.coded_in_passing(groups, 1) : gelu.watched(groups, 1);
    expect_twins(gelu.finish(16), cpu::gelu_forward, cuda::gelu_forward);
    add.input(large).input(large).output(large);
    writes_codes ? add.coded_in_passing(groups, 1) : add.watched(groups, 1);
    expect_twins(add.finish(1), cpu::add_forward, cuda::add_forward);
  }
}

TEST(OwnGroup, GradientsOfManyCodes) {
  CallMaker gelu;
  gelu.call.pass = Pass::Backward;
  gelu.coded_input(large, groups, 1).absent_output(large).d_output(large).d_input(large);
  expect_twins(gelu.finish(64), cpu::gelu_backward, cuda::gelu_backward);
}

TEST(OwnGroup, ManyCodesAndBack) {
  CallMaker decoded;
  decoded.coded_input(large, groups, 1).output(large);
  expect_twins(decoded.finish(0), cpu::dequantize, cuda::dequantize);
}

}  // namespace
}  // namespace tidemark::own_group_test
