// Bytes of states and temporaries, from a row of the table and a parameter's shape.
#include "traces/optimizer.h"

#include <algorithm>

#include "base/units.h"

namespace tidemark {
namespace {

// optim/optimizer.py of bitsandbytes 0.50: min_8bit_size and the blocks of optimizer_update_8bit.
std::int64_t blocks_8bit(std::int64_t elements) {
  constexpr std::int64_t least = 4096, block = 256;
  if (elements < least) return elements * size_of(DType::Float32);
  return elements + ceil_div(elements, block) * size_of(DType::Float32);
}

std::int64_t factors(const Shape& shape) {
  if (shape.rank() < 2) return numel(shape);
  const std::int64_t matrices = numel(shape) / (shape.back(0) * shape.back(1));
  return matrices * (shape.back(0) + shape.back(1));
}

std::int64_t bytes_of_state(StateKind kind, const Shape& shape, std::int64_t element) {
  switch (kind) {
    case StateKind::LikeParameter:
      return numel(shape) * element;
    case StateKind::Fp32:
      return numel(shape) * size_of(DType::Float32);
    case StateKind::Blocks8bit:
      return blocks_8bit(numel(shape));
    case StateKind::Factored:
      return factors(shape) * element;
    case StateKind::FactoredFp32:
      return factors(shape) * size_of(DType::Float32);
  }
  return 0;
}

// The momentum's step in the parameter's dtype; then, in bf16 whatever that is, the matrix of one
// iteration and the next, and two square ones of the shorter side.
std::vector<Bytes> newton_schulz_memory(const Tensor& parameter) {
  constexpr std::int64_t element = 2;
  const std::int64_t rows = parameter.shape.back(1), columns = parameter.shape.back();
  const std::int64_t side = std::min(rows, columns);
  const Bytes matrix{element * rows * columns}, square{element * side * side};
  return {Bytes{size_of(parameter.dtype) * rows * columns}, matrix, matrix, square, square};
}

}  // namespace

std::string forms_of(const OptimizerRow& row) {
  std::string text;
  for (const auto& [form, name] : optimizer_forms)
    if (row.in(form)) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

OptimizerForm form_of(const OptimizerRow& row, std::optional<OptimizerForm> asked,
                      OptimizerForm frameworks) {
  for (const auto& form : {asked, row.usual, std::optional(frameworks)})
    if (form && row.in(*form)) return *form;
  const auto* known = std::ranges::find_if(
      optimizer_forms, [&](const auto& form) { return row.in(form.value).has_value(); });
  return known->value;
}

Bytes state_bytes(const OptimizerRow& row, const Tensor& parameter, bool master_weights) {
  const bool has_copy = master_weights && size_of(parameter.dtype) == 2;
  const std::int64_t element = has_copy ? size_of(DType::Float32) : size_of(parameter.dtype);
  const std::int64_t copy = has_copy ? element * numel(parameter.shape) : 0;
  return Bytes{row.states * bytes_of_state(row.state, parameter.shape, element) + copy};
}

UpdateMemory update_memory(const OptimizerRow& row, const UpdateForm& form, const Tensor& parameter,
                           bool l2_decay) {
  UpdateMemory memory;
  if (row.value == Optimizer::Muon) {
    memory.released = newton_schulz_memory(parameter);
    return memory;
  }
  Bytes one = size(parameter);
  int temporaries = form.temporaries + (l2_decay ? form.decay : 0);
  if (row.state == StateKind::FactoredFp32) {
    const Bytes wide{numel(parameter.shape) * size_of(DType::Float32)};
    if (wide > one) temporaries += 2;
    one = wide;
  }
  memory.released.assign(static_cast<std::size_t>(temporaries - form.held), one);
  memory.held.assign(static_cast<std::size_t>(form.held), one);
  return memory;
}

std::vector<MatrixProduct> newton_schulz(const Shape& shape) {
  constexpr int iterations = 5;
  const std::int64_t rows = shape.back(1), columns = shape.back();
  const std::int64_t side = std::min(rows, columns), other = std::max(rows, columns);
  const std::int64_t matrices = numel(shape) / (rows * columns);  // of experts, each its own
  std::vector<MatrixProduct> products;
  for (std::int64_t i = 0; i < iterations * matrices; ++i)
    products.insert(products.end(), {{side, side, other}, {side, side, side}, {side, other, side}});
  return products;
}

}  // namespace tidemark
