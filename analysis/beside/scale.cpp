// Ratios of the largest sizes are tried; the one under which most bytes agree is taken.
#include "analysis/beside/scale.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace tidemark::beside {
namespace {

/// How many blocks there are of each rounded size.
using Counts = std::map<std::int64_t, std::int64_t, std::greater<>>;

Bytes scaled_size(Bytes size, double factor) {
  return {std::llround(static_cast<double>(size.count) * factor)};
}

Counts counts_of(const Side& side, const BlockList& blocks, const Scale& scale) {
  Counts counts;
  for (const std::uint32_t number : blocks) {
    const Block& block = side.blocks[number];
    ++counts[rounded(is_scaled(scale, block) ? scaled_size(block.size, scale.factor) : block.size)
                 .count];
  }
  return counts;
}

Bytes shared(const Counts& a, const Counts& b) {
  Bytes sum;
  for (const auto& [size, count] : a)
    if (const auto found = b.find(size); found != b.end())
      sum.count += size * std::min(count, found->second);
  return sum;
}

// The sizes that most bytes are of.
std::vector<std::int64_t> heaviest(const Counts& counts, const Counts& but) {
  constexpr std::size_t most = 10;
  std::vector<std::pair<std::int64_t, std::int64_t>> bytes;
  for (const auto& [size, count] : counts) {
    const auto found = but.find(size);
    const std::int64_t left = count - (found == but.end() ? 0 : found->second);
    if (left > 0) bytes.emplace_back(size * left, size);
  }
  std::ranges::sort(bytes, std::greater());
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < std::min(most, bytes.size()); ++i) sizes.push_back(bytes[i].second);
  return sizes;
}

}  // namespace

bool is_scaled(const Scale& scale, const Block& block) {
  if (block.tensor == no_tensor) return false;
  if (scale.of_everything) return true;
  constexpr Bytes one_number{8};  // a loss, of however many samples
  if (block.size <= one_number) return false;
  return block.category == Category::Activation || block.category == Category::Temporary ||
         block.category == Category::Input;
}

std::optional<Scale> find_scale(const Side& predicted, const BlockList& there, const Side& recorded,
                                const BlockList& found) {
  const Counts theirs = counts_of(recorded, found, {}), ours = counts_of(predicted, there, {});
  const Bytes as_they_are = shared(ours, theirs);
  std::set<double> factors;
  for (const std::int64_t a : heaviest(ours, theirs))
    for (const std::int64_t b : heaviest(theirs, ours))
      factors.insert(static_cast<double>(b) / static_cast<double>(a));
  Bytes best = as_they_are;
  std::optional<Scale> scale;
  for (const bool of_everything : {false, true})
    for (const double factor : factors) {
      const Scale tried{factor, of_everything};
      const Bytes agrees = shared(counts_of(predicted, there, tried), theirs);
      if (agrees > best) best = agrees, scale = tried;
    }
  // It has to explain half of what does not agree as it is, and the sum has to come nearer.
  const Bytes all = bytes_of(recorded, found);
  if (!scale || 2 * (best - as_they_are).count < (all - as_they_are).count) return {};
  const auto distance = [&](const Side& side) {
    return std::abs((bytes_of(side, there) - all).count);
  };
  if (distance(scaled(predicted, *scale)) >= distance(predicted)) return {};
  return scale;
}

Side scaled(Side predicted, const Scale& scale) {
  for (Block& block : predicted.blocks)
    if (is_scaled(scale, block)) block.size = scaled_size(block.size, scale.factor);
  return predicted;
}

}  // namespace tidemark::beside
