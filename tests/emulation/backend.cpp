#include "tests/emulation/backend.h"

#include "kernels/cuda/gemm.h"
#include "kernels/number_formats.h"
#include "tests/emulation/cuda.h"

namespace tidemark::cuda {
namespace {

float read(const GemmOperand& matrix, std::int64_t offset) {
  const std::byte* at = matrix.data + offset * size_of(matrix.dtype);
  if (matrix.dtype == DType::BFloat16) return to_float(*reinterpret_cast<const BFloat16*>(at));
  if (matrix.dtype == DType::Float16) return to_float(*reinterpret_cast<const Float16*>(at));
  return *reinterpret_cast<const float*>(at);
}

void write(const GemmOperand& matrix, std::int64_t offset, float value) {
  std::byte* at = matrix.data + offset * size_of(matrix.dtype);
  if (matrix.dtype == DType::BFloat16)
    *reinterpret_cast<BFloat16*>(at) = to_bfloat16(value);
  else if (matrix.dtype == DType::Float16)
    *reinterpret_cast<Float16*>(at) = to_float16(value);
  else
    *reinterpret_cast<float*>(at) = value;
}

std::int64_t at(const GemmOperand& matrix, std::int64_t batch, std::int64_t i, std::int64_t j) {
  if (matrix.transposed) std::swap(i, j);
  return batch * matrix.batch_stride + i * matrix.row_stride + j;
}

}  // namespace

void check_launch(const char*) {}  // the emulation throws by itself

// Exactly as much as asked for, in new memory each time: reading beyond it, and reading what an
// earlier call left there, are then errors that a sanitizer sees.
std::byte* scratch(Launch& launch, std::int64_t bytes, std::size_t slot) {
  std::vector<std::byte>& piece = launch.context->scratch.at(slot);
  piece = std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{0xff});
  return piece.data();
}

namespace {

void multiply_plainly(const Gemm& g) {
  for (std::int64_t batch = 0; batch < g.batch; ++batch)
    for (std::int64_t i = 0; i < g.m; ++i)
      for (std::int64_t j = 0; j < g.n; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < g.k; ++k)
          sum += read(g.a, at(g.a, batch, i, k)) * read(g.b, at(g.b, batch, k, j));
        const std::int64_t to = at(g.c, batch, i, j);
        const float old = g.beta != 0 ? g.beta * read(g.c, to) : 0.0f;
        const GemmOperand bias{const_cast<std::byte*>(g.bias), g.c.dtype};
        write(g.c, to, g.alpha * sum + old + (g.bias != nullptr ? read(bias, j) : 0.0f));
      }
}

}  // namespace

// Started like a kernel, so that it counts as one.
void gemm(Launch&, const Gemm& g) {
  emulation::run("gemm", dim3(1), dim3(1), 0, [&] { multiply_plainly(g); });
}

}  // namespace tidemark::cuda
