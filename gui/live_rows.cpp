// Filters and groups what is alive; sums and soonest uses are those of the whole group.
#include "gui/live_rows.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace tidemark::gui {
namespace {

bool is_same_letter(char a, char b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return lower(a) == lower(b);
}

bool holds(std::string_view text, std::string_view part) {
  // clang 14 does not take std::ranges::search of gcc 12's library.
  const auto found =
      std::search(text.begin(), text.end(), part.begin(), part.end(), is_same_letter);
  return part.empty() || found != text.end();
}

bool is_wanted(const Opened& opened, BufferId id, const std::string& name,
               std::string_view filter) {
  return holds(name, filter) || holds(to_string(opened.schedule()[id].category), filter) ||
         holds(opened.why_alive(id), filter);
}

void join(LiveRow& group, const LiveRow& other) {
  if (group.members.empty()) group.members = {group.id};
  group.members.push_back(other.id);
  group.bytes += other.bytes;
  group.born = std::min(group.born, other.born);
  group.next_use = std::min(group.next_use, other.next_use);
}

}  // namespace

std::string role_name(const Opened& opened, BufferId buffer) {
  const std::string name = opened.describe(buffer);
  const std::int32_t number = opened.block_of(buffer);
  if (number < 0) return name;
  const std::string block = opened.block_name(number);
  const std::size_t digits = block.find_last_not_of("0123456789") + 1;
  if (digits == block.size() || !name.starts_with(block)) return name;
  return block.substr(0, digits) + "*" + name.substr(block.size());
}

LiveRow row_of(const Opened& opened, BufferId buffer, Nanoseconds moment) {
  const auto next = opened.buffers().next_use(buffer, moment);
  return {opened.describe(buffer), buffer, opened.schedule()[buffer].size,
          opened.memory().begin_of(opened.buffers().first_state(buffer)),
          next ? opened[*next].begin : LiveRow::never};
}

std::vector<LiveRow> rows_of(const Opened& opened, const LiveSet& live, Nanoseconds moment,
                             std::string_view filter, bool grouped) {
  std::vector<LiveRow> rows;
  std::map<std::pair<std::string, Category>, std::size_t> place_of;
  for (const BufferId id : live.largest) {
    LiveRow row = row_of(opened, id, moment);
    if (!is_wanted(opened, id, row.name, filter)) continue;
    if (!grouped) {
      rows.push_back(std::move(row));
      continue;
    }
    const auto role = std::pair(role_name(opened, id), opened.schedule()[id].category);
    const auto [place, is_new] = place_of.emplace(role, rows.size());
    if (is_new) {
      rows.push_back(std::move(row));
    } else {
      join(rows[place->second], row);
      rows[place->second].name = role.first;
    }
  }
  std::ranges::stable_sort(rows, std::ranges::greater{}, &LiveRow::bytes);
  return rows;
}

}  // namespace tidemark::gui
