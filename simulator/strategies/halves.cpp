// A half has exactly one residual add, which must not change the dtype of its stream.
#include "simulator/strategies/halves.h"

#include <algorithm>
#include <set>

namespace tidemark {

std::optional<Half> half_of(const Trace& trace, const Block& block, Part part) {
  Half half{{index(block.end), index(block.begin)}, 0};
  int adds = 0;
  for (std::size_t i = index(block.begin); i < index(block.end); ++i) {
    const Op& op = trace.ops[i];
    if (op.part != part) continue;
    half.ops = {std::min(half.ops.begin, i), std::max(half.ops.end, i + 1)};
    if (!op.residual) continue;
    // An add that changes the dtype of its stream cannot be undone.
    if (trace[trace.inputs(op)[0]].dtype != trace[trace.outputs(op)[0]].dtype) return std::nullopt;
    half.add = i, ++adds;
  }
  if (adds != 1) return std::nullopt;
  return half;
}

std::vector<bool> can_be_coupled(const Trace& trace) {
  std::vector<bool> can(trace.blocks.size());
  std::set<std::int32_t> broken;
  for (std::size_t b = 0; b < can.size(); ++b) {
    const Block& block = trace.blocks[b];
    const auto f = half_of(trace, block, Part::F), g = half_of(trace, block, Part::G);
    can[b] = block.stack >= 0 && f && g && f->ops.end == g->ops.begin;
    if (!can[b]) broken.insert(block.stack);
  }
  for (std::size_t b = 0; b < can.size(); ++b)
    if (broken.contains(trace.blocks[b].stack)) can[b] = false;
  return can;
}

}  // namespace tidemark
