// Assigns arrays with conversion, and sums over axes with compensated additions.
#include "kernels/cpu/map.h"

namespace tidemark::cpu {

void assign(const Array& out, const Array& in) {
  alignas(64) float scratch[longest_run];
  for_runs(std::array{&out, &in}, [&](const auto& runs, std::int64_t n) {
    if (runs[0].is_plain()) return gather(runs[1], n, reinterpret_cast<float*>(runs[0].data));
    write(runs[0], n, read(runs[1], n, scratch));
  });
}

const Array& entry(const std::vector<Array>& list, std::size_t i) {
  static const Array absent;
  return i < list.size() ? list[i] : absent;
}

const float* read_vector(const Array& vector, Workspace& workspace, std::size_t slot) {
  const std::int64_t n = numel(vector.shape);
  const std::int64_t stride = n == 1 ? 1 : vector.strides[vector.shape.rank() - 1];
  return read({vector.data, vector.dtype, stride}, n,
              workspace.floats(static_cast<std::size_t>(n), slot).data());
}

Sums::Sums(const Shape& shape, Workspace& workspace) {
  const auto count = static_cast<std::size_t>(numel(shape));
  const auto zeros = [&](std::size_t slot) {
    const std::span<float> memory = workspace.floats(count, slot);
    std::ranges::fill(memory, 0.0f);
    return array_at(reinterpret_cast<std::byte*>(memory.data()), DType::Float32, dense(shape));
  };
  total_ = zeros(6), lost_ = zeros(7);
}

// Long rows that are added up whole: the axes in front of those that the sums have.
bool Sums::adds_long_rows(const Shape& shape, const Array& x) const {
  if (numel(total_.shape) <= longest_run) return false;  // such sums stay in the nearest cache
  if (!is_dense(x.layout()) || numel(x.shape) != numel(shape)) return false;
  const Shape& sums = total_.shape;
  std::size_t same = 0;
  while (same < std::min(sums.rank(), shape.rank()) && sums.back(same) == shape.back(same)) ++same;
  for (std::size_t i = same; i < sums.rank(); ++i)
    if (sums.back(i) != 1) return false;
  return true;
}

// Four rows at a time: the sums are fetched a quarter as often.
void Sums::add_long_rows(const Array& x, std::int64_t rows) {
  alignas(64) float scratch[4][longest_run];
  const std::int64_t length = numel(total_.shape);
  const std::int64_t longest = x.dtype == DType::Float32 ? length : longest_run;
  float *const totals = elements<float>(total_), *const losses = elements<float>(lost_);
  for (std::int64_t at = 0; at < length; at += longest) {
    const std::int64_t n = std::min(longest, length - at);
    const auto piece = [&](std::int64_t row, float* to) {
      return read({x.data + (row * length + at) * size_of(x.dtype), x.dtype, 1}, n, to);
    };
    std::int64_t row = 0;
    for (; row + 4 <= rows; row += 4)
      add_exactly({piece(row, scratch[0]), piece(row + 1, scratch[1]), piece(row + 2, scratch[2]),
                   piece(row + 3, scratch[3])},
                  n, totals + at, losses + at);
    for (; row < rows; ++row) add_exactly(piece(row, scratch[0]), n, totals + at, losses + at);
  }
}

void Sums::add(const Shape& shape, const Array& x) {
  alignas(64) float scratch[longest_run];
  if (adds_long_rows(shape, x)) return add_long_rows(x, numel(shape) / numel(total_.shape));
  for_runs(shape, std::array<const Array*, 3>{&x, &total_, &lost_},
           [&](const auto& runs, std::int64_t n) {
             add_run(read(runs[0], n, scratch), n, runs[1], runs[2]);
           });
}

void Sums::add_run(const float* x, std::int64_t n, const Run& total, const Run& lost) {
  float* const sums = reinterpret_cast<float*>(total.data);
  float* const losses = reinterpret_cast<float*>(lost.data);
  if (total.stride == 1) return add_exactly(x, n, sums, losses);
  if (total.stride == 0) {
    const float all = sum(x, n);
    return add_exactly(&all, 1, sums, losses);
  }
  for (std::int64_t i = 0; i < n; ++i)
    add_exactly(x + i, 1, sums + i * total.stride, losses + i * total.stride);
}

void Sums::write_to(const Array& out) const { assign(out, total_); }

void assign_sum(const Array& out, const Array& in, Workspace& workspace) {
  if (numel(in.shape) == numel(out.shape)) return assign(out, in);
  Sums sums(out.shape, workspace);
  sums.add(in.shape, in);
  sums.write_to(out);
}

}  // namespace tidemark::cpu
