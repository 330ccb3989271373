// The lives of the buffers of a step: when each is there, who writes and reads it.
#pragma once

#include <optional>
#include <span>

#include "analysis/recording/recording.h"
#include "gui/indexes/memory_pyramid.h"

namespace tidemark::gui {

/// Position of a run in `Timeline::runs`.
enum class RunId : std::uint32_t {};
constexpr std::size_t index(RunId id) { return static_cast<std::size_t>(id); }

/// Items sorted into groups, all in two flat arrays.
class Groups {
 public:
  Groups() = default;
  /// `group_of(emit)` calls emit(group, item) for each membership, the same ones each time.
  template <typename ForEach>
  Groups(std::size_t groups, ForEach for_each) : begin_(groups + 1) {
    for_each([&](std::size_t group, std::uint32_t) { ++begin_[group + 1]; });
    for (std::size_t g = 0; g < groups; ++g) begin_[g + 1] += begin_[g];
    items_.resize(begin_.back());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for_each([&](std::size_t group, std::uint32_t item) { items_[next[group]++] = item; });
  }

  std::span<const std::uint32_t> operator[](std::size_t group) const {
    return std::span(items_).subspan(begin_[group], begin_[group + 1] - begin_[group]);
  }

 private:
  std::vector<std::uint32_t> begin_{0};
  std::vector<std::uint32_t> items_;
};

class BufferIndex {
 public:
  BufferIndex() = default;
  explicit BufferIndex(const Recording& recording);

  bool is_alive(BufferId buffer, StateId state) const {
    return first_[index(buffer)] <= state && state < last_[index(buffer)];
  }
  /// Alive in the states [first, last); states() of the pyramid if until the end.
  StateId first_state(BufferId buffer) const { return first_[index(buffer)]; }
  StateId last_state(BufferId buffer) const { return last_[index(buffer)]; }

  /// Largest first; of equal ones the lower id first.
  std::span<const BufferId> by_size() const { return by_size_; }

  /// The runs that read or write the buffer, in the order in which they begin.
  std::span<const std::uint32_t> runs_of(BufferId buffer) const { return runs_[index(buffer)]; }
  std::optional<RunId> first_writer(BufferId buffer) const;
  std::optional<RunId> last_reader(BufferId buffer) const;
  /// The first run that uses the buffer and begins at or after the moment.
  std::optional<RunId> next_use(BufferId buffer, Nanoseconds moment) const;

 private:
  const Recording* recording_ = nullptr;
  std::vector<std::uint32_t> first_, last_;
  std::vector<BufferId> by_size_;
  Groups runs_;
};

/// All buffers, the largest first; of equal ones the lower id first.
std::vector<BufferId> largest_first(const Schedule& schedule);

/// Positions in `timeline.runs`, in the order in which they begin; of equal ones in host order.
std::vector<std::uint32_t> by_begin(const Timeline& timeline);

/// The buffers that a run reads, then those that it writes; a copy's own buffer.
std::span<const BufferId> reads_of(const Schedule& schedule, const Step& step);
std::span<const BufferId> writes_of(const Schedule& schedule, const Step& step);

}  // namespace tidemark::gui
