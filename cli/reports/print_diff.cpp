// Formats each table of a diff in one unit, with the rest summed up and what only one side says.
#include "cli/reports/print_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/quoted.h"
#include "cli/reports/json_text.h"
#include "cli/text/csv.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

/// Numbers of one table, all in one unit.
class Values {
 public:
  explicit Values(const diff::DiffTable& table)
      : measure_(table.measure), size_(largest<Bytes>(table)), time_(largest<Nanoseconds>(table)) {}

  std::string_view unit() const {
    return measure_ == diff::Measure::Size   ? size_.name()
           : measure_ == diff::Measure::Time ? time_.name()
                                             : std::string_view();
  }
  std::string operator()(std::int64_t value) const {
    if (measure_ == diff::Measure::Size) return size_(Bytes{value});
    if (measure_ == diff::Measure::Time) return time_(Nanoseconds{value});
    return fmt::format("{}", value);
  }
  std::string operator()(const std::optional<std::int64_t>& value) const {
    return value ? (*this)(*value) : "";
  }
  /// "+12.5", "−3.0"; never "+0.00" for what is a change, but a small one.
  std::string change(std::int64_t value) const {
    if (value == 0) return "0";
    const std::string digits = (*this)(std::abs(value));
    const std::string sign = value > 0 ? "+" : "−";
    if (digits.find_first_not_of("0.") == std::string::npos) return sign + "<" + smallest(digits);
    return sign + digits;
  }

 private:
  static std::string smallest(std::string digits) {
    digits.back() = '1';
    return digits;
  }

  template <typename Quantity>
  static Quantity largest(const diff::DiffTable& table) {
    std::int64_t most = 0;
    const auto look = [&](const diff::DiffRow& row) {
      most = std::max({most, std::abs(row.before.value_or(0)), std::abs(row.after.value_or(0))});
    };
    for (const diff::DiffRow& row : table.rows) look(row);
    if (table.whole) look(*table.whole);
    return Quantity{most};
  }

  diff::Measure measure_;
  SizeUnit size_;
  TimeUnit time_;
};

std::string percent(const diff::DiffRow& row) {
  if (!row.before) return "[NEW]";
  if (!row.after) return "[GONE]";
  if (*row.before == 0) return "";
  return change_text(static_cast<double>(*row.after) / static_cast<double>(*row.before));
}

Ink ink_of(const diff::DiffRow& row) {
  return row.change() > 0 ? Ink::Bad : row.change() < 0 ? Ink::Good : Ink::Plain;
}

// What the rows beyond the first `top` change together.
std::int64_t change_of_rest(const diff::DiffTable& table, std::size_t top) {
  std::int64_t rest = 0;
  for (std::size_t i = top; i < table.rows.size(); ++i) rest += table.rows[i].change();
  return rest;
}

std::string rest_text(const diff::DiffTable& table, std::size_t top) {
  return fmt::format("… {} more (--top N shows more)", table.rows.size() - top);
}

std::string heading(const diff::DiffTable& table, const Values& values) {
  return values.unit().empty() ? table.name : fmt::format("{} [{}]", table.name, values.unit());
}

std::string draw(const diff::Diff& diff, const diff::DiffTable& table, const Style& style,
                 std::size_t top) {
  const Values values(table);
  TextTable text;
  text.add_column({std::string(diff.before_label)});
  text.add_column({std::string(diff.after_label)});
  text.add_column({"change"});
  text.add_column({""});
  text.add_column({"", Align::Left});
  const auto add = [&](const diff::DiffRow& row, Ink ink) {
    text.add_row({{values(row.before), ink},
                  {values(row.after), ink},
                  {values.change(row.change()), ink_of(row)},
                  {percent(row), ink_of(row)},
                  {printable(row.key, 120), ink}});
  };
  for (std::size_t i = 0; i < std::min(top, table.rows.size()); ++i) add(table.rows[i], Ink::Plain);
  if (table.rows.size() > top)
    text.add_row(
        {{}, {}, {values.change(change_of_rest(table, top))}, {}, {rest_text(table, top)}});
  if (table.whole) add(*table.whole, Ink::Bold);
  std::string out = "\n" + style.paint(heading(table, values), Ink::Bold) + "\n" + text.draw(style);
  if (table.equal > 0) out += fmt::format("{} unchanged\n", table.equal);
  return out;
}

