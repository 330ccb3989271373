// The commands: each a function from what was typed to the text that answers it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/option_table.h"

namespace tidemark::cli {

enum class ExitCode : int {
  Ok = 0,
  Error = 1,
  Usage = 2,
  Regression = 3,
  DoesNotFit = 4,
  NotHere = 5
};

struct Result {
  std::string text;   ///< for standard output or the file of --output
  std::string notes;  ///< for standard error
  ExitCode exit_code = ExitCode::Ok;
  int signal = 0;           ///< by which the program is to end instead
  bool is_written = false;  ///< the file of --output is there already
};

struct Example {
  std::string_view command;
  std::string_view what;
};

struct Command {
  std::string_view name;
  std::string_view operands;  ///< "MODEL [TENSOR|OP]"
  std::string_view summary;
  std::string_view details;
  std::vector<Example> examples;
  VerbBit bit{};
  Result (*run)(const Options& options) = nullptr;
  std::vector<std::string> (*names)() = nullptr;  ///< that the first operand may be, if known
};

const std::vector<Command>& commands();

Result run_compare(const Options& options);
Result run_explain(const Options& options);
Result run_plan(const Options& options);
Result run_search(const Options& options);
Result run_check(const Options& options);
Result run_view(const Options& options);
Result run_diff(const Options& options);
Result run_replay(const Options& options);
Result run_replayed_comparison(const Options& options);  ///< compare --replay
Result run_calibrate(const Options& options);
Result run_trace(const Options& options);
Result run_capture(const Options& options);
Result run_record(const Options& options);
Result run_allocator(const Options& options);
Result run_devices(const Options& options);
Result run_clusters(const Options& options);
Result run_models(const Options& options);
Result run_strategies(const Options& options);
Result run_frameworks(const Options& options);
Result run_completion(const Options& options);

}  // namespace tidemark::cli
