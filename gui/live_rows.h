// The rows of the live set: buffers, or groups of those that have the same role in every block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gui/indexes/live_set.h"

namespace tidemark::gui {

struct LiveRow {
  static constexpr Nanoseconds never{INT64_MAX};

  std::string name;                    ///< "blocks.*.mlp.fc1" of a group
  BufferId id{};                       ///< the largest of a group
  Bytes bytes;                         ///< of all of them
  Nanoseconds born{}, next_use{};      ///< of the oldest; the soonest, or never
  std::vector<BufferId> members = {};  ///< of a group, largest first; empty of a single buffer

  bool is_group() const { return !members.empty(); }
};

/// What the buffer is called in any block: "blocks.*.mlp.fc1" of "blocks.3.mlp.fc1".
std::string role_name(const Opened& opened, BufferId buffer);

/// Those that are listed and whose name, category or decision holds `filter` in any case of
/// letters; largest first. Grouped, buffers of one role and category are one row if they are two or
/// more.
std::vector<LiveRow> rows_of(const Opened& opened, const LiveSet& live, Nanoseconds moment,
                             std::string_view filter, bool grouped);
/// Of one buffer.
LiveRow row_of(const Opened& opened, BufferId buffer, Nanoseconds moment);

}  // namespace tidemark::gui
