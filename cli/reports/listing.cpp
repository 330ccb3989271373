// Prints a listing as a table, CSV, Markdown or JSON, with each cell's shown text or exact value.
#include "cli/reports/listing.h"

#include "base/error.h"
#include "cli/reports/json_text.h"
#include "cli/text/csv.h"

namespace tidemark::cli {
namespace {

std::string shown(const ListCell& cell) {
  return cell.shown ? *cell.shown : field_text(cell.value);
}

std::string as_table(const Listing& listing, const Style& style) {
  TextTable table;
  for (const ListColumn& column : listing.columns)
    table.add_column({column.title, column.align, column.importance});
  for (const auto& row : listing.rows) {
    std::vector<TextCell> cells;
    for (const ListCell& cell : row) cells.push_back({shown(cell)});
    cells.front().ink = Ink::Bold;
    table.add_row(std::move(cells));
  }
  const std::string text = table.draw(style, "--format csv has all");
  return style.unicode ? text : to_ascii(text);
}

std::string as_csv(const Listing& listing) {
  std::vector<std::string> cells;
  for (const ListColumn& column : listing.columns) cells.push_back(column.key);
  std::string text = csv_line(cells);
  for (const auto& row : listing.rows) {
    cells.clear();
    for (const ListCell& cell : row) cells.push_back(field_text(cell.value));
    text += csv_line(cells);
  }
  return text;
}

std::string as_markdown(const Listing& listing) {
  std::vector<std::string> titles, rules;
  for (const ListColumn& column : listing.columns) {
    titles.push_back(column.title);
    rules.emplace_back(column.align == Align::Right ? "--:" : "---");
  }
  std::string text = markdown_line(titles) + markdown_line(rules);
  for (const auto& row : listing.rows) {
    std::vector<std::string> cells;
    for (const ListCell& cell : row) cells.push_back(shown(cell));
    text += markdown_line(cells);
  }
  return text;
}

std::string as_json(const Listing& listing) {
  Json list = Json::array();
  for (const auto& row : listing.rows) {
    Json object = Json::object();
    for (std::size_t c = 0; c < row.size(); ++c)
      std::visit([&](const auto& value) { object[listing.columns[c].key] = to_json(value); },
                 row[c].value);
    list.push_back(std::move(object));
  }
  return document_text(list);
}

}  // namespace

std::string print(const Listing& listing, Format format, const Style& style) {
  return written_as(format, {{Format::Json, [&] { return as_json(listing); }},
                             {Format::Csv, [&] { return as_csv(listing); }},
                             {Format::Markdown, [&] { return as_markdown(listing); }},
                             {Format::Table, [&] { return as_table(listing, style); }}});
}

}  // namespace tidemark::cli
