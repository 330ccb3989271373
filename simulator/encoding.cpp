// Sizes of codes and ranges, and the groups of Mesa's layers and of COAT's.
#include "simulator/encoding.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tidemark {

std::int64_t groups_of(const Encoding& encoding, const Shape& shape) {
  if (encoding.group == 0) return 1;
  if (encoding.format == CodeFormat::Float8)
    return (numel(shape) + encoding.group - 1) / encoding.group;
  CHECK(encoding.axis < shape.rank());
  return shape[encoding.axis] / std::int64_t{encoding.group};
}

Bytes size_of_codes(const Encoding& encoding, const Shape& shape) {
  const std::int64_t codes = (numel(shape) * encoding.bits + 7) / 8;
  if (has_ranges(encoding)) return {codes};
  return {round_up(codes, size_of(DType::Float32)) +
          groups_of(encoding, shape) * encoding.metadata};
}

Bytes size_of_ranges(const Encoding& encoding, const Shape& shape) {
  if (!has_ranges(encoding)) return {};
  return {groups_of(encoding, shape) * encoding.metadata};
}

Encoding mesa_encoding(const Shape& shape, int bits, std::int64_t channels) {
  Encoding encoding{.bits = static_cast<std::uint8_t>(bits)};
  if (shape.rank() == 0) return encoding;
  const bool has_heads = shape.rank() == 4;
  encoding.axis = static_cast<std::uint8_t>(has_heads ? 1 : shape.rank() - 1);
  if (has_heads)
    encoding.group = 1;
  else if (shape.back() % channels == 0)
    encoding.group = static_cast<std::uint32_t>(channels);
  return encoding;
}

Encoding float8_encoding_of_tensor() {
  return {.metadata = size_of(DType::Float32), .format = CodeFormat::Float8};
}

Encoding float8_encoding(const Shape& shape, std::int64_t neighbours) {
  Encoding encoding = float8_encoding_of_tensor();
  const std::int64_t row = shape.rank() == 0 ? 1 : shape.back();
  if (row % neighbours == 0)
    encoding.group = static_cast<std::uint32_t>(neighbours);
  else if (row > neighbours)
    encoding.group = static_cast<std::uint32_t>(row);
  return encoding;
}

Encoding usual_encoding(CodeFormat format, const Shape& shape) {
  return format == CodeFormat::Float8 ? float8_encoding(shape) : mesa_encoding(shape);
}

namespace {

std::string misfit_of_floats(const Encoding& encoding, const Shape& shape) {
  if (encoding.bits != 8) return fmt::format("floats have 8 bits, not {}", encoding.bits);
  if (encoding.metadata != size_of(DType::Float32))
    return fmt::format("floats have a magnitude of 4 bytes per group, not {}", encoding.metadata);
  if (encoding.delayed) return "floats are coded by their own magnitudes, not by the last step's";
  if (encoding.axis != 0) return "groups of floats divide the last axis; leave 'axis' out";
  if (encoding.group == 0) return {};
  const std::int64_t row = shape.rank() == 0 ? 1 : shape.back();
  if (row % encoding.group != 0)
    return fmt::format("groups of {} do not divide its rows of {}", encoding.group, row);
  return {};
}

}  // namespace

std::string misfit(const Encoding& encoding, const Shape& shape) {
  if (encoding.format == CodeFormat::Float8) return misfit_of_floats(encoding, shape);
  if (std::ranges::find(code_bits, encoding.bits) == code_bits.end())
    return fmt::format("codes have {} bits, not {}", fmt::join(code_bits, ", "), encoding.bits);
  if (encoding.metadata < 8)
    return fmt::format("{} bytes hold no range and minimum of a group", encoding.metadata);
  if (encoding.group == 0) return {};
  if (encoding.axis >= shape.rank())
    return fmt::format("it has no axis {} to be divided into groups", encoding.axis);
  if (shape[encoding.axis] % encoding.group != 0)
    return fmt::format("groups of {} do not divide its axis {}, which has {}", encoding.group,
                       encoding.axis, shape[encoding.axis]);
  return {};
}

}  // namespace tidemark
