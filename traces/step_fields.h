// The one table of what a step can be asked with. The command line, --help, trace files, check
// files, JSON reports and the lines that describe a step all read it: a new option of a step is a
// member of StepOptions, its row here, and what the model builders make of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_reader.h"
#include "traces/step_options.h"

namespace tidemark {

/// A value as files and reports show it.
using StepValue = std::variant<std::int64_t, double, bool, std::string>;

/// An option of the command line. Without a `value` it is a switch, which stands for `text`.
struct StepSwitch {
  std::string_view names;  ///< "-b,--batch"
  std::string_view value;  ///< what --help calls its value: "N"
  std::string_view help;
  std::string_view text = {};
};

/// Where the lines that describe a step show the value.
enum class StepShown : std::uint8_t { Apart, Always, IfStated };

/// The first long one: "--batch" of "-b,--batch".
std::string_view long_name(std::string_view names);

struct StepField {
  std::string_view key;             ///< in files and reports: "drop_path"
  std::string_view id_prefix = {};  ///< in the id of a check: "b" of "b64"
  StepShown shown = StepShown::IfStated;
  std::string_view noun = {};      ///< said after a name that does not say what it is of
  bool is_always_written = false;  ///< trace files state it even where it is the default
  bool is_swept = false;           ///< the command line takes several values of it
  bool fits_recorded = false;      ///< a recorded step may have any value of it
  std::vector<StepSwitch> switches = {};

  /// Nothing while the option is unset.
  std::optional<StepValue> (*value)(const StepOptions& step) = nullptr;
  /// As typed on the command line. Throws UsageError.
  void (*read_text)(const StepField& self, StepOptions& step, std::string_view text) = nullptr;
  /// Fails at its place in the file.
  void (*read_json)(const StepField& self, StepOptions& step, const JsonView& value) = nullptr;
  /// What makes a value that no reader would have let in, or "".
  std::string (*defect)(const StepOptions& step) = nullptr;
  /// The names that it may have, if it is one of a list.
  std::vector<std::string_view> (*choices)() = nullptr;
  /// The names that its text may begin with, where options follow behind a colon.
  std::vector<std::string_view> (*beginnings)() = nullptr;
};

/// In the order of files and of --help.
std::span<const StepField> step_fields();

/// Is it another value than that of a step of which nothing was said?
bool is_stated(const StepField& field, const StepOptions& step);

/// "64", "amp-bf16", "true".
std::string to_text(const StepValue& value);

/// As the lines that describe a step say it: "amp-bf16", "drop path 0.1", "no ema".
std::string in_words(const StepField& field, const StepValue& value);

/// What files state of a step, and the precision that follows: "batch 8, fp32, full, adamw".
std::string in_words(StepOptions step);

}  // namespace tidemark
