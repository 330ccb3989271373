// Where tensor-parallel ranks with --sp go on with their own part of a sequence, of which each had
// the whole: behind tables of words, whose rows are added up among them, and what is added to
// those.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace tidemark {

struct SequenceScatter {
  OpId whole_from = no_op;  ///< the first op of the whole
  OpId before = no_op;      ///< the first that reads parts
  TensorId sequence = no_tensor;
};

/// In order: of what the first block reads, and of words that are looked up behind it, as those of
/// a decoder are. `table` is an op that looks up words; no_op if there are none.
std::vector<SequenceScatter> sequence_scatters(const Trace& trace, OpId table);

}  // namespace tidemark
