// Each step is an op of the trace; those of views cost nothing.
#include "traces/pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/shape_rules.h"

namespace tidemark {
namespace {

Shape with_length(const Shape& shape, std::size_t axis, std::int64_t length) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[axis] = length;
  return Shape(dims);
}

/// As few parts as there may be at once.
std::int64_t parts_of(std::int64_t count) {
  constexpr auto most = static_cast<std::int64_t>(max_operands);
  return count <= most ? count : std::min(most, (count + most - 1) / most);
}

}  // namespace

std::vector<TensorId> cut(TraceBuilder& b, const std::string& name, TensorId x, std::size_t axis,
                          std::int64_t count) {
  if (count == 1) return {x};
  const std::int64_t parts = parts_of(count), length = b.shape(x)[axis] / count;
  std::vector<Shape> shapes;
  std::vector<std::string> suffixes;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t of_part = count * (i + 1) / parts - count * i / parts;
    shapes.push_back(with_length(b.shape(x), axis, length * of_part));
    suffixes.push_back(fmt::format("{}", i));
  }
  const std::vector<TensorId> made = b.split(name, x, shapes, {suffixes.begin(), suffixes.end()});
  std::vector<TensorId> pieces;
  for (std::size_t i = 0; i < made.size(); ++i)
    for (const TensorId piece :
         cut(b, name + "." + suffixes[i], made[i], axis, b.shape(made[i])[axis] / length))
      pieces.push_back(piece);
  return pieces;
}

TensorId join(TraceBuilder& b, const std::string& name, std::span<const TensorId> pieces,
              std::size_t axis) {
  if (pieces.size() == 1) return pieces[0];
  const auto count = std::ssize(pieces), parts = parts_of(count);
  std::vector<TensorId> joined;
  for (std::int64_t i = 0; i < parts; ++i) {
    const auto from = count * i / parts, to = count * (i + 1) / parts;
    joined.push_back(join(
        b, fmt::format("{}.{}", name, i),
        pieces.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)), axis));
  }
  std::int64_t length = 0;
  for (const TensorId part : joined) length += b.shape(part)[axis];
  return b.concat(name, joined, with_length(b.shape(joined[0]), axis, length));
}

}  // namespace tidemark
