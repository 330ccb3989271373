// Writes roff: escapes what it would read as markup, one section after the other.
#include "cli/commands/manual_page.h"

#include <fmt/format.h>

#include "cli/commands/help.h"
#include "cli/reports/comparison_fields.h"

namespace tidemark::cli {
namespace {

// roff reads a backslash, a hyphen, and a dot or quote at the beginning of a line.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  if (escaped.starts_with(".") || escaped.starts_with("'")) escaped.insert(0, "\\&");
  return escaped;
}

std::string entry(std::string_view head, std::string_view text) {
  return fmt::format(".TP\n{}\n{}\n", head, roff(text));
}

std::string option_head(const OptionRow& row) {
  std::string head = ".BR ";
  head += roff(row.names.substr(0, row.names.find(',')));
  if (const std::size_t comma = row.names.find(','); comma != std::string_view::npos)
    head += " \", \" " + roff(row.names.substr(comma + 1));
  return row.value.empty() ? head : fmt::format("{} \" {}\"", head, row.value);
}

std::string taken_by(const OptionRow& row) {
  std::string names;
  for (const Command& command : commands())
    if (row.verbs & command.bit) names += (names.empty() ? "" : ", ") + std::string(command.name);
  return names;
}

std::string command_section() {
  std::string text = ".SH COMMANDS\n";
  for (const Command& command : commands()) {
    text += fmt::format(".SS tidemark {}{}{}\n", command.name, command.operands.empty() ? "" : " ",
                        roff(command.operands));
    text += roff(sentence(command.summary)) + "\n";
    if (!command.details.empty()) text += roff(command.details) + "\n";
  }
  return text;
}

std::string option_section() {
  std::string text = ".SH OPTIONS\n";
  for (const OptionGroup& group : option_groups()) {
    text += fmt::format(".SS {}\n", group.title);
    for (const OptionRow& row : option_table())
      if (row.group == group.name)
        text += entry(option_head(row),
                      fmt::format("{}. Taken by {}.", help_of(row, row.verbs), taken_by(row)));
  }
  return text;
}

std::string json_section() {
  std::string text =
      ".SH JSON\n.B tidemark compare \\-\\-format json\nprints the inputs (model, options, device, "
      "allocator), the list\n.B rows\nand the conclusion. Sizes are exact bytes, times "
      "nanoseconds, all predicted. What does not apply to a row is null. Each row has:\n";
  for (const RowField& field : row_fields())
    text += entry(fmt::format(".B {}", field.key), field.help);
  text += entry(".B at_peak_bytes", "live bytes at the peak, by category");
  text += entry(".B block_units",
                "saved by one middle block: its name, the bytes of one unit, and units per op and "
                "unique, in all and by kind of op");
  return text;
}

std::string environment_section() {
  return ".SH ENVIRONMENT\n" +
         entry(".B NO_COLOR", "if not empty, no colours unless --color always asks for them") +
         entry(".B COLUMNS", "width of tables (default: the terminal's, or 120)") +
         entry(".BR LC_ALL \", \" LC_CTYPE \", \" LANG",
               "the first that is set decides whether tables use characters beyond ASCII");
}

std::string example_section() {
  std::string text = ".SH EXAMPLES\n";
  for (const Command& command : commands())
    for (const Example& example : command.examples)
      text += fmt::format(".TP\n{}\n.B {}\n", roff(example.what), roff(example.command));
  return text;
}

}  // namespace

std::string manual_page() {
  std::string text =
      ".\\\" Written by 'tidemark --man' from the program's own tables; do not edit.\n"
      ".TH TIDEMARK 1 2026-11-20 \"tidemark " TIDEMARK_VERSION
      "\" \"User Commands\"\n"
      ".SH NAME\ntidemark \\- memory planner for transformer training\n"
      ".SH SYNOPSIS\n.B tidemark\n.I COMMAND\n.RI [ operands ]\n.RI [ options ]\n"
      ".SH DESCRIPTION\n"
      "Tells where the high\\-water mark of GPU memory in a training step is, what makes it, and "
      "what each way of lowering it saves and costs. Nothing runs on a GPU: all numbers are "
      "predicted.\n";
  text += command_section() + option_section() + json_section();
  text += ".SH EXIT STATUS\n";
  for (const ExitCodeRow& row : exit_codes())
    text += entry(fmt::format(".B {}", static_cast<int>(row.code)), row.meaning);
  return text + environment_section() + example_section();
}

}  // namespace tidemark::cli
