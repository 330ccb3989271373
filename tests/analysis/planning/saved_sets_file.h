// Files that say which tensors another planner saves, by name.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "analysis/comparison.h"

namespace tidemark {

/// Of a file of the repository.
std::string text_of_source(const std::string& path);

/// {"norm1": "0-2,5"} as "blocks.0.norm1" and so on, and what stands outside of blocks.
std::set<std::string> saved_of(const nlohmann::ordered_json& point);

/// "0-2,5": these blocks.
std::set<int> blocks_of_ranges(const std::string& ranges);

/// The network that such a file is of, on an A100.
Scenario scenario_of_saved(const nlohmann::ordered_json& network);

/// Where the optimizer's step holds the peak, only fragmentation differs from plan to plan: which
/// of them fits to the byte is chance.
inline Bytes with_chance(Bytes bytes) { return bytes + Bytes{bytes.count / 1000}; }

/// "| 8.19 GiB | 342 ms | 341 ms | −0.3 % |" of the end of a row.
std::string row_beside(const Report& theirs, const Report& ours);

}  // namespace tidemark
