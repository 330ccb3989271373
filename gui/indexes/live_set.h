// Who is alive at one moment: the largest of them, all of them by address, and their sums by
// category, block and op. Made in slices, so that a moment among millions of buffers costs a few
// frames instead of one long one.
#pragma once

#include "gui/opened.h"

namespace tidemark::gui {

/// What is alive of one op in one category.
struct LiveShare {
  Category category{};
  std::int32_t block = -1;
  OpId op = no_op;
  Bytes bytes;
  std::size_t buffers = 0;
};

/// Neighbouring shares of one category and block: [first, last).
struct LiveBlock {
  std::size_t first, last;
  Bytes bytes;
  std::size_t buffers = 0;
};

struct LiveSet {
  /// The table shows no more rows than this; the rest is counted.
  static constexpr std::size_t most_listed = 1000;

  StateId state = 0;
  std::vector<BufferId> largest;     ///< largest first
  std::vector<BufferId> by_address;  ///< empty if the recording knows no addresses
  std::vector<LiveShare> shares;     ///< by category, block, op
  std::vector<LiveBlock> blocks;
  std::size_t count = 0;
  Bytes bytes;         ///< of all
  Bytes bytes_listed;  ///< of `largest`
};

class LiveSetBuilder {
 public:
  /// Looks at this moment from now on. What was found about another one stays until all is known.
  void look(std::shared_ptr<const Opened> opened, StateId state);
  /// Examines that many buffers. True when nothing is left to do.
  bool advance(std::size_t buffers);

  bool is_complete() const { return next_ == end_; }
  /// The last complete one.
  const LiveSet& current() const { return current_; }
  const Opened* owner() const { return owner_.get(); }

 private:
  void examine(std::size_t i);
  void list(BufferId id);
  void add_share(BufferId id);

  std::shared_ptr<const Opened> opened_, owner_;
  StateId state_ = 0;
  std::size_t next_ = 0, end_ = 0;  ///< the buffers by size, by home, by address
  LiveSet growing_, current_;
};

/// A stretch of free addresses between the buffers of a live set.
struct Gap {
  std::int64_t begin, end;
};
std::vector<Gap> gaps_of(const Opened& opened, const LiveSet& live);

}  // namespace tidemark::gui
