// Of a pipeline stage: what is kept of other micro-batches while one is taken.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "traces/trace.h"

namespace tidemark {

/// Of one chunk of a stage.
struct ChunkInFlight {
  std::int64_t kept = 0;  ///< micro-batches whose forward is done and whose backward is not
  /// Those of them for whom the last chunk's forward is not done: what is held to its end is there.
  std::int64_t held = 0;
  bool has_gradients = false;  ///< of parameters: an earlier micro-batch has made them
  bool operator==(const ChunkInFlight&) const = default;
};

/// While the forward, or the backward, of one micro-batch runs on a chunk: what is there of others
/// by chunk, and of the one at hand on other chunks.
struct Moment {
  bool is_backward = false;
  std::size_t chunk = 0;
  std::vector<ChunkInFlight> beside = {};
  bool operator==(const Moment&) const = default;
  /// It adds to gradients that are there already.
  bool is_later() const { return beside[chunk].has_gradients; }
};

/// Those beside which no other has as much of everything. A step without stages takes one
/// micro-batch after the other. Of schedules whose backwards are whole.
std::vector<Moment> moments_of(const StepOptions& step);

/// Does any have a micro-batch beside it?
bool is_in_flight(const std::vector<Moment>& moments);

/// As many micro-batches at most, with the one at hand; of several chunks each chunk's.
std::int64_t most_kept(const std::vector<Moment>& moments);

/// The same stage with so many micro-batches at most, one after the other.
std::shared_ptr<const Trace> one_after_another(const std::shared_ptr<const Trace>& trace,
                                               std::int64_t most);

}  // namespace tidemark
