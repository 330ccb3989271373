// The one table of options. The parser, --help, the manual page and the command lines that the
// reports suggest all read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/commands/options.h"
#include "traces/step_fields.h"

namespace tidemark::cli {

/// Commands, as bits: an option lists those that take it.
enum VerbBit : std::uint32_t {
  for_compare = 1,
  for_explain = 2,
  for_trace = 4,
  for_allocator = 8,
  for_devices = 16,
  for_models = 32,
  for_strategies = 64,
  for_frameworks = 128,
  for_check = 256,
  for_diff = 512,
  for_view = 1024,
  for_replay = 2048,
  for_calibrate = 4096,
  for_completion = 8192,
  for_plan = 16384,
  for_capture = 32768,
  for_clusters = 65536,
  for_record = 131072,
  for_search = 262144,
};

/// Those that show what is known.
inline constexpr std::uint32_t for_lists =
    for_devices | for_clusters | for_models | for_strategies | for_frameworks;

using TextMember = Options::Text Options::*;
using FlagMember = bool Options::*;
/// An option of the step stands in Options::step. A switch puts `text` there.
struct StepMember {
  std::string_view text;
  const StepField* field;
};

struct OptionRow {
  std::string_view group;  ///< a heading of --help
  std::string_view names;  ///< "-b,--batch"
  std::string_view value;  ///< what to call its value; "" for a flag
  std::variant<TextMember, FlagMember, StepMember> member;
  std::uint32_t verbs = 0;
  std::string_view help;
  /// Says more of it where it differs between commands (as bits).
  std::string (*details)(std::uint32_t verbs) = nullptr;
  /// The names that its value may be, where they are known.
  std::vector<std::string> (*choices)() = nullptr;
  bool may_repeat = false;  ///< its value is a list, which it continues when it comes again
};

/// The names of a table's rows.
template <typename Table>
std::vector<std::string> name_texts(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.emplace_back(entry.name);
  return names;
}

const std::vector<OptionRow>& option_table();

using tidemark::long_name;
/// "--batch" of "-b,--batch".
std::string_view long_name(const OptionRow& row);

/// Its help for the commands.
std::string help_of(const OptionRow& row, std::uint32_t verbs);

/// The names that its value may be in a command; none if it is a number, a text or a file.
std::vector<std::string> choices_of(const OptionRow& row, VerbBit command);

bool is_given(const Options& options, const OptionRow& row);
/// What it was given; "" for a flag.
std::string_view value_given(const Options& options, const OptionRow& row);

/// The options of one group that were given, as one would type them: " --batch 64 --ddp".
std::string as_typed(const Options& options, std::string_view group);

/// The argument in quotes if a shell would not take it as it is.
std::string shell_quoted(std::string_view argument);

}  // namespace tidemark::cli
