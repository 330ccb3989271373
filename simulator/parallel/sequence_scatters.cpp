// Found from the ops around tables and blocks.
#include "simulator/parallel/sequence_scatters.h"

#include <algorithm>
#include <optional>

namespace tidemark {
namespace {

TensorId read_by(const Trace& trace, OpId op) { return trace.inputs(trace[op])[0]; }
TensorId made_by(const Trace& trace, OpId op) { return trace.outputs(trace[op])[0]; }

// What writes `tensor`, back through ops of one input.
OpId origin(const Trace& trace, TensorId tensor) {
  for (std::size_t i = trace.ops.size(); i-- > 0;) {
    const auto id = static_cast<OpId>(i);
    const auto written = trace.outputs(trace[id]);
    if (std::ranges::find(written, tensor) == written.end()) continue;
    if (trace[id].inputs != 1) return id;
    tensor = read_by(trace, id);
  }
  return no_op;
}

// Before the embedding's dropout, so that each rank drops its own part, or at the first block;
// nowhere if it is words that are read there, whose parts are reduced and scattered at once.
std::optional<SequenceScatter> of_first_block(const Trace& trace, OpId table) {
  const auto begin = static_cast<OpId>(0);
  const Block& first = trace.blocks.front();
  SequenceScatter found{begin, first.begin, first.input};
  for (OpId id = begin; id < found.before; id = static_cast<OpId>(index(id) + 1))
    if (trace[id].kind == OpKind::Dropout) found = {begin, id, read_by(trace, id)};
  if (table != no_op && origin(trace, found.sequence) == table) return {};
  return found;
}

// Where places are added to words.
std::optional<SequenceScatter> of_lookup(const Trace& trace, OpId lookup) {
  for (std::size_t i = index(lookup) + 1; i + 1 < trace.ops.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    const auto read = trace.inputs(trace[id]);
    if (std::ranges::find(read, made_by(trace, lookup)) == read.end()) continue;
    if (trace[id].kind != OpKind::Add) return {};
    return SequenceScatter{lookup, static_cast<OpId>(i + 1), made_by(trace, id)};
  }
  return {};
}

}  // namespace

std::vector<SequenceScatter> sequence_scatters(const Trace& trace, OpId table) {
  std::vector<SequenceScatter> found;
  if (const auto first = of_first_block(trace, table)) found.push_back(*first);
  if (table == no_op) return found;
  for (std::size_t i = index(trace.blocks.front().begin); i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    if (op.kind != OpKind::Embedding || trace.inputs(op)[1] != trace.inputs(trace[table])[1])
      continue;
    if (const auto later = of_lookup(trace, static_cast<OpId>(i))) found.push_back(*later);
  }
  return found;
}

}  // namespace tidemark
