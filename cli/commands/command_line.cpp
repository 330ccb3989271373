// Builds a CLI11 parser from the tables of commands and options, and words its errors as hints.
#include "cli/commands/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <span>

#include "base/names.h"
#include "base/quoted.h"
#include "cli/commands/help.h"
#include "cli/commands/manual_page.h"
#include "simulator/schedule.h"

namespace tidemark::cli {
namespace {

void set(Options& options, const OptionRow& row, const std::string& value) {
  std::visit(Overload{[&](TextMember text) { options.*text = value; },
                      [&](FlagMember flag) { options.*flag = true; },
                      [&](StepMember step) {
                        options.step[long_name(row)] = row.value.empty() ? step.text : value;
                      }},
             row.member);
}

void add_options(CLI::App& app, const Command& command, Options& options) {
  for (const OptionRow& row : option_table()) {
    if (!(row.verbs & command.bit)) continue;
    const std::string names(row.names);
    if (row.value.empty()) {
      app.add_flag_callback(names, [&options, &row] { set(options, row, {}); });
    } else {
      CLI::Option* const option = app.add_option_function<std::string>(
          names, [&options, &row](const std::string& value) { set(options, row, value); });
      if (row.may_repeat) option->join(',');
    }
  }
}

struct OtherName {
  std::string_view name;
  std::string_view here;  ///< as it is typed here
};

// What trainers call these: Hugging Face's (with underscores), Megatron-LM's, torchtitan's.
constexpr std::array other_names = {
    OtherName{"--batch-size", "--batch"},
    OtherName{"--per-device-train-batch-size", "--batch"},
    OtherName{"--micro-batch-size", "--batch"},
    OtherName{"--gradient-accumulation-steps", "--accumulate"},
    OtherName{"--gradient-checkpointing", "--strategies checkpoint"},
    OtherName{"--recompute-activations", "--strategies checkpoint"},
    OtherName{"--seq-length", "--sequence"},
    OtherName{"--seq-len", "--sequence"},
    OtherName{"--max-seq-length", "--sequence"},
    OtherName{"--max-length", "--sequence"},
    OtherName{"--lora", "--tuning lora"},
    OtherName{"--peft", "--tuning lora"},
    OtherName{"--load-in-4bit", "--base nf4"},
    OtherName{"--load-in-8bit", "--base int8"},
    OtherName{"--dtype", "--precision"},
    OtherName{"--torch-dtype", "--precision"},
    OtherName{"--bf16", "--precision bf16"},
    OtherName{"--fp16", "--precision amp-fp16"},
    OtherName{"--tensor-model-parallel-size", "--mesh tp=2"},
    OtherName{"--pipeline-model-parallel-size", "--mesh pp=2"},
    OtherName{"--context-parallel-size", "--mesh cp=2"},
    OtherName{"--fsdp", "--shard fsdp2"},
    OtherName{"--zero-stage", "--shard zero2"}};

std::string with_dashes(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', '-');
  return text;
}

// Of those that the command has.
std::string_view meant_by(std::string_view name, const std::vector<std::string_view>& known) {
  const auto* other = std::ranges::find(other_names, with_dashes(name), &OtherName::name);
  if (other == other_names.end()) return nearest_name(name, known);
  const std::string_view option = other->here.substr(0, other->here.find(' '));
  return std::ranges::find(known, option) == known.end() ? std::string_view() : other->here;
}

// CLI11 would take a mistyped option's value for an operand, so everything unknown is collected and
// the first of it is reported.
[[noreturn]] void refuse(const std::string& argument, const Command& command) {
  if (!argument.starts_with("-"))
    throw UsageError(fmt::format("{} is one operand too many (usage: tidemark {}{}{})",
                                 tidemark::quoted(argument), command.name,
                                 command.operands.empty() ? "" : " ", command.operands));
  std::vector<std::string_view> known = {"--help"};
  for (const OptionRow& row : option_table())
    if (row.verbs & command.bit) known.push_back(long_name(row));
  const std::string_view near = meant_by(argument.substr(0, argument.find('=')), known);
  throw UsageError(fmt::format("{}: unknown option {} ({}tidemark {} --help lists all)",
                               command.name, tidemark::quoted(argument),
                               near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                               command.name));
}

// CLI11 says "--batch: 1 required TEXT missing" or "--batch: At Most 1 required but received 2".
std::string explain_mismatch(std::string_view problem) {
  const std::string_view name = problem.substr(0, problem.find(':'));
  for (const OptionRow& row : option_table())
    if (long_name(row) == name && problem.find("missing") != std::string_view::npos)
      return fmt::format("{} needs a value ({})", name, row.help);
  return fmt::format("{} is given more than once", printable(name));
}

[[noreturn]] void refuse_without_command(const std::vector<std::string>& arguments) {
  if (arguments.empty())
    throw UsageError("no command (try: tidemark compare vit-b-16 --batch 64, or tidemark --help)");
  const std::string& first = arguments.front();
  if (const auto near = nearest_name(first, {"--help", "--version", "--man"}); !near.empty())
    throw UsageError(
        fmt::format("unknown option {} (did you mean '{}'?)", tidemark::quoted(first), near));
  if (first.starts_with("-"))
    throw UsageError(fmt::format(
        "unknown option {} before the command (options follow it: tidemark compare MODEL {} …)",
        tidemark::quoted(first), printable(first)));
  throw UsageError(unknown_name("command", printable(first), names_of(commands())));
}

class Parser {
 public:
  explicit Parser(CommandLine& line) : line_(line) {
    app_.set_help_flag("-h,--help");
    app_.set_version_flag("--version", version_text());
    app_.add_flag("--man", man_);
    app_.allow_extras();
    for (const Command& command : commands()) {
      subs_.push_back(app_.add_subcommand(std::string(command.name)));
      subs_.back()->allow_extras();
    }
  }

