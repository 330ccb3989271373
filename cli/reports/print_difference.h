// Why a run needed another amount of memory than was predicted, for people and for programs.
#pragma once

#include <string>

#include "analysis/beside/difference.h"
#include "analysis/explanation.h"
#include "analysis/recording/recording.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {

/// Both of a prediction and of the file that was recorded.
struct BesideFacts {
  const Explanation& explanation;
  std::string file;
  std::string recorded;  ///< what it is: a recording's title
  Source source;         ///< a timeline may be of another prediction
  beside::Difference difference;
};

/// At most `top` tensors of each cause.
std::string difference_table(const BesideFacts& facts, const Style& style, std::size_t top);
/// All of them.
std::string difference_json(const BesideFacts& facts);

}  // namespace tidemark::cli
