// One side of "why is my run above the prediction?": blocks of memory, in the order in which they
// come and go, each with what is known about it. A prediction is what the step asks PyTorch's
// allocator for, workspaces and scratch included; a recording is what was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/recording/recording.h"
#include "analysis/report.h"

namespace tidemark::beside {

struct Block {
  Bytes size;                   ///< as asked for
  TensorId tensor = no_tensor;  ///< of a recording: its size and the stack that allocated it
  Role role = Role::Value;
  Category category = Category::Unknown;
  Bytes unsplit = {};  ///< that the allocator handed out beyond it

  Bytes taken() const { return size + unsplit; }
};

/// A block appears or disappears.
struct Change {
  std::uint32_t block;
  bool appears;
};

struct Side {
  const Trace* trace = nullptr;
  std::vector<Block> blocks = {};
  std::vector<std::uint32_t> before = {};  ///< there from the beginning
  std::vector<Change> changes = {};        ///< in order
  /// Of a recording, by tensor: who allocated it, as text; or empty.
  const std::vector<std::string>* callers = nullptr;
  /// Of a prediction, by tensor: the line of code that made it; "" if unknown.
  std::vector<std::string_view> lines = {};
  /// Likewise: what made it, as the framework calls it ("aten::mm").
  std::vector<std::string_view> operations = {};
};

/// Borrows the evaluation's trace, which must outlive it.
Side predicted_side(const Evaluation& evaluation, const Framework& framework, const Device& device);
/// Borrows from the recording. `requested` is by buffer what was asked for; empty: its size.
Side recorded_side(const Recording& recording, const std::vector<Bytes>& requested);

/// The allocator splits off what is left of a block above this size, unless that is no larger
/// (kSmallSize in c10/cuda/CUDACachingAllocator.cpp).
inline constexpr Bytes most_unsplit{1 << 20};

/// Of a recording that does not say what was asked for: blocks that the allocator has not split are
/// taken for the size of the prediction that is next below, by `most_unsplit` at most.
Side with_predicted_sizes(Side recorded, const Side& predicted);

/// What kernels take beside an op's tensors: of a prediction one block for all of it, at its worst.
bool is_scratch(const Block& block);

/// Scratch is predicted as the sum of what an op's kernels take, and a block of it is mostly the
/// largest of them, so none has exactly that size: one within a tenth of it is taken for it. The
/// share is a choice, no measurement; what the two differ in is counted as unsplit.
inline constexpr std::int64_t scratch_share = 10;

/// As PyTorch's allocator rounds what is asked for: to 512 bytes.
Bytes rounded(Bytes size);

/// A moment is the number of changes that have happened. The first one of most bytes taken.
std::size_t highest_moment(const Side& side);
/// Blocks that are there then, in the order in which they appeared.
std::vector<std::uint32_t> blocks_at(const Side& side, std::size_t moment);
/// That they take.
Bytes bytes_of(const Side& side, const std::vector<std::uint32_t>& blocks);

/// The moment at which fewest bytes differ from the blocks `found` of the other side: the side's
/// own highest one unless another differs clearly less.
std::size_t most_alike_moment(const Side& side, const Side& other,
                              const std::vector<std::uint32_t>& found);

/// "blocks.3.up (gradient)", "(workspace of a library)"; of a recording: who allocated it.
std::string name_of(const Side& side, const Block& block);

}  // namespace tidemark::beside
