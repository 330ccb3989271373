// Whether two experiments ask the same, and for which of them an answer is still worth comparing.
#pragma once

#include <string>
#include <vector>

#include "analysis/check/outcome.h"

namespace tidemark::regression {

struct SettingChange {
  std::string key;
  std::string before, now;  ///< "" = not set
};

/// By key.
std::vector<SettingChange> changes_of(const Settings& before, const Settings& now);

/// "batch 64 → 128, sequence not set → 512"
std::string describe(const std::vector<SettingChange>& changes);

/// True where all that changed is how large the batch is, or what is in it: then the numbers are of
/// one thing in two sizes.
bool are_sizes_of_the_step(const std::vector<SettingChange>& changes);

/// The settings but for those sizes, as one text: equal where only the sizes differ.
std::string without_sizes_of_the_step(const Settings& settings);

}  // namespace tidemark::regression
