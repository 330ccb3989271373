// Some of a trace's blocks, by number, as an option of strategies that rewrite: "blocks=0-3.8".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "simulator/strategies/strategy.h"

namespace tidemark {

/// Numbers of blocks, counted from 0, in rising order, each once.
using BlockList = std::vector<std::int32_t>;

/// Ranges and numbers with dots between them. Throws UsageError.
BlockList parse_block_list(std::string_view text);
/// parse_block_list() reads it back; neighbours as a range.
std::string to_text(const BlockList& blocks);

/// As strategies list it.
inline constexpr StrategyOption in_blocks{"blocks=LIST", "in these blocks alone, as in 0-3.8"};
constexpr bool takes_blocks(const StrategyOption& option) { return option.text == in_blocks.text; }

/// What stands in the arguments of a strategy for `blocks`, and what it says: nothing where the
/// strategy means all that there is.
StrategyArguments::Chosen chosen_blocks(const BlockList& blocks);
std::optional<BlockList> blocks_of(const StrategyArguments& arguments);

/// By block, and at the end for what stands outside of all: is it meant? Or why the arguments name
/// blocks that the trace does not have.
std::variant<std::vector<bool>, Refusal> meant_blocks(const Trace& trace,
                                                      const StrategyArguments& arguments);

/// Makes the trace that the step's rewrites ask for, wiring before operators, or says why it
/// cannot.
Refusal rewrite(PlannedStep& step);

}  // namespace tidemark
