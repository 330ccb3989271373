// A count per stream, for any number of streams: vector clocks, and how often each stream waited.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace tidemark {

/// Zero for streams that nothing was counted of. The first four take no memory of their own: most
/// steps have one stream, and there is a clock per buffer.
class StreamCounts {
 public:
  std::uint32_t operator[](std::size_t stream) const {
    if (stream < few) return first_[stream];
    return stream - few < more_.size() ? more_[stream - few] : 0;
  }
  std::uint32_t& operator[](std::size_t stream) {
    if (stream < few) return first_[stream];
    if (stream - few >= more_.size()) more_.resize(stream - few + 1);
    return more_[stream - few];
  }

  /// Is no count lower than the other's?
  bool covers(const StreamCounts& other) const {
    for (std::size_t s = 0; s < few; ++s)
      if (first_[s] < other.first_[s]) return false;
    for (std::size_t i = 0; i < other.more_.size(); ++i)
      if ((*this)[few + i] < other.more_[i]) return false;
    return true;
  }
  /// Raises each count to the other's.
  void raise_to(const StreamCounts& other) {
    for (std::size_t s = 0; s < few; ++s) first_[s] = std::max(first_[s], other.first_[s]);
    if (more_.size() < other.more_.size()) more_.resize(other.more_.size());
    for (std::size_t i = 0; i < other.more_.size(); ++i)
      more_[i] = std::max(more_[i], other.more_[i]);
  }
  bool operator==(const StreamCounts& other) const { return covers(other) && other.covers(*this); }

 private:
  static constexpr std::size_t few = 4;
  std::array<std::uint32_t, few> first_{};
  std::vector<std::uint32_t> more_;
};

}  // namespace tidemark
