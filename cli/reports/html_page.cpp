// Embeds style and script; everything is readable without the script.
#include "cli/reports/html_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "analysis/export/pictures.h"
#include "analysis/export/svg.h"
#include "base/embedded_file.h"
#include "cli/reports/html_parts.h"

namespace tidemark::cli {

std::span<const EmbeddedFile> embedded_report();  // report.css, report.js

namespace {

std::string_view embedded(std::string_view name) {
  const auto files = embedded_report();
  return std::ranges::find(files, name, &EmbeddedFile::name)->text;
}

std::string articles_html(const std::vector<Article>& articles) {
  std::string text;
  for (const Article& article : articles)
    text += fmt::format("<article data-name=\"{0}\"{2}>\n<h3>{0}</h3>\n{1}</article>\n",
                        exports::xml_escaped(article.name), article.body,
                        article.mark.empty()
                            ? ""
                            : fmt::format(" data-mark=\"{}\"", exports::xml_escaped(article.mark)));
  return text;
}

}  // namespace

std::string page_head(const std::string& title, const std::vector<std::string>& lines,
                      const std::string& origin) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}"
      "</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n",
      exports::xml_escaped(title), embedded("report.css"), exports::xml_escaped(title));
  for (const std::string& line : lines)
    text += fmt::format("<p>{}</p>\n", exports::xml_escaped(line));
  return text + fmt::format("<p class=\"soft\">{}</p>\n</header>\n", exports::xml_escaped(origin));
}

std::string page_tail(const std::string& json) {
  return fmt::format(
      "<footer><p>Tidemark {}. The numbers of this page, exact and for programs, stand in its "
      "source as JSON.</p></footer>\n<div id=\"tip\" hidden></div>\n"
      "<script type=\"application/json\" id=\"data\">\n{}</script>\n<script>\n{}</script>\n"
      "</body>\n</html>\n",
      TIDEMARK_VERSION, script_escaped(json), embedded("report.js"));
}

std::string page_section(std::string_view title, const std::string& body, std::string_view kind) {
  return fmt::format("<section{}>\n<h2>{}</h2>\n{}</section>\n",
                     kind.empty() ? "" : fmt::format(" class=\"{}\"", kind),
                     exports::xml_escaped(title), body);
}

std::string page_figure(const std::function<std::string(double width)>& draw) {
  return fmt::format(
      "<figure class=\"page\">\n{}</figure>\n<figure class=\"phone\">\n{}</figure>\n",
      draw(exports::page_width), draw(exports::phone_width));
}

std::string page_choice(std::string_view what, const std::vector<Article>& articles,
                        std::string_view first) {
  std::string text =
      fmt::format("<p class=\"choice screen\" hidden><label>{}: <select data-first=\"{}\">\n", what,
                  exports::xml_escaped(first));
  for (const Article& article : articles)
    text += fmt::format("<option>{}</option>\n", exports::xml_escaped(article.name));
  return text + "<option value=\"\">all</option>\n</select></label></p>\n" +
         articles_html(articles);
}

std::string page_slider(std::string_view what, const std::vector<Article>& articles,
                        std::size_t first) {
  return fmt::format(
             "<p class=\"slide screen\" hidden><label>{}: <input type=\"range\" min=\"0\" "
             "max=\"{}\" value=\"{}\"> <output></output></label></p>\n",
             what, articles.empty() ? 0 : articles.size() - 1, first) +
         articles_html(articles);
}

}  // namespace tidemark::cli
