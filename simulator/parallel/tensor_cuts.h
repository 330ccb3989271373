// Where tensor-parallel ranks cut a step: Megatron-LM's way (arXiv 1909.08053, 2205.05198), found
// from how the ops go together and not from their names.
//
//   x whole ─► linear by columns ─► heads or MLP, cut ─► linear by rows ─► a part of a sum
//
// The word table and the logits are cut along the vocabulary. With --sp what lies between two such
// pairs is cut along the sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "simulator/parallel/sequence_scatters.h"
#include "traces/trace.h"

namespace tidemark {

/// What an op is among ranks.
enum class RankPart : std::uint8_t {
  Alike,     ///< each does what a rank alone would do, with what it has
  Columns,   ///< a linear of which each rank has some outputs: it reads a whole input
  Gathered,  ///< … and whose outputs are gathered again, before ranks go on with a part of a
             ///< sequence
  Rows,      ///< a linear of which each rank has some inputs: it writes a part of a sum
  Table,     ///< an embedding of which each rank has some words: it writes a part of a sum
  Scores,    ///< log-probabilities of cut logits: a part of the loss
  Loss,      ///< of cut logits
};

struct TensorCuts {
  static constexpr std::int8_t whole = -1;

  std::vector<std::int8_t> dimension;  ///< by tensor: which is dealt out, or whole
  /// By tensor: the dimension counts words, which are filled up to a multiple of 128 per rank.
  std::vector<bool> is_vocabulary;
  /// By tensor: visits of experts, or what is cut of these; fewer ranks may have parts of the same
  /// expert (Mesh::ranks_of_expert()), and visits are dealt out among the others.
  std::vector<bool> is_of_expert;
  /// By tensor: ranks gather the parts of their tokens at once, and the dimension is that of what
  /// is gathered.
  std::vector<bool> is_shared;
  std::vector<RankPart> part;             ///< by op
  std::vector<SequenceScatter> scatters;  ///< in order; an encoder's and a decoder's

  /// All whole, of a trace.
  static TensorCuts none(const Trace& trace);
  /// Among how many ranks of the mesh the dimension is dealt out.
  std::int64_t ranks_of(TensorId tensor, const Mesh& mesh) const {
    return is_of_expert[index(tensor)] ? mesh.ranks_of_expert() : mesh[Axis::Tensor];
  }
};

/// Other numbers of ranks could share it: the message has the nearest mesh.
class IndivisibleError : public InputError {
 public:
  using InputError::InputError;
};

/// How the tp ranks of the step's mesh cut it. IndivisibleError if so many cannot, InputError if
/// none can.
TensorCuts find_cuts(const Trace& trace);

/// Of `size` words on each of so many ranks: Megatron-LM fills up to a multiple of 128 per rank.
std::int64_t words_per_rank(std::int64_t words, std::int64_t ranks);

}  // namespace tidemark
