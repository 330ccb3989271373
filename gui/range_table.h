// What happens between two moments: what was allocated and freed, what stayed, and the work by
// kind.
#pragma once

#include <future>

#include "gui/facts.h"

namespace tidemark::gui {

/// The runs of one kind in the range, and the tensors that ops of this kind make.
struct RangeRow {
  std::string kind;  ///< "linear"; "optimizer", "copy" of what is no op's
  std::size_t runs = 0;
  Nanoseconds busy{};  ///< of the part of each run that is in the range
  Bytes allocated = {}, freed = {};

  Bytes change() const { return allocated - freed; }
};

/// A buffer that is alive at one end of the range only.
struct RangeTensor {
  BufferId buffer;
  bool appears;
};

struct RangeTable {
  static constexpr std::size_t most_listed = 12;

  Bytes at_begin, at_end;  ///< alive
  Bytes allocated, freed;  ///< in between
  std::size_t allocations = 0, frees = 0;
  std::vector<RangeRow> rows;        ///< the busiest first
  std::vector<RangeTensor> tensors;  ///< what makes the difference, the largest first
  std::size_t others = 0;            ///< of them that are not listed
};

/// Events of the begin itself have happened before the range, those of its end in it.
RangeTable range_table(const Opened& opened, Range range);
std::vector<Fact> lines_of(const RangeTable& table);

/// The table of the newest range: at once where little happens, else beside the drawing.
class NewestRange {
 public:
  using Shown = std::shared_ptr<const Opened>;

  static constexpr std::size_t most_at_once = 100'000;  ///< events and runs: some milliseconds

  /// Null until the first is known; else the newest that is known.
  const RangeTable* look(const Shown& opened, Range range);
  bool is_catching_up() const {
    return coming_.valid() &&
           coming_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }
  void wait() const {
    if (coming_.valid()) coming_.wait();
  }

 private:
  Shown opened_;
  std::optional<Range> range_;
  std::optional<RangeTable> newest_;
  std::future<RangeTable> coming_;
};

}  // namespace tidemark::gui
