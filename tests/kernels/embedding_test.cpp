// Rows are copied, their errors summed and rounded once, and indices outside of the table named.
#include "kernels/embedding/embedding.h"

#include "base/error.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark::embedding_test {
namespace {

struct Sizes {
  Shape ids;
  std::int64_t rows, width;

  Shape y() const {
    std::vector<std::int64_t> dims(ids.dims().begin(), ids.dims().end());
    dims.push_back(width);
    return Shape(dims);
  }
};

const std::vector<Sizes>& sizes_to_try() {
  static const std::vector<Sizes> all = {
      {{1}, 1, 1}, {{}, 5, 3}, {{31}, 4, 33}, {{2, 3, 5}, 7, 31}, {{33}, 100, 1023}};
  return all;
}

Values random_ids(const Sizes& s) {
  std::mt19937 random(7);
  Values ids(static_cast<std::size_t>(numel(s.ids)));
  for (double& id : ids) id = static_cast<double>(random() % static_cast<unsigned>(s.rows));
  return ids;
}

class EmbeddingTest : public testing::TestWithParam<std::tuple<DType, Lie>> {
 protected:
  const DType dtype = std::get<0>(GetParam());
  const Lie lie = std::get<1>(GetParam());
  cpu::Workspace workspace;
};

TEST_P(EmbeddingTest, CopiesRows) {
  for (const Sizes& s : sizes_to_try()) {
    TestArray ids(s.ids, random_ids(s), DType::Int64, lie);
    TestArray table({s.rows, s.width}, random_values({s.rows, s.width}, 1), dtype, lie);
    TestArray y(s.y(), dtype, lie);
    cpu::embedding_forward(forward(OpKind::Embedding, {ids.array(), table.array()}, {y.array()}),
                           workspace);
    const Values rows = table.values();
    Values wanted;
    for (const double id : ids.values())
      for (std::int64_t i = 0; i < s.width; ++i)
        wanted.push_back(
            rows[static_cast<std::size_t>(static_cast<std::int64_t>(id) * s.width + i)]);
    EXPECT_EQ(y.values(), wanted);
    EXPECT_TRUE(y.is_intact());
  }
}

TEST_P(EmbeddingTest, BackwardSumsTheErrorsOfEachRow) {
  for (const Sizes& s : sizes_to_try()) {
    TestArray ids(s.ids, random_ids(s), DType::Int64, lie);
    TestArray dy(s.y(), random_values(s.y(), 1), dtype, lie), dtable({s.rows, s.width}, dtype, lie);
    cpu::embedding_backward(
        backward(OpKind::Embedding, {ids.array(), absent({s.rows, s.width}, dtype)},
                 {absent(s.y(), dtype)}, {dy.array()}, {absent(), dtable.array()}),
        workspace);
    const Values numbers = ids.values(), errors = dy.values();
    Values wanted(static_cast<std::size_t>(s.rows * s.width));
    const auto width = static_cast<std::size_t>(s.width);
    for (std::size_t n = 0; n < numbers.size(); ++n)
      for (std::size_t i = 0; i < width; ++i)
        wanted[static_cast<std::size_t>(numbers[n]) * width + i] += errors[n * width + i];
    EXPECT_LE(max_error(dtable.values(), wanted), epsilon_of(dtype) + 1e-5);
    EXPECT_TRUE(dtable.is_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(All, EmbeddingTest,
                         testing::Combine(testing::ValuesIn(data_dtypes), testing::ValuesIn(lies)));

// Behind 1, bf16 continues with 1 + 2^-7: rounded after each addition, the sum would stay 1.
TEST(Embedding, RoundsOnce) {
  cpu::Workspace workspace;
  TestArray ids({9}, Values(9), DType::Int64), dtable({2, 1}, DType::BFloat16);
  Values errors(9, 0x1p-9);
  errors[0] = 1;
  TestArray dy({9, 1}, errors, DType::BFloat16);
  cpu::embedding_backward(backward(OpKind::Embedding, {ids.array(), absent({2, 1})},
                                   {absent({9, 1})}, {dy.array()}, {absent(), dtable.array()}),
                          workspace);
  EXPECT_EQ(dtable.values(), (Values{1 + 0x1p-6, 0}));
}

TEST(Embedding, AnAbsentErrorIsZero) {
  cpu::Workspace workspace;
  TestArray ids({2}, {0, 1}, DType::Int64), dtable({3, 2});
  cpu::embedding_backward(backward(OpKind::Embedding, {ids.array(), absent({3, 2})},
                                   {absent({2, 2})}, {absent({2, 2})}, {absent(), dtable.array()}),
                          workspace);
  EXPECT_EQ(dtable.values(), Values(6));
}

TEST(Embedding, NamesAnIndexOutsideOfTheTable) {
  cpu::Workspace workspace;
  for (const double id : {-1.0, 3.0}) {
    TestArray ids({1}, {id}, DType::Int64), table({3, 1}, Values(3)), y({1, 1});
    try {
      cpu::embedding_forward(forward(OpKind::Embedding, {ids.array(), table.array()}, {y.array()}),
                             workspace);
      FAIL() << "took index " << id;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("need 0 to 2"), std::string::npos) << error.what();
    }
  }
}

TEST(Embedding, CopiesNanAndInfinity) {
  cpu::Workspace workspace;
  const double infinity = std::numeric_limits<double>::infinity();
  TestArray ids({2}, {1, 0}, DType::Int64);
  TestArray table({2, 1}, {std::nan(""), infinity}, DType::Float16), y({2, 1});  // to fp32
  cpu::embedding_forward(forward(OpKind::Embedding, {ids.array(), table.array()}, {y.array()}),
                         workspace);
  EXPECT_EQ(y.values()[0], infinity);
  EXPECT_TRUE(std::isnan(y.values()[1]));
}

}  // namespace
}  // namespace tidemark::embedding_test