  void parse(int argc, char** argv) {
    add_arguments({argv, argv + argc});
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      const Command* command = parsed();
      line_.text = command ? help_text(*command) : help_text();
      return;
    } catch (const CLI::CallForVersion&) {
      line_.text = version_text();
      return;
    } catch (const CLI::ArgumentMismatch& error) {
      throw UsageError(explain_mismatch(error.what()));
    } catch (const CLI::ParseError& error) {
      throw UsageError(printable(error.what(), 200));
    }
    line_.command = parsed();
    if (!line_.command && man_) {
      line_.text = manual_page();
      return;
    }
    if (!line_.command || !app_.remaining().empty()) refuse_without_command(app_.remaining());
    auto extras = app_.remaining(true);
    std::erase(extras, "--");  // what follows it was taken for operands
    if (!extras.empty()) refuse(extras.front(), *line_.command);
  }

 private:
  // Of those commands that are named: all of them would take longer than most commands run.
  void add_arguments(std::span<char* const> arguments) {
    for (std::size_t i = 0; i < subs_.size(); ++i) {
      const Command& command = commands()[i];
      if (std::ranges::find(arguments, command.name, as_text) == arguments.end()) continue;
      if (!command.operands.empty()) subs_[i]->add_option("subject", line_.options.subject);
      if (command.bit == for_explain || command.bit == for_diff)
        subs_[i]->add_option("item", line_.options.item);
      if (command.bit == for_view || command.bit == for_search)
        subs_[i]->add_option("files", line_.options.files);
      add_options(*subs_[i], command, line_.options);
    }
  }

  static std::string_view as_text(const char* argument) { return argument; }

  const Command* parsed() const {
    for (std::size_t i = 0; i < subs_.size(); ++i)
      if (subs_[i]->parsed()) return &commands()[i];
    return nullptr;
  }

  CommandLine& line_;
  CLI::App app_;
  std::vector<CLI::App*> subs_;
  bool man_ = false;
};

}  // namespace

namespace {

// "tidemark help", and "tidemark help compare".
std::string help_on(const std::vector<std::string>& names) {
  if (names.empty()) return help_text();
  const auto command = std::ranges::find(commands(), names.front(), &Command::name);
  if (command == commands().end())
    throw UsageError(unknown_name("command", printable(names.front()), names_of(commands())));
  if (names.size() > 1)
    throw UsageError(fmt::format("{} is one operand too many (usage: tidemark help COMMAND)",
                                 tidemark::quoted(names[1])));
  return help_text(*command);
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  CommandLine line;
  if (argc > 1 && std::string_view(argv[1]) == "help") {
    line.text = help_on({argv + 2, argv + argc});
    return line;
  }
  // What follows their first -- is another program's, to the letter.
  const std::string_view command = argc > 1 ? argv[1] : "";
  char** const end = argv + argc;
  char** const program = command == "record" || command == "capture"
                             ? std::find(argv + 2, end, std::string_view("--"))
                             : end;
  Parser(line).parse(static_cast<int>(program - argv), argv);
  if (program != end) line.options.program.assign(program + 1, end);
  return line;
}

}  // namespace tidemark::cli
