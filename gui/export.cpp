// Names exported files, finds a path that is free and writes the format that the ending asks for.
#include "gui/export.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "analysis/export/chrome_trace.h"
#include "analysis/export/pictures.h"
#include "base/files.h"
#include "base/quoted.h"

namespace tidemark::gui {
namespace {

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '.' || c == '_' || c == '+';
}

// What stands before the endings, which may be two: "step.timeline.json.zst".
std::size_t end_of_stem(const std::string& path) {
  const std::size_t name = path.find_last_of('/') + 1;
  for (const std::string_view ending :
       {".chrome.json", ".timeline.json", ".timeline.json.zst", ".notes.md", ".session.json"})
    if (path.ends_with(ending)) return path.size() - ending.size();
  const std::size_t point = path.rfind('.');
  return point == path.npos || point < name ? path.size() : point;
}

}  // namespace

std::string file_stem(const Recording& recording) {
  const Trace& trace = *recording.trace;
  std::string stem;
  for (const char c :
       fmt::format("tidemark-{}-{}-batch-{}", trace.model, recording.strategy, trace.step.batch)) {
    if (is_plain(c))
      stem += c;
    else if (!stem.ends_with('-'))
      stem += '-';
  }
  return stem;
}

std::string free_path(const std::string& path) {
  const std::size_t end = end_of_stem(path);
  std::string free = path;
  for (int i = 2; std::filesystem::exists(free); ++i)
    free = fmt::format("{}-{}{}", path.substr(0, end), i, path.substr(end));
  return free;
}

void write_export(const std::string& path, const Opened& opened) {
  if (path.ends_with(".svg")) return write_file(path, exports::memory_svg(opened.recording));
  if (path.ends_with(".chrome.json"))
    return write_file(path, exports::chrome_trace({&opened.recording, 1}));
  if (path.ends_with(".timeline.json") || path.ends_with(".timeline.json.zst"))
    return write_recording(path, opened.recording);
  throw UsageError(tidemark::quoted(path) +
                   ": unknown kind of file (known: .png, .svg, .chrome.json, .timeline.json, "
                   ".timeline.json.zst)");
}

}  // namespace tidemark::gui