// Tables in which nothing changed, in one line.
std::string unchanged(const diff::Diff& diff) {
  std::string names;
  for (const diff::DiffTable& table : diff.tables)
    if (table.rows.empty()) names += (names.empty() ? "" : "; ") + table.name;
  return names;
}

std::string unmatched(const diff::Diff& diff) {
  return fmt::format("{}", fmt::join(diff.unmatched, "; "));
}

// "before: …" and "after:  …"
std::string heads(const diff::Diff& diff, std::string_view line_end) {
  const std::size_t width = std::max(diff.before_label.size(), diff.after_label.size()) + 1;
  const auto head = [&](std::string_view label, const std::string& title) {
    return fmt::format("{:<{}} {}{}", fmt::format("{}:", label), width, printable(title, 200),
                       line_end);
  };
  return head(diff.before_label, diff.before) + head(diff.after_label, diff.after);
}

}  // namespace

std::string diff_table(const diff::Diff& diff, const Style& style, std::size_t top) {
  std::string text = heads(diff, "\n");
  if (diff.is_empty()) text += "\nNo number differs.\n";
  for (const diff::DiffTable& table : diff.tables)
    if (!table.rows.empty()) text += draw(diff, table, style, top);
  if (const std::string names = unchanged(diff); !names.empty() && !diff.is_empty())
    text += fmt::format("\nUnchanged: {}\n", names);
  if (!diff.unmatched.empty())
    text += fmt::format("\nOnly one of the two says: {}\n", unmatched(diff));
  return style.unicode ? text : to_ascii(text);
}

std::string diff_markdown(const diff::Diff& diff, std::size_t top) {
  std::string text = heads(diff, "  \n");  // two blanks break the line
  if (diff.is_empty()) text += "\nNo number differs.\n";
  for (const diff::DiffTable& table : diff.tables) {
    if (table.rows.empty()) continue;
    const Values values(table);
    text += fmt::format("\n**{}**\n\n", heading(table, values));
    text += markdown_line(
                {"", std::string(diff.before_label), std::string(diff.after_label), "change", ""}) +
            markdown_line({"---", "--:", "--:", "--:", "--:"});
    const auto add = [&](const diff::DiffRow& row) {
      text += markdown_line({printable(row.key, 120), values(row.before), values(row.after),
                             values.change(row.change()), percent(row)});
    };
    for (std::size_t i = 0; i < std::min(top, table.rows.size()); ++i) add(table.rows[i]);
    if (table.rows.size() > top)
      text += markdown_line(
          {rest_text(table, top), "", "", values.change(change_of_rest(table, top)), ""});
    if (table.whole) add(*table.whole);
    if (table.equal > 0) text += fmt::format("\n{} unchanged\n", table.equal);
  }
  if (!diff.unmatched.empty())
    text += fmt::format("\nOnly one of the two says: {}\n", unmatched(diff));
  return text;
}

std::string diff_json(const diff::Diff& diff) {
  Json json = {{"format", "tidemark-diff-1"},
               {"before", diff.before},
               {"after", diff.after},
               {"tables", Json::array()},
               {"unmatched", diff.unmatched}};
  const auto row_of = [](const diff::DiffRow& row) {
    return Json{{"key", row.key},
                {"before", to_json(row.before)},
                {"after", to_json(row.after)},
                {"change", row.change()}};
  };
  for (const diff::DiffTable& table : diff.tables) {
    Json rows = Json::array();
    for (const diff::DiffRow& row : table.rows) rows.push_back(row_of(row));
    json["tables"].push_back(
        {{"name", table.name},
         {"measure", diff::measures[static_cast<std::size_t>(table.measure)].name},
         {"rows", std::move(rows)},
         {"unchanged", table.equal},
         {"all", table.whole ? row_of(*table.whole) : Json()}});
  }
  return document_text(json);
}

std::string diff_csv(const diff::Diff& diff) {
  std::string text = csv_line({"table", "measure", "key", "before", "after", "change"});
  const auto number = [](const std::optional<std::int64_t>& value) {
    return value ? fmt::format("{}", *value) : "";
  };
  for (const diff::DiffTable& table : diff.tables)
    for (const diff::DiffRow& row : table.rows)
      text += csv_line(
          {table.name, std::string(diff::measures[static_cast<std::size_t>(table.measure)].name),
           row.key, number(row.before), number(row.after), fmt::format("{}", row.change())});
  return text;
}

}  // namespace tidemark::cli
