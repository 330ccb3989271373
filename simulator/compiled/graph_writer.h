// Ops of an eager trace, written as what torch.compile makes of them as one graph.
#pragma once

#include "simulator/compiled/fx_graph.h"
#include "simulator/strategies/trace_edit.h"

namespace tidemark {

/// Kernels of libraries stay as they are. What lies between two of them becomes an opaque op per
/// connected part: it writes what libraries and later parts read, what the backward keeps and what
/// the graph returns, and nothing else. UsageError where an op has no known rules.
void write_graph(const Trace& trace, const FxRegion& region, TraceEdit& edit);

/// The same in a checkpoint whose policy keeps the results of some ops (by op: kept?). What the
/// graph keeps beside these, its parts hold (Op::also_keeps).
void write_graph(const Trace& trace, const FxRegion& region, const std::vector<bool>& kept,
                 TraceEdit& edit);

}  // namespace tidemark
