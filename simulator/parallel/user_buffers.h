// Transformer Engine's user buffers (--tp-comm-overlap of Megatron-LM): what tensor-parallel ranks
// with --sp gather and scatter runs beside the products that read or wrote it, part by part, by the
// defaults of initialize_ub() (module/base.py of Transformer Engine 2):
//
//   forward    gather x ═ fc1 (ring)         fc2 ═ scatter y (pipeline)
//   backward   gather dy ═ fc2's dx (ring)   gather x ═ fc1's dx, scatter dx ═ fc1's dW (bulk)
//
// Not told apart: gathers of codes, and products that are slower in parts.
#pragma once

#include <vector>

#include "simulator/schedule.h"
#include "traces/trace.h"

namespace tidemark {

/// Are there any: under --sp, by Transformer Engine?
bool has_user_buffers(const StepOptions& step);

/// By op: products of blocks that read what it gathers, or write what it scatters. Empty where
/// nothing runs beside.
std::vector<std::vector<OpId>> products_beside_exchanges(const Trace& trace);

/// What of an exchange no product hides, in ns, which take `exchange` and `product` alone; a
/// gradient takes as long as the product. `sms` of the device.
double exposed_beside(Task task, OpKind kind, double exchange, double product, std::int64_t ranks,
                      int sms);

/// Of a rank, outside of PyTorch's memory, of sequences [batch, tokens, width] of the step's ranks.
Bytes user_buffers(const StepOptions& step, std::int64_t tokens, std::int64_t width);

}  // namespace tidemark
