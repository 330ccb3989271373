// Sizes of codes and ranges, and the groups of Mesa's layers.
#include "simulator/encoding.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tidemark {

std::int64_t groups_of(const Encoding& encoding, const Shape& shape) {
  if (encoding.group == 0) return 1;
  CHECK(encoding.axis < shape.rank());
  return shape[encoding.axis] / std::int64_t{encoding.group};
}

Bytes size_of_codes(const Encoding& encoding, const Shape& shape) {
  return {(numel(shape) * encoding.bits + 7) / 8};
}

Bytes size_of_ranges(const Encoding& encoding, const Shape& shape) {
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

std::string misfit(const Encoding& encoding, const Shape& shape) {
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
