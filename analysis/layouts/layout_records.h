// What a search has simulated, kept line by line, so that it may be stopped, go on where it was,
// and be cut into parts on many machines. JSON Lines:
//   {"format":"tidemark-search-records","version":"0.1.0","question":"5f…","part":"1/7","arguments":[…]}
//   {"layout":"pp=2,dp=4 2x4 1f1b ddp vanilla","allocated_bytes":…,"step_ns":…,…}
//   …
//   {"is_done":true}
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/layouts/layout_search.h"

namespace tidemark {

struct LayoutRecords {
  std::string version;   ///< of the program that simulated
  std::string question;  ///< question_of() what was asked
  LayoutPart part;
  std::vector<std::string> arguments;         ///< of the command line that asks the same
  std::map<std::string, LayoutNumbers> rows;  ///< by key_of() the layout
  bool is_done = false;
  std::size_t whole = 0;  ///< bytes up to the last line that is complete: a torn one is dropped
};

/// Sixteen hexadecimal digits of model, step, device, cluster and all that bounds the search.
/// Parts of one search have the same.
std::string question_of(const LayoutRequest& request);

/// Lines of a records file, each with its end.
std::string header_line(const LayoutRecords& records);
std::string row_line(const FoundLayout& found);
std::string done_line();

/// The other way round; `file` is its name for messages. A last line without an end is dropped.
/// InputError for what is no such file.
LayoutRecords read_layout_records(std::string_view text, std::string_view file);

}  // namespace tidemark
