// Walks the buffers in three presorted orders, by size, by op and by address, a slice at a time.
#include "gui/indexes/live_set.h"

#include <algorithm>

namespace tidemark::gui {

void LiveSetBuilder::look(std::shared_ptr<const Opened> opened, StateId state) {
  if (opened == opened_ && state == state_) return;
  opened_ = std::move(opened);
  state_ = state;
  growing_ = {};
  growing_.state = state;
  next_ = 0;
  // Three passes over the buffers, in three orders that were made when the recording was opened.
  end_ = 2 * opened_->buffers().by_size().size() + opened_->by_address().size();
  // Without buffers there is nothing to wait for.
  if (end_ == 0) current_ = growing_, owner_ = opened_;
}

bool LiveSetBuilder::advance(std::size_t buffers) {
  if (is_complete()) return true;
  for (const std::size_t stop = std::min(end_, next_ + buffers); next_ < stop; ++next_)
    examine(next_);
  if (!is_complete()) return false;
  current_ = std::move(growing_);
  owner_ = opened_;
  return true;
}

// Each order of the buffers gives one part of the set, already sorted.
void LiveSetBuilder::examine(std::size_t i) {
  const std::size_t count = opened_->buffers().by_size().size();
  const std::size_t pass = i / std::max<std::size_t>(1, count);
  const std::size_t k = i - pass * count;
  const BufferId id = pass == 0   ? opened_->buffers().by_size()[k]
                      : pass == 1 ? opened_->by_home()[k]
                                  : opened_->by_address()[k];
  if (!opened_->buffers().is_alive(id, state_)) return;
  if (pass == 0) return list(id);
  if (pass == 1) return add_share(id);
  growing_.by_address.push_back(id);
}

void LiveSetBuilder::list(BufferId id) {
  const Bytes size = opened_->schedule()[id].size;
  ++growing_.count;
  growing_.bytes += size;
  // By size, so the first are the largest: the rest is counted above and not listed.
  if (growing_.largest.size() == LiveSet::most_listed) return;
  growing_.largest.push_back(id);
  growing_.bytes_listed += size;
}

void LiveSetBuilder::add_share(BufferId id) {
  const Buffer& buffer = opened_->schedule()[id];
  const LiveShare of{buffer.category, opened_->block_of(id), opened_->home_of(id), {}, 0};
  std::vector<LiveShare>& shares = growing_.shares;
  std::vector<LiveBlock>& blocks = growing_.blocks;
  // By home, so what belongs together comes together: only the last share can be the same.
  const bool is_new_block =
      shares.empty() || shares.back().category != of.category || shares.back().block != of.block;
  if (is_new_block) blocks.push_back({shares.size(), shares.size(), {}, 0});
  if (is_new_block || shares.back().op != of.op) shares.push_back(of), ++blocks.back().last;
  shares.back().bytes += buffer.size, blocks.back().bytes += buffer.size;
  ++shares.back().buffers, ++blocks.back().buffers;
}

std::vector<Gap> gaps_of(const Opened& opened, const LiveSet& live) {
  std::vector<Gap> gaps;
  std::int64_t free_from = 0;
  for (const BufferId id : live.by_address) {
    const std::int64_t begin = opened.recording.offsets[index(id)];
    if (begin > free_from) gaps.push_back({free_from, begin});
    // In one nanosecond two buffers may share addresses: one goes while the next comes.
    free_from = std::max(free_from, begin + opened.schedule()[id].size.count);
  }
  if (free_from < opened.recording.planned.count)
    gaps.push_back({free_from, opened.recording.planned.count});
  return gaps;
}

}  // namespace tidemark::gui
