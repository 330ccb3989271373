// What the user typed, not yet understood: text as it stands on the command line.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::cli {

struct Options {
  std::string subject;  ///< MODEL, FILE, SCRIPT or NAME, whatever the command takes; "" if absent
  std::string item;     ///< explain: a tensor or an op

  using Text = std::optional<std::string>;

  // The step, by the option: "--batch" and "64", or "--no-ema" and "false".
  std::map<std::string_view, std::string> step;

  // The device.
  Text device, cluster, gpus, global_batch, budget, alloc_conf;

  // What is asked.
  Text strategies, plan, plan_out, plan_budget, top, python_out;
  Text measure, max_slowdown, form, allow, host_budget, max_gradient_error;
  bool front = false, forms = false;
  Text part, records;
  bool max_batch = false, require_fit = false, units = false, saved = false, levers = false;
  Text graph, block, beside;
  Text info;

  // What is checked.
  bool update = false, allow_new = false, init = false;
  Text also;

  // What is run.
  Text backend, replay, steps, seed, data, timed;
  bool no_check = false;

  // What is captured.
  Text python;
  bool beside_gpu = false;

  // What is recorded.
  std::vector<std::string> program;  ///< what follows --

  // The window.
  Text screenshot, size, scale, script;
  bool in_window = false;
  std::vector<std::string> files;  ///< view, search merge: what follows the first operand

  // How it is shown.
  Text format, output, color;
  bool quiet = false;
};

}  // namespace tidemark::cli
