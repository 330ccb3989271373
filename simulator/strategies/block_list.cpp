// Lists of blocks are short texts, so that a plan file's "rewrites" and a command line can say
// them.
#include "simulator/strategies/block_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"

namespace tidemark {
namespace {

constexpr std::int32_t most_blocks = 100'000;

std::optional<std::int32_t> block_number(std::string_view text) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  if (!is_whole || number < 0 || number >= most_blocks) return std::nullopt;
  return number;
}

}  // namespace

BlockList parse_block_list(std::string_view text) {
  BlockList blocks;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    const std::string_view piece = text.substr(begin, end - begin);
    const std::size_t dash = std::min(piece.find('-'), piece.size());
    const auto first = block_number(piece.substr(0, dash));
    const auto last = dash == piece.size() ? first : block_number(piece.substr(dash + 1));
    const bool rises = first && last && *first <= *last;
    if (!rises || (!blocks.empty() && *first <= blocks.back()))
      throw UsageError(
          fmt::format("'{}' is no list of blocks (rising numbers and ranges, counted from 0, as in "
                      "0-3.8)",
                      text.substr(0, 64)));
    for (std::int32_t block = *first; block <= *last; ++block) blocks.push_back(block);
    begin = end + 1;
  }
  return blocks;
}

std::string to_text(const BlockList& blocks) {
  std::string text;
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t end = i + 1;
    while (end < blocks.size() && blocks[end] == blocks[end - 1] + 1) ++end;
    if (!text.empty()) text += '.';
    text += fmt::format("{}", blocks[i]);
    if (end - i > 1) text += fmt::format("-{}", blocks[end - 1]);
    i = end;
  }
  return text;
}

StrategyArguments::Chosen chosen_blocks(const BlockList& blocks) {
  return {fmt::format("{}={}", in_blocks.name(), to_text(blocks)), {}};
}

std::optional<BlockList> blocks_of(const StrategyArguments& arguments) {
  const std::string_view begin = in_blocks.text.substr(0, in_blocks.name().size() + 1);
  for (const auto& chosen : arguments.chosen)
    if (chosen.name.starts_with(begin))
      return parse_block_list(std::string_view(chosen.name).substr(begin.size()));
  return std::nullopt;
}

std::variant<std::vector<bool>, Refusal> meant_blocks(const Trace& trace,
                                                      const StrategyArguments& arguments) {
  const std::optional<BlockList> blocks = blocks_of(arguments);
  std::vector<bool> meant(trace.blocks.size() + 1, !blocks);
  if (!blocks) return meant;
  if (blocks->back() >= std::ssize(trace.blocks))
    return fmt::format("there is no block {}: the trace has {}, counted from 0", blocks->back(),
                       trace.blocks.size());
  for (const std::int32_t block : *blocks) meant[static_cast<std::size_t>(block)] = true;
  return meant;
}

}  // namespace tidemark
