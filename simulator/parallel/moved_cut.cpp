// Heads, rows and columns, through views, slices and copies.
#include "simulator/parallel/moved_cut.h"

#include "simulator/parallel/tensor_cuts.h"

namespace tidemark {
namespace {

constexpr std::int8_t nowhere = TensorCuts::whole;

std::int8_t last_of(const Shape& shape) { return static_cast<std::int8_t>(shape.rank() - 1); }

// [batch, tokens, width] → [batch · tokens, width]
bool joins_rows(const Shape& from, const Shape& to) {
  return from.rank() == 3 && to.rank() == 2 && from.back() == to.back();
}

std::int8_t reshaped_cut(const Shape& from, std::int8_t cut, const Shape& to) {
  const bool is_at_back = cut == last_of(from);
  if (numel(to) < numel(from)) return from.rank() == to.rank() ? cut : nowhere;  // a slice
  if (is_at_back && from.back() == to.back()) return last_of(to);
  if (from == to) return cut;
  if (joins_rows(from, to)) return cut == sequence_dimension ? row_dimension : nowhere;
  if (joins_rows(to, from)) return cut == row_dimension ? sequence_dimension : nowhere;
  const bool splits = to.rank() >= 2 && to.back() * to.back(1) == from.back();
  if (is_at_back && splits) return static_cast<std::int8_t>(to.rank() - 2);
  const bool joins = from.rank() >= 2 && from.back() * from.back(1) == to.back();
  if (joins && cut + 2 == static_cast<int>(from.rank())) return last_of(to);
  return nowhere;
}

}  // namespace

std::int8_t moved_cut(LayoutTransform transform, const Shape& from, std::int8_t cut,
                      const Shape& to) {
  constexpr std::int8_t heads = 1;  // of [batch, heads, tokens, width]
  if (transform == LayoutTransform::SplitHeads) return cut == last_of(from) ? heads : nowhere;
  if (transform == LayoutTransform::MergeHeads) return cut == heads ? last_of(to) : nowhere;
  if (transform == LayoutTransform::Slice) return cut;
  if (transform == LayoutTransform::ChannelsFirst && from.rank() == to.rank() &&
      cut + 2 < static_cast<int>(from.rank()))
    return cut;
  return transform == LayoutTransform::Reshape ? reshaped_cut(from, cut, to) : nowhere;
}

}  // namespace tidemark
