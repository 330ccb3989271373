// What differs, in four formats.
#pragma once

#include <string>

#include "analysis/diff/diff.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {

/// At most `top` rows of each table; what is left out is said.
std::string diff_table(const diff::Diff& diff, const Style& style, std::size_t top);
std::string diff_markdown(const diff::Diff& diff, std::size_t top);
/// All rows.
std::string diff_json(const diff::Diff& diff);
std::string diff_csv(const diff::Diff& diff);

}  // namespace tidemark::cli
