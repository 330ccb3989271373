// `tidemark view`: from options to a request for the window, and from its inputs to options.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "cli/commands/commands.h"
#include "cli/commands/recorded.h"
#include "cli/commands/scenario.h"

#ifdef TIDEMARK_HAVE_GUI
#include "base/quoted.h"
#include "cli/commands/command_line.h"
#include "cli/commands/view_command.h"
#include "gui/baseline.h"
#include "gui/session.h"
#include "gui/view.h"
#include "gui/window.h"
#include "simulator/cost/usual_device.h"
#endif

namespace tidemark::cli {

#ifndef TIDEMARK_HAVE_GUI

Result run_view(const Options&) {
  return {"",
          "tidemark: this program was built without windows (install libimgui-dev, libglfw3-dev, "
          "libgl-dev and libstb-dev, then build again)\n",
          ExitCode::NotHere};
}

#else

namespace {

gui::WhatIf what_if_of(const Options& options) {
  gui::WhatIf what_if{scenario_of(options), named_strategies(options),
                      options.alloc_conf.value_or("")};
  if (what_if.strategies.empty()) what_if.strategies = {parse_strategy(reference_strategy().name)};
  for (const StrategySpec& strategy : what_if.strategies)
    if (strategy.plan) what_if.plans.push_back(strategy);
  return what_if;
}

// What a file or a name adds to the window: a plan to the inputs that there are, or new inputs.
std::optional<gui::WhatIf> inputs_of(Options options, const std::string& subject,
                                     const gui::WhatIf* now) {
  if (is_recorded(subject)) return std::nullopt;
  if (!subject.ends_with(".plan.json")) {
    options.subject = subject;
    return what_if_of(options);
  }
  if (!now) throw InputError(subject + ": a plan is of a model: open that one first");
  options.strategies.reset();
  options.plan = subject;
  gui::WhatIf planned = *now;
  planned.plans.push_back(named_strategies(options).front());
  planned.strategies.front() = planned.plans.back();
  planned.planned.reset();
  return planned;
}

// "--strategies vanilla,mesa --plan tuned.plan.json", of what is shown.
void set_strategies(const std::vector<StrategySpec>& strategies, Options& options) {
  std::vector<std::string_view> texts, files;
  for (const StrategySpec& strategy : strategies) {
    if (strategy.plan) {
      files.push_back(strategy.plan->file());
    } else {
      texts.push_back(strategy.text);
    }
  }
  options.strategies.reset(), options.plan.reset();
  if (!texts.empty()) options.strategies = fmt::format("{}", fmt::join(texts, ","));
  if (!files.empty()) options.plan = fmt::format("{}", fmt::join(files, ","));
}

// "1280x800"
void set_size(std::string_view text, gui::ViewRequest& request) {
  const std::size_t cross = text.find('x');
  if (cross == text.npos)
    throw UsageError(fmt::format("--size: {} is not a size (need WIDTHxHEIGHT)", text));
  const auto side = [&](std::string_view part, int least, int most) {
    return static_cast<int>(parse_count(part, "--size", least, most));
  };
  request.width =
      side(text.substr(0, cross), gui::smallest_picture.width, gui::largest_picture.width);
  request.height =
      side(text.substr(cross + 1), gui::smallest_picture.height, gui::largest_picture.height);
  request.has_size = true;
}

float parse_scale(std::string_view text) {
  float scale = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (error != std::errc() || end != text.data() + text.size() || !(scale >= 0.5F && scale <= 4))
    throw UsageError(fmt::format("--scale: {} is not a number from 0.5 to 4", text));
  return scale;
}

void set_picture(const Options& options, gui::ViewRequest& request) {
  if (options.size) set_size(*options.size, request);
  if (options.scale) request.scale = parse_scale(*options.scale);
  request.script = options.script.value_or("");
  request.screenshot = options.screenshot.value_or("");
  request.in_window = options.in_window;
  if (options.in_window && (!options.script || !options.screenshot))
    throw UsageError("--in-window needs a --script to play and a --screenshot to write");
  const std::string& file = request.screenshot;
  const bool is_picture = file.empty() || file.ends_with(".png") || file.ends_with(".svg");
  if (!is_picture || (options.in_window && !file.ends_with(".png")))
    throw UsageError(fmt::format("--screenshot: {} must end in .png{}", file,
                                 options.in_window ? "" : " or .svg"));
}

// The options that ask for these inputs.
Options shown_by(Options options, const gui::WhatIf& what_if) {
  const StepOptions& step = what_if.scenario.step;
  if (!what_if.scenario.trace) {
    options.subject = what_if.scenario.model.name;
    options.step = typed_step(step);
  }
  if (what_if.scenario.device.name !=
      find_device(options.device.value_or(std::string(usual_device))).name)
    options.device = what_if.scenario.device.name;
  options.budget.reset();
  if (what_if.scenario.budget) options.budget = fmt::format("{}B", what_if.scenario.budget->count);
  options.alloc_conf.reset();
  if (!what_if.allocator.empty()) options.alloc_conf = what_if.allocator;
  set_strategies(what_if.strategies, options);
  return options;
}

std::string view_line(const Options& options) {
  return fmt::format("tidemark view {}{}{}{}", shell_quoted(options.subject),
                     as_typed(options, "step"), as_typed(options, "device"),
                     as_typed(options, "scenario"));
}

// The plan that is shown, for what follows it: its proof, its files.
std::string plan_command_line(Options options, const gui::PlanChoice& choice) {
  options.budget = fmt::format("{}B", choice.budget.count);
  const std::string allowed =
      choice.allowed == Allowed::Exact ? "" : fmt::format(" --allow {}", to_string(choice.allowed));
  return fmt::format("tidemark plan {}{}{}{}", shell_quoted(options.subject),
                     as_typed(options, "step"), as_typed(options, "device"), allowed);
}

bool is_session(const std::string& path) { return path.ends_with(gui::session_ending); }

// What may be a file is one by its whole path.
void make_lasting(std::string& name_or_path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(name_or_path, error))
    name_or_path = std::filesystem::absolute(name_or_path).lexically_normal().string();
}

// The inverse of shell_quoted(), of a whole command. InputError where a quote is not closed.
std::vector<std::string> words_of(std::string_view command) {
  std::vector<std::string> words;
  bool is_in_word = false, is_quoted = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    char c = command[i];
    if (!is_quoted && c == ' ') {
      is_in_word = false;
      continue;
    }
    if (!is_in_word) words.emplace_back();
    is_in_word = true;
    if (c == '\'') {
      is_quoted = !is_quoted;
      continue;
    }
    if (!is_quoted && c == '\\' && i + 1 < command.size()) c = command[++i];
    words.back() += c;
  }
  if (is_quoted) throw InputError(fmt::format("{}: a quote is not closed", command));
  return words;
}

