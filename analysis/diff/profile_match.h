// Which steps of two files belong together.
#pragma once

#include "analysis/diff/profile.h"

namespace tidemark::diff {

/// Two profiles reduced to tables with the same meaning.
struct MatchedTables {
  std::string before, after;  ///< titles, with the step that was chosen
  std::vector<ProfileTable> old_tables, new_tables;
};

/// Throws UsageError, with the remedy, where no step of one belongs to any of the other, or more
/// than one does.
MatchedTables match(const Profile& before, const Profile& after);

}  // namespace tidemark::diff
