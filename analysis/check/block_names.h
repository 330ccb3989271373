// The names of a model's blocks as a baseline keeps them: blocks.0 to blocks.11 as "blocks.0-11".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::regression {

/// In the order of `names`; those that count up become one range.
std::vector<std::string> block_ranges(const std::vector<std::string>& names);

/// Whether a block of this name is in one of the ranges.
bool is_in_ranges(const std::vector<std::string>& ranges, std::string_view name);

}  // namespace tidemark::regression
