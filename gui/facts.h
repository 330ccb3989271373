// What there is to say about a run, a buffer or a range, in lines: computed once for tooltips and
// the details, with no window.
#pragma once

#include <string>
#include <vector>

#include "analysis/report.h"
#include "gui/opened.h"

namespace tidemark::gui {

struct Fact {
  std::string name;  ///< "duration"
  std::string value;
};

/// The first one is the title and has no name.
std::vector<Fact> facts_of(const Opened& opened, RunId run);
std::vector<Fact> facts_of(const Opened& opened, BufferId buffer, Nanoseconds moment);

/// What it takes, in each of the memories that people speak of, and how long.
std::vector<Fact> facts_of(const Report& report);

/// What happens between two moments.
struct RangeFacts {
  Nanoseconds span{};
  std::vector<Nanoseconds> busy;                       ///< by stream
  Nanoseconds overlap{};                               ///< with two or more streams busy
  Nanoseconds idle{};                                  ///< with none
  std::size_t runs = 0;                                ///< that begin in it
  std::optional<double> bytes_moved = {}, flops = {};  ///< by them, where the device is known
  Bytes at_begin, highest;                             ///< live bytes
};

RangeFacts facts_of(const Opened& opened, Range range);
std::vector<Fact> lines_of(const RangeFacts& facts);

/// "−8.78 GiB", "+1.20 GiB"
std::string change_text(Bytes before, Bytes after);
/// A ratio as a change: "+4.4 %", "−5.1 %".
std::string change_text(double ratio);

/// "312.0 TFLOP", "1.52 GB": decimal, as rates are stated.
std::string decimal_text(double value, std::string_view unit);

}  // namespace tidemark::gui
