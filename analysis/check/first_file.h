// The tidemark.json that `tidemark check --init` writes for a folder that has none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tidemark::regression {

/// What of a folder can be listed: paths that begin there, in their order.
struct FoundModels {
  std::vector<std::string> configs;  ///< config.json of families that are known
  std::vector<std::string> traces;   ///< *.trace.json and *.trace.json.zst, by name only
  std::size_t unread = 0;            ///< config.json of something else
  std::size_t left_out = 0;          ///< beyond what an example lists
};

/// Looks into `folder` and those in it, but not into hidden ones, nor far.
FoundModels find_models_in(const std::string& folder);

/// A sound check file of these models; of a preset, where none was found.
std::string first_check_file(const FoundModels& models);

}  // namespace tidemark::regression
