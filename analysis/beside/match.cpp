// Blocks of one size are grouped by what they are, and the groups paired in passes: what agrees in
// most comes first, so that what is left over is what differs.
#include "analysis/beside/match.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

namespace tidemark::beside {
namespace {

/// Blocks of one side that nothing tells apart but their order.
struct Alike {
  Block block;
  BlockList members;
  std::size_t used = 0;
};

/// By rounded size.
using Classes = std::map<std::int64_t, std::vector<Alike>>;

Classes classes_of(const Side& side, const BlockList& blocks) {
  Classes classes;
  std::map<std::tuple<std::int64_t, std::string_view, TensorId, Role, Category>, std::size_t> known;
  for (const std::uint32_t number : blocks) {
    const Block& block = side.blocks[number];
    const std::int64_t size = rounded(block.size).count;
    std::vector<Alike>& groups = classes[size];
    const bool is_recorded = side.callers != nullptr;
    const auto key = std::tuple(size, line_of(side, block), is_recorded ? block.tensor : no_tensor,
                                block.role, block.category);
    const auto [place, is_new] = known.emplace(key, groups.size());
    if (is_new) groups.push_back({block, {}, 0});
    groups[place->second].members.push_back(number);
  }
  return classes;
}

bool agrees_in_category(const Block& predicted, const Block& recorded) {
  return recorded.category == predicted.category && recorded.category != Category::Unknown;
}

/// The passes, strictest first.
constexpr int passes = 5;

bool fits(int pass, const Side& predicted, const Block& a, const Side& recorded, const Block& b) {
  const std::string_view line = line_of(predicted, a);
  const bool is_at_line = (!line.empty() && is_called_at(recorded, b, line)) ||
                          is_made_by_same(predicted, a, recorded, b);
  switch (pass) {
    case 0:
      return agrees_in_category(a, b) && is_at_line;
    case 1:
      return is_at_line;
    case 2:
      return agrees_in_category(a, b) && line.empty();
    case 3:
      return line.empty() && is_of_backward(recorded, b);
    case 4:
      return true;
  }
  return false;
}

// In order, the last ones first: what is left over of a step's tensors is what earlier steps left.
void pair_up(Alike& a, Alike& b, Match& match) {
  for (; a.used < a.members.size() && b.used < b.members.size(); ++a.used, ++b.used)
    match.pairs.emplace_back(a.members[a.members.size() - 1 - a.used],
                             b.members[b.members.size() - 1 - b.used]);
}

void pair_class(const Side& predicted, std::vector<Alike>& there, const Side& recorded,
                std::vector<Alike>& found, Match& match) {
  for (int pass = 0; pass < passes; ++pass)
    for (Alike& a : there)
      for (Alike& b : found)
        if (a.used < a.members.size() && b.used < b.members.size() &&
            fits(pass, predicted, a.block, recorded, b.block))
          pair_up(a, b, match);
}

BlockList left_of(const Classes& classes) {
  BlockList left;
  for (const auto& [size, groups] : classes)
    for (const Alike& group : groups)
      left.insert(left.end(), group.members.begin(),
                  group.members.end() - static_cast<std::ptrdiff_t>(group.used));
  return left;
}

void pair_unsplit(const Side& predicted, const Side& recorded, Match& match) {
  std::multimap<std::int64_t, std::uint32_t> open;  // recorded, by size
  for (const std::uint32_t block : match.recorded_only)
    open.emplace(recorded.blocks[block].size.count, block);
  BlockList still;
  for (const std::uint32_t block : match.predicted_only) {
    const Bytes size = rounded(predicted.blocks[block].size);
    const auto found = open.lower_bound(size.count);
    if (size <= most_unsplit || found == open.end() || found->first > (size + most_unsplit).count) {
      still.push_back(block);
      continue;
    }
    match.pairs.emplace_back(block, found->second);
    open.erase(found);
  }
  match.predicted_only = still;
  match.recorded_only.clear();
  for (const auto& [size, block] : open) match.recorded_only.push_back(block);
  std::ranges::sort(match.recorded_only);
}

// What an op's kernels take is known as one sum, which their largest block mostly is.
void pair_scratch(const Side& predicted, const Side& recorded, Match& match) {
  const auto size_of = [&](std::uint32_t block) { return recorded.blocks[block].size.count; };
  std::erase_if(match.predicted_only, [&](std::uint32_t number) {
    const Block& scratch = predicted.blocks[number];
    if (!is_scratch(scratch)) return false;
    const auto found = std::ranges::find_if(match.recorded_only, [&](std::uint32_t block) {
      return std::abs(size_of(block) - scratch.size.count) <= scratch.size.count / scratch_share;
    });
    if (found == match.recorded_only.end()) return false;
    match.pairs.emplace_back(number, *found);
    match.recorded_only.erase(found);
    return true;
  });
}

}  // namespace

bool has_stack(const Side& recorded, const Block& block) {
  return recorded.callers && block.tensor != no_tensor &&
         !(*recorded.callers)[index(block.tensor)].empty();
}

bool is_of_backward(const Side& recorded, const Block& block) {
  return !has_stack(recorded, block) ||
         (*recorded.callers)[index(block.tensor)].find("autograd::engine") != std::string::npos;
}

bool has_lines(const Side& recorded, const Block& block) {
  return has_stack(recorded, block) &&
         (*recorded.callers)[index(block.tensor)].find(".py:") != std::string::npos;
}

bool is_made_by_same(const Side& predicted, const Block& block, const Side& recorded,
                     const Block& found) {
  const bool holds_value = block.role == Role::Value || block.role == Role::Codes;
  if (predicted.operations.empty() || block.tensor == no_tensor || !holds_value) return false;
  const std::string_view made_by =
      predicted.operations[index((*predicted.trace)[block.tensor].storage)];
  return !made_by.empty() && has_stack(recorded, found) && name_of(recorded, found) == made_by;
}

bool is_called_at(const Side& recorded, const Block& block, std::string_view line) {
  if (!has_stack(recorded, block)) return false;
  const std::size_t slash = line.find_last_of('/');
  const std::string place =
      "(" + std::string(slash == line.npos ? line : line.substr(slash + 1)) + ")";
  return (*recorded.callers)[index(block.tensor)].find(place) != std::string::npos;
}

std::string_view line_of(const Side& predicted, const Block& block) {
  const bool holds_value = block.role == Role::Value || block.role == Role::Codes;
  if (predicted.lines.empty() || block.tensor == no_tensor || !holds_value) return "";
  return predicted.lines[index((*predicted.trace)[block.tensor].storage)];
}

Match match(const Side& predicted, const BlockList& there, const Side& recorded,
            const BlockList& found) {
  Classes ours = classes_of(predicted, there), theirs = classes_of(recorded, found);
  Match match;
  for (auto& [size, groups] : ours)
    if (const auto same = theirs.find(size); same != theirs.end())
      pair_class(predicted, groups, recorded, same->second, match);
  match.predicted_only = left_of(ours);
  match.recorded_only = left_of(theirs);
  pair_unsplit(predicted, recorded, match);
  pair_scratch(predicted, recorded, match);
  return match;
}

}  // namespace tidemark::beside