// Of the command that a session holds: read, never run.
Options options_of(const std::string& command) {
  std::vector<std::string> words = words_of(command);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  const CommandLine line = parse_command_line(static_cast<int>(arguments.size()), arguments.data());
  if (!line.command || line.command->run != run_view || line.options.subject.empty() ||
      !line.options.files.empty())
    throw InputError(
        fmt::format("{}: need tidemark view and one model", tidemark::quoted(command)));
  if (line.options.screenshot || line.options.script)
    throw InputError(fmt::format("{}: a session needs no --screenshot and no --script",
                                 tidemark::quoted(command)));
  return line.options;
}

std::string lasting_command_line(Options options, const gui::WhatIf& what_if) {
  options = shown_by(std::move(options), what_if);
  make_lasting(options.subject);
  for (auto* text : {&options.device, &options.cluster})
    if (*text) make_lasting(**text);
  std::vector<std::string> plans;
  for (const StrategySpec& strategy : what_if.strategies)
    if (strategy.plan) make_lasting(plans.emplace_back(strategy.plan->file()));
  if (!plans.empty()) options.plan = fmt::format("{}", fmt::join(plans, ","));
  return view_line(options);
}

}  // namespace

gui::ViewRequest view_request(const Options& options) {
  gui::ViewRequest request;
  set_picture(options, request);
  // What is copied as a command line is about what was opened last.
  const auto typed = std::make_shared<Options>(options);
  request.inputs_of = [typed](const std::string& opened, const gui::WhatIf* now) {
    auto inputs = inputs_of(*typed, opened, now);
    if (inputs && inputs->scenario.trace && !opened.ends_with(".plan.json"))
      typed->subject = opened;
    return inputs;
  };
  request.command_of = [typed](const gui::WhatIf& what_if) {
    return view_command_line(*typed, what_if);
  };
  request.lasting_command_of = [typed](const gui::WhatIf& what_if) {
    return lasting_command_line(*typed, what_if);
  };
  request.inputs_typed = [typed](const std::string& command) {
    *typed = options_of(command);
    return what_if_of(*typed);
  };
  request.causes_of = [](const Evaluation& predicted, const Device& device,
                         const std::string& file) {
    const RecordedRun run = read_beside(file);
    return beside::explain_difference(predicted, device, run.recording, run.requested);
  };
  request.read = read_recorded;
  request.files = options.files;
  for (const std::string& file : request.files)
    if (!is_recorded(file))
      throw UsageError(
          fmt::format("{}: after the first operand only timeline files (.timeline.json) and memory "
                      "snapshots may follow",
                      file));
  if (is_session(options.subject) || gui::is_check_file(options.subject)) {
    refuse_inputs(options);
    (is_session(options.subject) ? request.session : request.baseline) = options.subject;
  } else if (is_recorded(options.subject)) {
    refuse_inputs(options);
    request.files.insert(request.files.begin(), options.subject);
  } else if (!options.subject.empty()) {
    request.what_if = what_if_of(options);
  }
  return request;
}

std::string view_command_line(Options options, const gui::WhatIf& what_if) {
  options = shown_by(std::move(options), what_if);
  return what_if.planned ? plan_command_line(options, *what_if.planned) : view_line(options);
}

Result run_view(const Options& options) {
  try {
    const gui::ViewRequest request = view_request(options);
    std::string notes = request.what_if ? notes_on(request.what_if->scenario) : "";
    return {"", notes += show(request), ExitCode::Ok};
  } catch (const gui::NoDisplay& error) {
    return {"", fmt::format("tidemark: {}\n", error.what()), ExitCode::NotHere};
  }
}

#endif

}  // namespace tidemark::cli
