// Sorts what is alive at both peaks by size, pairs it, and sums up what is left.
#include "analysis/diff/tensor_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/units.h"
#include "simulator/arena.h"

namespace tidemark::diff {
namespace {

struct Alive {
  std::string name;
  Bytes size;
  std::size_t born = 0;  // its place in the order of events; 0 of what was always there
  bool is_matched = false;
};

std::string name_of(const Recording& recording, const Buffer& buffer) {
  const std::string_view role = roles[static_cast<std::size_t>(buffer.role)].name;
  if (buffer.tensor == no_tensor) return fmt::format("({}, {})", role, to_string(buffer.category));
  const std::string& tensor = (*recording.trace)[buffer.tensor].name;
  return buffer.role == Role::Value ? tensor : fmt::format("{} ({})", tensor, role);
}

// In the order of birth.
std::vector<Alive> alive_at_peak(const Recording& recording) {
  const auto& buffers = recording.schedule.buffers;
  const auto& events = recording.timeline.memory;
  const std::size_t last = peak(recording.schedule, recording.timeline).event;
  constexpr std::size_t nowhere = SIZE_MAX;
  std::vector<std::size_t> born(buffers.size(), nowhere);
  for (std::size_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].persistent) born[b] = 0;
  for (std::size_t e = 0; e < events.size() && last < events.size() && e <= last; ++e)
    born[index(events[e].buffer)] = events[e].appears ? e + 1 : nowhere;
  std::vector<Alive> alive;
  for (std::size_t b = 0; b < buffers.size(); ++b)
    if (born[b] != nowhere)
      alive.push_back({name_of(recording, buffers[b]), buffers[b].size, born[b]});
  std::ranges::stable_sort(alive, {}, &Alive::born);
  return alive;
}

std::int64_t rounded_size(Bytes size) { return round_up(size.count, arena_alignment); }

void pair_up(Alive& before, Alive& after, TensorMatch& match) {
  before.is_matched = after.is_matched = true;
  ++match.matched;
  match.matched_bytes += after.size;
  match.rounding += after.size - before.size;
}

// Of those whose key is the same the first with the first, the second with the second, …
template <typename KeyOf>
void pair_by(std::vector<Alive>& before, std::vector<Alive>& after, KeyOf key_of,
             TensorMatch& match) {
  std::map<decltype(key_of(before.front())), std::vector<Alive*>> waiting;
  for (Alive& one : after)
    if (!one.is_matched) waiting[key_of(one)].push_back(&one);
  for (auto& [key, partners] : waiting) std::ranges::reverse(partners);
  for (Alive& one : before) {
    if (one.is_matched) continue;
    const auto found = waiting.find(key_of(one));
    if (found == waiting.end() || found->second.empty()) continue;
    pair_up(one, *found->second.back(), match);
    found->second.pop_back();
  }
}

// "blocks.*.mlp.fc1" of "blocks.3.mlp.fc1": what every block has is one row.
std::string in_any_block(const std::string& name) {
  std::string text;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool is_number = part.find_first_not_of("0123456789") == part.npos && !part.empty();
    text += (begin > 0 ? "." : "") + (is_number ? "*" : part);
    begin = end + 1;
  }
  return text;
}

std::vector<Unmatched> unmatched(const std::vector<Alive>& all) {
  std::map<std::pair<std::string, std::int64_t>, std::size_t> counts;
  for (const Alive& one : all)
    if (!one.is_matched) ++counts[{in_any_block(one.name), one.size.count}];
  std::vector<Unmatched> rows;
  for (const auto& [key, count] : counts) rows.push_back({key.first, Bytes{key.second}, count});
  std::ranges::stable_sort(rows, std::ranges::greater{}, &Unmatched::bytes);
  return rows;
}

Bytes sum_of(const std::vector<Alive>& all) {
  Bytes sum;
  for (const Alive& one : all) sum += one.size;
  return sum;
}

}  // namespace

TensorMatch match_tensors(const Recording& before, const Recording& after) {
  std::vector<Alive> a = alive_at_peak(before), b = alive_at_peak(after);
  TensorMatch match;
  match.before = sum_of(a), match.after = sum_of(b);
  pair_by(
      a, b, [](const Alive& one) { return std::pair(rounded_size(one.size), one.name); }, match);
  pair_by(
      a, b, [](const Alive& one) { return rounded_size(one.size); }, match);
  match.missing = unmatched(a), match.extra = unmatched(b);
  return match;
}

std::string headline(const TensorMatch& match, std::string_view before_label) {
  if (match.change().count == 0 && match.extra.empty() && match.missing.empty())
    return fmt::format("the same tensors as {}", before_label);
  const bool is_more = match.change().count >= 0;
  const Bytes change{std::abs(match.change().count)};
  std::string text = change.count == 0 ? fmt::format("as much as {}", before_label)
                                       : fmt::format("{} {} than {}", to_text(change),
                                                     is_more ? "more" : "less", before_label);
  // What makes the difference comes first; three are read at a glance.
  constexpr std::size_t most_told = 3;
  const auto& rows = is_more ? match.extra : match.missing;
  for (std::size_t i = 0; i < std::min(rows.size(), most_told); ++i) {
    const std::string times = rows[i].count > 1 ? fmt::format("{} × ", rows[i].count) : "";
    text +=
        fmt::format("{}{}{} {}", i == 0 ? ": " : ", ", times, to_text(rows[i].size), rows[i].name);
  }
  if (rows.size() > most_told) text += ", …";
  return text;
}

}  // namespace tidemark::diff
