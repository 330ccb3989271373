// Reads environment and options for width, colour and Unicode; writes output and progress.
#include "cli/text/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/names.h"
#include "cli/commands/option_table.h"

namespace tidemark::cli {
namespace {

enum class When : unsigned char { Auto, Always, Never };

constexpr std::array whens = {Named{When::Auto, std::string_view("auto")},
                              Named{When::Always, std::string_view("always")},
                              Named{When::Never, std::string_view("never")}};
static_assert(is_in_order(whens));

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool has_unicode_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(environment(name));
    if (value.empty()) continue;  // the next one decides
    std::ranges::transform(value, value.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

std::size_t output_width(bool to_terminal) {
  const std::string_view columns = environment("COLUMNS");
  std::size_t width = 0;
  const auto [end, error] = std::from_chars(columns.data(), columns.data() + columns.size(), width);
  if (error != std::errc() || end != columns.data() + columns.size()) width = 0;
  winsize window{};
  if (width == 0 && to_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0)
    width = window.ws_col;
  if (width == 0) width = 120;
  return std::clamp<std::size_t>(width, 40, 200);
}

std::string_view code_of(Ink ink) {
  constexpr std::array<std::string_view, 7> codes = {"",         "\x1b[1m",  "\x1b[2m",  "\x1b[32m",
                                                     "\x1b[31m", "\x1b[36m", "\x1b[1;4m"};
  return codes[static_cast<std::size_t>(ink)];
}

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

std::string Style::paint(std::string_view text, Ink ink) const {
  if (!color || ink == Ink::Plain || text.empty()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", code_of(ink), text);
}

std::vector<std::string> when_names() { return name_texts(whens); }

Style style_of(const Options& options) {
  const bool to_terminal = !options.output && ::isatty(STDOUT_FILENO) == 1;
  Style style;
  const When when = parse_name(whens, "--color value", options.color.value_or("auto"));
  const std::string_view term = environment("TERM");
  style.color =
      when == When::Always || (when == When::Auto && to_terminal &&
                               environment("NO_COLOR").empty() && !term.empty() && term != "dumb");
  style.unicode = has_unicode_locale();
  style.width = output_width(to_terminal);
  return style;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_character));
}

std::string to_ascii(std::string_view text) {
  struct Pair {
    std::string_view from;
    std::string_view to;
  };
  constexpr std::array pairs = {
      Pair{"█", "#"}, Pair{"▉", "#"}, Pair{"▊", "#"}, Pair{"▋", "#"}, Pair{"▌", "#"},
      Pair{"▍", "."}, Pair{"▎", "."}, Pair{"▏", "."}, Pair{"▇", "#"}, Pair{"▆", "#"},
      Pair{"▅", ":"}, Pair{"▄", ":"}, Pair{"▃", "."}, Pair{"▂", "."}, Pair{"▁", "."},
      Pair{"▒", "%"}, Pair{"│", "|"}, Pair{"─", "-"}, Pair{"└", "+"}, Pair{"┴", "+"},
      Pair{"▲", "^"}, Pair{"−", "-"}, Pair{"·", "|"}, Pair{"×", "x"}, Pair{"µ", "u"},
      Pair{"…", "~"}, Pair{"→", ">"}, Pair{"–", "-"}, Pair{"≥", ">"}};
  std::string ascii;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    while (end < text.size() && !starts_character(text[end])) ++end;
    const std::string_view character = text.substr(i, end - i);
    const auto pair = std::ranges::find(pairs, character, &Pair::from);
    ascii += character.size() == 1 ? character : pair == pairs.end() ? "?" : pair->to;
    i = end;
  }
  return ascii;
}

void write_standard_output(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw InputError(fmt::format("standard output: cannot write: {}", std::strerror(errno)));
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

Progress::Progress(const Options& options, std::string_view what, std::size_t all)
    : what_(what), all_(all), shown_(!options.quiet && ::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::within(std::string_view text) const {
  if (shown_) std::fprintf(stderr, "\r\x1b[K%.*s", static_cast<int>(text.size()), text.data());
}

void Progress::operator()(std::size_t done) const {
  if (shown_)
    std::fprintf(stderr, "\r\x1b[K%zu of %zu %.*s", done, all_, static_cast<int>(what_.size()),
                 what_.data());
}

}  // namespace tidemark::cli
