// The table of formats with the endings of their files; --format is asked before a name.
#include "cli/commands/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/names.h"
#include "base/quoted.h"
#include "cli/commands/commands.h"

namespace tidemark::cli {
namespace {

struct FormatRow {
  Format value;
  std::string_view name;
  std::string_view use;  ///< what it is for, where the name does not say so
  std::array<std::string_view, 2> endings;
};

constexpr std::array rows = {
    FormatRow{Format::Table, "table", "", {".txt", ".log"}},
    FormatRow{Format::Json, "json", "", {".json"}},
    FormatRow{Format::Csv, "csv", "", {".csv"}},
    FormatRow{Format::Markdown, "markdown", "", {".md", ".markdown"}},
    FormatRow{Format::Html, "html", "", {".html", ".htm"}},
    FormatRow{Format::Svg, "svg", "", {".svg"}},
    FormatRow{Format::Chrome, "chrome", "for Perfetto", {".chrome.json"}},
    FormatRow{Format::Timeline, "timeline", "for diff and view", {".timeline.json"}},
    FormatRow{Format::Collapsed, "collapsed", "for flame graphs", {".collapsed", ".folded"}},
    FormatRow{Format::Github, "github", "annotations", {}},
    FormatRow{Format::Junit, "junit", "", {".xml"}},
    FormatRow{Format::Sarif, "sarif", "", {".sarif", ".sarif.json"}},
    FormatRow{Format::SmallerIsBetter, "customSmallerIsBetter", "github-action-benchmark", {}},
    FormatRow{Format::Bmf, "bmf", "Bencher", {}}};
static_assert(is_in_order(rows));

const FormatRow& row_of(Format format) { return rows[static_cast<std::size_t>(format)]; }

const std::vector<FormatSet>& sets() {
  using enum Format;
  static const std::vector<FormatSet> all = {
      {for_compare, "", {Table, Json, Csv, Markdown, Html, Svg}},
      {for_compare, with_replay, {Table, Json, Csv, Markdown}},
      {for_explain, "", {Table, Json, Html, Svg, Chrome, Timeline, Collapsed}},
      {for_plan, "", {Table, Json, Html, Svg}},
      {for_search, "", {Table, Json, Csv, Markdown}},
      {for_explain, of_an_item, {Table, Json}},
      {for_explain, of_a_snapshot, {Table, Json, Svg, Chrome, Collapsed}},
      {for_explain, with_saved, {Table, Json, Csv, Markdown}},
      {for_explain, with_levers, {Table, Json, Csv, Markdown}},
      {for_explain, with_beside, {Table, Json}},
      {for_replay, "", {Table, Json, Csv, Markdown, Timeline, Chrome}},
      {for_check, "", {Table, Json, Markdown, Github, Junit, Sarif, SmallerIsBetter, Bmf}},
      {for_diff | for_lists, "", {Table, Json, Csv, Markdown}}};
  return all;
}

/// A name that people give to what no command writes, and the way there.
struct Elsewhere {
  std::string_view ending;
  Format by;
  std::string_view remedy;
};

constexpr std::string_view by_svg =
    "write .svg, which browsers show and converters turn into pixels; tidemark view --screenshot "
    "writes .png";
constexpr std::array elsewhere = {
    Elsewhere{".pdf", Format::Html, "write .html and print it from a browser"},
    Elsewhere{".png", Format::Svg, by_svg}, Elsewhere{".jpg", Format::Svg, by_svg},
    Elsewhere{".jpeg", Format::Svg, by_svg},
    Elsewhere{".xlsx", Format::Csv, "write .csv, which spreadsheets open"}};

std::string list_of(const std::vector<std::string>& words, std::string_view last) {
  std::string text = words.front();
  for (std::size_t i = 1; i < words.size(); ++i)
    text += (i + 1 < words.size() ? ", " : std::string(last)) + words[i];
  return text;
}

std::vector<std::string> names_in(const std::vector<Format>& formats) {
  std::vector<std::string> names;
  for (const Format format : formats) names.emplace_back(row_of(format).name);
  return names;
}

// The first ending of each.
std::vector<std::string> endings_of(const std::vector<Format>& formats) {
  std::vector<std::string> endings;
  for (const Format format : formats)
    if (format != Format::Table && !row_of(format).endings[0].empty())
      endings.emplace_back(row_of(format).endings[0]);
  return endings;
}

Format require_among(Format format, const std::vector<Format>& known, std::string_view place) {
  if (std::ranges::find(known, format) != known.end()) return format;
  throw UsageError(
      fmt::format("{} is not available here (known: {})", place, fmt::join(names_in(known), ", ")));
}

// "report.svg" of "pictures/Report.svg.zst": what decides.
std::string name_in(std::string_view path) {
  std::string name(path.substr(path.find_last_of('/') + 1));
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (name.ends_with(".zst")) name.resize(name.size() - 4);
  return name;
}

// The longest ending that fits; ".timeline.json" is no ".json" where timelines are written.
const FormatRow* row_by_name(std::string_view name, const std::vector<Format>& known) {
  const FormatRow* best = nullptr;
  std::size_t longest = 0;
  for (const FormatRow& row : rows)
    for (const std::string_view ending : row.endings) {
      const bool is_known = std::ranges::find(known, row.value) != known.end();
      const std::size_t length = ending.size() + (is_known ? 1000 : 0);
      if (ending.empty() || !name.ends_with(ending) || length < longest) continue;
      best = &row, longest = length;
    }
  return best;
}

[[noreturn]] void refuse_name(std::string_view path, std::string_view ending,
                              const std::vector<Format>& known) {
  for (const Elsewhere& other : elsewhere)
    if (other.ending == ending && std::ranges::find(known, other.by) != known.end())
      throw UsageError(
          fmt::format("{}: {} is not written here ({})", quoted(path), ending, other.remedy));
  throw UsageError(
      fmt::format("{}: {} is no format that is written here (known: {}; --format writes any of "
                  "them to any name)",
                  quoted(path), printable(ending), fmt::join(endings_of(known), ", ")));
}

Format format_by_name(std::string_view path, const std::vector<Format>& known) {
  const std::string name = name_in(path);
  if (const FormatRow* row = row_by_name(name, known))
    return require_among(row->value, known, fmt::format("{}: {}", quoted(path), row->name));
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return known.front();
  refuse_name(path, std::string_view(name).substr(dot), known);
}

std::string describe(const FormatSet& set) {
  std::vector<std::string> words;
  for (const Format format : set.formats) {
    const FormatRow& row = row_of(format);
    words.push_back(row.use.empty() ? std::string(row.name)
                                    : fmt::format("{} ({})", row.name, row.use));
  }
  return list_of(words, " or ");
}

std::string commands_of(std::uint32_t verbs) {
  std::vector<std::string> names;
  for (const Command& command : commands())
    if (command.bit & verbs) names.emplace_back(command.name);
  return list_of(names, " and ");
}

}  // namespace

std::string_view name_of(Format format) { return row_of(format).name; }

const std::vector<Format>& formats_of(VerbBit command, std::string_view when) {
  const auto found = std::ranges::find_if(
      sets(), [&](const FormatSet& set) { return (set.verbs & command) != 0 && set.when == when; });
  CHECK(found != sets().end());
  return found->formats;
}

Format format_of(const Options& options, VerbBit command, std::string_view when) {
  const std::vector<Format>& known = formats_of(command, when);
  if (!options.format) return options.output ? format_by_name(*options.output, known) : known[0];
  const auto named = std::ranges::find(rows, *options.format, &FormatRow::name);
  if (named != rows.end())
    return require_among(named->value, known, fmt::format("--format {}", named->name));
  std::vector<std::string_view> names;
  for (const Format format : known) names.push_back(row_of(format).name);
  throw UsageError(unknown_name("format", *options.format, names));
}

std::vector<std::string> format_names(VerbBit command) {
  std::vector<std::string> names;
  for (const FormatSet& set : sets())
    if (set.verbs & command)
      for (const std::string& name : names_in(set.formats))
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

std::string written_as(Format format, std::initializer_list<Writer> writers) {
  const auto found = std::ranges::find(writers, format, &Writer::format);
  CHECK(found != writers.end());
  return found->write();
}

void require_ending(const Options& options, std::string_view ending, std::string_view what) {
  if (!options.output) return;
  const std::string name = name_in(*options.output);
  const std::size_t dot = name.rfind('.');
  if (name.ends_with(ending) || dot == std::string::npos || dot == 0) return;
  throw UsageError(fmt::format("{}: the name of {} ends in {} or {}.zst", quoted(*options.output),
                               what, ending, ending));
}

std::string describe_formats(std::uint32_t commands) {
  std::string text;
  std::vector<std::string> endings;
  for (const FormatSet& set : sets()) {
    if (!(set.verbs & commands)) continue;
    const bool is_one = std::has_single_bit(commands);
    std::string head = is_one ? "" : commands_of(set.verbs & commands);
    if (!set.when.empty()) head += (head.empty() ? "" : " ") + std::string(set.when);
    text += text.empty() ? "" : "; ";
    text += head.empty() ? describe(set) : fmt::format("{}: {}", head, describe(set));
    if (is_one && set.when.empty()) endings = endings_of(set.formats);
  }
  if (endings.empty()) return text + ". Default table, or what the name after -o says";
  return fmt::format("{}. Default table, or what the name after -o says ({})", text,
                     list_of(endings, " or "));
}

}  // namespace tidemark::cli
