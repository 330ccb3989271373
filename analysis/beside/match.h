// Which recorded block is which predicted tensor: by size, by what it is for, by the line of code
// that asked for it, and by order.
#pragma once

#include <utility>
#include <vector>

#include "analysis/beside/side.h"

namespace tidemark::beside {

using BlockList = std::vector<std::uint32_t>;

struct Match {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  ///< predicted, recorded
  BlockList predicted_only, recorded_only;
};

/// Is the line of the model's code on the stack that allocated the block? Files by their last part.
bool is_called_at(const Side& recorded, const Block& block, std::string_view line);
bool has_stack(const Side& recorded, const Block& block);
/// Did the autograd engine allocate it? It has no Python stack; in profiles it is among the
/// callers.
bool is_of_backward(const Side& recorded, const Block& block);
/// Does the stack name lines of code? Those of profiles name operators.
bool has_lines(const Side& recorded, const Block& block);
/// Is the operation that makes the predicted block on that stack?
bool is_made_by_same(const Side& predicted, const Block& block, const Side& recorded,
                     const Block& found);
std::string_view line_of(const Side& predicted, const Block& block);

/// Pairs blocks of one size as PyTorch's allocator rounds it, then those that it has not split: at
/// most 1 MiB larger; and scratch with a block that is about as large.
Match match(const Side& predicted, const BlockList& there, const Side& recorded,
            const BlockList& found);

}  // namespace tidemark::beside
