// Selective checkpointing by operators: of which calls of a segment the results stay.
#pragma once

#include <vector>

#include "simulator/plan.h"

namespace tidemark {

/// By op of the trace: what torchtitan's SelectiveAC keeps of segments (`selective_ac_option` "op",
/// torchtitan/distributed/activation_checkpoint.py of pytorch/torchtitan b5bcd76c): the results of
/// attention, convolutions, products with a bias and of batches (aten.addmm, aten.bmm), of the
/// first, third, fifth … product without (aten.mm) of each segment, and of exchanges that scatter
/// sums.
std::vector<bool> kept_by_op(const Trace& trace, const std::vector<Region>& segments);

/// By tensor, what these ops make; of compiled blocks also what their graphs hold for calls that
/// run again.
std::vector<bool> kept_results(const Trace& trace, const std::vector<bool>& kept);

/// An op of the segments of which it is not known what it calls, or no_op.
OpId with_unknown_calls(const Trace& trace, const std::vector<Region>& segments);

}  // namespace tidemark
