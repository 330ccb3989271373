// The front of a pipeline stage's chunks, which keep what they keep for several micro-batches.
#pragma once

#include "simulator/planner/front.h"

namespace tidemark {

/// Stages of a chain, [begin, end).
struct ChunkOfChain {
  std::size_t begin = 0, end = 0;
  std::int64_t times = 1;  ///< as many micro-batches of it are kept at once
};

/// With K what a chunk keeps of one micro-batch, M the most that is there while it takes one by
/// itself, and n as many as are kept at once, all chunks need about
///   Σ n · K + the most of M − K.
/// For a given slack h, the front of a chunk's plans with M − K <= h is one in max (M, K + h): its
/// last stage asks for h more. Those of all chunks are put together by Σ n · K. Of several chunks
/// each gives at most so many points, at equal distances; of one all are there.
class ChunkFronts {
 public:
  static constexpr std::size_t most_points = 64;

  /// Without a slack: of one chunk just its front, in what is there at most.
  ChunkFronts(const std::vector<std::vector<Choice>>& choices, std::vector<ChunkOfChain> chunks,
              std::optional<std::int64_t> slack, const ErrorBound& bound = {});

  std::size_t size() const { return whole().size(); }
  /// Room is that of the only chunk, or of all that several keep.
  Front::Point operator[](std::size_t point) const { return whole()[point]; }
  /// As Front::choices_at().
  std::vector<Front::Picked> choices_at(std::size_t point) const;
  /// M − K of all points of the chunks' fronts, each once, rising. `choices` are those that they
  /// were made of.
  std::vector<std::int64_t> slacks(const std::vector<std::vector<Choice>>& choices) const;

 private:
  const Front& whole() const { return whole_ ? *whole_ : fronts_.front(); }
  std::vector<Front::Picked> choices_at(std::size_t chunk, std::size_t point) const;

  std::vector<ChunkOfChain> chunks_;
  std::vector<Front> fronts_;                     ///< by chunk
  std::vector<std::vector<std::size_t>> points_;  ///< by chunk of several: what is put together
  std::optional<Front> whole_;                    ///< of several
};

}  // namespace tidemark
