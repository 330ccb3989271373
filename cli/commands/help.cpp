// Lays out --help in 80 columns: commands, options under their headings, examples and exit codes.
#include "cli/commands/help.h"

#include <fmt/format.h>

#include <array>

#include "cli/text/wrapping.h"

namespace tidemark::cli {
namespace {

constexpr std::size_t page_width = 80;

constexpr std::array codes = {
    ExitCodeRow{ExitCode::Ok,
                "the question was answered, also when the answer is that nothing fits"},
    ExitCodeRow{ExitCode::Error, "an input is wrong, or the output cannot be written"},
    ExitCodeRow{ExitCode::Usage, "the command line is wrong"},
    ExitCodeRow{ExitCode::Regression, "a check found what is not as expected"},
    ExitCodeRow{ExitCode::DoesNotFit, "nothing shown fits (only with --require-fit)"},
    ExitCodeRow{ExitCode::NotHere, "there is no GPU, or no display, for what needs one"}};

constexpr std::array groups = {
    OptionGroup{"step", "Options of the step"}, OptionGroup{"device", "Options of the device"},
    OptionGroup{"scenario", "What is asked"},   OptionGroup{"check", "What is checked"},
    OptionGroup{"run", "What is run"},          OptionGroup{"capture", "What is captured"},
    OptionGroup{"window", "The window"},        OptionGroup{"output", "How it is shown"}};

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string lines;
  for (const std::string& line : wrapped_lines(text, page_width - indent))
    lines += std::string(indent, ' ') + line + "\n";
  return lines;
}

// "  name   text …": the text in a column of its own, or below a long name.
std::string entry(const std::string& name, std::string_view text, std::size_t column) {
  const std::string head = "  " + name;
  const std::string lines = wrapped(text, column);
  if (head.size() + 2 > column) return head + "\n" + lines;
  return head + lines.substr(head.size());
}

std::string names_text(const OptionRow& row) {
  std::string names = row.names.starts_with("--") ? "    " : "";
  for (const char c : row.names) names += c == ',' ? std::string(", ") : std::string(1, c);
  return row.value.empty() ? names : fmt::format("{} {}", names, row.value);
}

}  // namespace

std::span<const ExitCodeRow> exit_codes() { return codes; }
std::span<const OptionGroup> option_groups() { return groups; }

std::string sentence(std::string_view summary) {
  std::string text(summary);
  if (text.front() >= 'a' && text.front() <= 'z')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text + ".";
}

std::string version_text() { return "tidemark " TIDEMARK_VERSION "\n"; }

std::string help_text() {
  std::string text =
      "Usage: tidemark COMMAND …\n\n"
      "Where is the high-water mark of memory in a training step, what makes it, and\n"
      "what does each way of lowering it cost? Predicted, without a GPU.\n\nCommands:\n";
  for (const Command& command : commands())
    text += entry(std::string(command.name), command.summary, 14);
  text += "\nBegin with:\n";
  for (const Command& command : commands())
    if (command.bit & (for_compare | for_explain))
      text += fmt::format("  {}\n", command.examples.front().command);
  text += "\nExit codes:\n";
  for (const ExitCodeRow& row : codes)
    text += entry(fmt::format("{}", static_cast<int>(row.code)), row.meaning, 6);
  return text + "\ntidemark help COMMAND says more; tidemark --version, tidemark --man.\n";
}

std::string help_text(const Command& command) {
  std::string text = fmt::format("Usage: tidemark {}{}{} [options]\n\n", command.name,
                                 command.operands.empty() ? "" : " ", command.operands);
  text += wrapped(sentence(command.summary), 0);
  if (!command.details.empty()) text += wrapped(command.details, 0);
  for (const OptionGroup& group : groups) {
    std::string options;
    for (const OptionRow& row : option_table())
      if (row.group == group.name && (row.verbs & command.bit))
        options += entry(names_text(row), help_of(row, command.bit), 26);
    if (!options.empty()) text += fmt::format("\n{}:\n{}", group.title, options);
  }
  text += "\nExamples:\n";
  for (const Example& example : command.examples)
    text += fmt::format("  {}\n      {}\n", example.command, example.what);
  return text;
}

}  // namespace tidemark::cli
