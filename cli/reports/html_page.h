// What every HTML report is put together from: one file, its style and script embedded.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::cli {

/// Up to the end of the header: the title, a paragraph per line, and where the numbers are from.
std::string page_head(const std::string& title, const std::vector<std::string>& lines,
                      const std::string& origin);
/// The footer, the numbers as JSON, and the script.
std::string page_tail(const std::string& json);

std::string page_section(std::string_view title, const std::string& body,
                         std::string_view kind = "");

/// The same picture for a page and, with as large letters, for a phone; the style sheet shows one.
/// `draw` takes the width.
std::string page_figure(const std::function<std::string(double width)>& draw);

struct Article {
  std::string name, body;
  std::string mark = {};  ///< a slider: how the tooltip of the point that is meant begins
};

/// One article at a time on a screen with scripts; all of them, one after the other, without.
std::string page_choice(std::string_view what, const std::vector<Article>& articles,
                        std::string_view first);
/// The same where articles have an order: a slider moves along them, from number `first` on.
std::string page_slider(std::string_view what, const std::vector<Article>& articles,
                        std::size_t first);

}  // namespace tidemark::cli
