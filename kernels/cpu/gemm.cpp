// Multiplies in place where sgemm can read the operands; else in blocks packed to fp32.
#include "kernels/cpu/gemm.h"

#include <limits>

#include "base/error.h"
#include "kernels/cpu/blas.h"

namespace tidemark::cpu {
namespace {

// Blocks of what is converted. An element of b is converted again for every 512 rows of c: one
// load and store beside 1024 operations, about 3 % of the time; of a likewise for 1024 columns.
// As fp32 the blocks take 2 + 4 + 2 MiB.
constexpr std::int64_t block_rows = 512, block_columns = 1024, block_depth = 1024;

/// What BLAS counts with.
constexpr std::int64_t largest_count = std::numeric_limits<blasint>::max();

/// A matrix as sgemm reads it: its rows or, transposed, its columns are contiguous.
struct Readable {
  const float* data = nullptr;
  std::int64_t pitch = 0;
  bool transposed = false;
};

bool has_contiguous_rows(const Matrix& m) {
  if (m.dtype != DType::Float32) return false;
  const bool is_contiguous = m.column_stride == 1 || m.columns == 1;
  const bool is_apart = m.row_stride >= m.columns || m.rows == 1;
  return is_contiguous && is_apart && std::max(m.row_stride, m.columns) <= largest_count;
}

bool is_readable(const Matrix& m) {
  return has_contiguous_rows(m) || has_contiguous_rows(m.transposed());
}

Readable as_it_lies(const Matrix& m) {
  const float* const data = reinterpret_cast<const float*>(m.data);
  if (has_contiguous_rows(m)) return {data, std::max(m.row_stride, m.columns), false};
  return {data, std::max(m.column_stride, m.rows), true};
}

/// In fp32 by rows or, where those are contiguous, by columns.
Readable packed(const Matrix& m, float* to) {
  const bool by_columns = m.column_stride != 1 && m.row_stride == 1;
  const Matrix lines = by_columns ? m.transposed() : m;
  for (std::int64_t i = 0; i < lines.rows; ++i)
    gather(lines.row(i), lines.columns, to + i * lines.columns);
  return {to, lines.columns, by_columns};
}

Readable readable(const Matrix& m, std::size_t slot, Workspace& workspace) {
  if (is_readable(m)) return as_it_lies(m);
  const auto count = static_cast<std::size_t>(m.rows * m.columns);
  return packed(m, workspace.floats(count, slot).data());
}

/// The matrices are c's blocks and the slices of a and b that make them.
void multiply(const Matrix& a, const Matrix& b, float alpha, float beta, float* c,
              std::int64_t pitch, Workspace& workspace) {
  const Readable x = readable(a, 0, workspace), y = readable(b, 1, workspace);
  const auto count = [](std::int64_t n) { return static_cast<blasint>(n); };
  const auto order = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
  sgemm()(CblasRowMajor, order(x.transposed), order(y.transposed), count(a.rows), count(b.columns),
          count(a.columns), alpha, x.data, count(x.pitch), y.data, count(y.pitch), beta, c,
          count(pitch));
}

/// What the products are added to.
void prepare(const Matrix& c, const GemmOptions& options, std::int64_t row, std::int64_t column,
             float* block, std::int64_t pitch) {
  for (std::int64_t i = 0; i < c.rows; ++i) {
    float* const to = block + i * pitch;
    if (options.adds)
      gather(c.row(i), c.columns, to);
    else if (!options.bias)
      std::fill_n(to, c.columns, 0.0f);
    else if (options.bias_by_row)
      std::fill_n(to, c.columns, value_at(options.bias.from(row + i).data, options.bias.dtype));
    else
      gather(options.bias.from(column), c.columns, to);
  }
}

struct Blocks {
  std::int64_t rows = largest_count, columns = largest_count, depth = largest_count;
};

/// One block of c: all products, along all of their depth.
void make_block(const Products& products, const Matrix& c, std::int64_t i, std::int64_t j,
                const Blocks& blocks, const GemmOptions& options, Workspace& workspace) {
  const Matrix part =
      c.block(i, j, std::min(blocks.rows, c.rows - i), std::min(blocks.columns, c.columns - j));
  const bool in_place = has_contiguous_rows(part);
  const std::int64_t pitch = in_place ? as_it_lies(part).pitch : part.columns;
  float* const sums =
      in_place ? reinterpret_cast<float*>(part.data)
               : workspace.floats(static_cast<std::size_t>(part.rows * part.columns), 2).data();
  // Reading c in place is what beta = 1 does anyway.
  bool begun = options.adds || options.bias;
  if (begun && !(options.adds && in_place)) prepare(part, options, i, j, sums, pitch);
  products([&](const Matrix& a, const Matrix& b) {
    for (std::int64_t k = 0; k < a.columns; k += blocks.depth, begun = true) {
      const std::int64_t depth = std::min(blocks.depth, a.columns - k);
      multiply(a.block(i, k, part.rows, depth), b.block(k, j, depth, part.columns), options.alpha,
               begun ? 1.0f : 0.0f, sums, pitch, workspace);
    }
  });
  if (!begun) prepare(part, options, i, j, sums, pitch);  // an empty sum
  if (in_place) return;
  for (std::int64_t row = 0; row < part.rows; ++row)
    scatter(sums + row * pitch, part.columns, part.row(row));
}

Blocks blocks_for(const Products& products, const Matrix& c) {
  bool as_they_lie = has_contiguous_rows(c);
  products([&](const Matrix& a, const Matrix& b) {
    as_they_lie = as_they_lie && is_readable(a) && is_readable(b);
  });
  return as_they_lie ? Blocks{} : Blocks{block_rows, block_columns, block_depth};
}

}  // namespace

void gemm_sum(const Products& products, const Matrix& c, const GemmOptions& options,
              Workspace& workspace) {
  if (c.column_stride != 1 && c.row_stride == 1 && c.columns != 1) {
    GemmOptions turned = options;
    turned.bias_by_row = !options.bias_by_row;
    gemm_sum(
        [&](const Factors& take) {
          products([&](const Matrix& a, const Matrix& b) { take(b.transposed(), a.transposed()); });
        },
        c.transposed(), turned, workspace);
    return;
  }
  const Blocks blocks = blocks_for(products, c);
  for (std::int64_t j = 0; j < c.columns; j += blocks.columns)
    for (std::int64_t i = 0; i < c.rows; i += blocks.rows)
      make_block(products, c, i, j, blocks, options, workspace);
}

void gemm(const Matrix& a, const Matrix& b, const Matrix& c, const GemmOptions& options,
          Workspace& workspace) {
  CHECK(a.rows == c.rows && a.columns == b.rows && b.columns == c.columns);
  gemm_sum([&](const Factors& take) { take(a, b); }, c, options, workspace);
}

}  // namespace tidemark::cpu
