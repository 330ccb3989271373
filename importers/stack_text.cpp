// Which frames are the user's: not those of PyTorch, of Python itself and of C++.
#include "importers/stack_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/quoted.h"
#include "importers/snapshot_timeline.h"

namespace tidemark::importers {
namespace {

constexpr std::string_view unknown_site = "(no stack was recorded)";

std::string_view last_part(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == path.npos ? path : path.substr(slash + 1);
}

bool is_python(const Frame& frame) {
  return frame.file.ends_with(".py") || frame.file.front() == '<';
}

// What each call of a module goes through says nothing.
bool is_wrapper(const Frame& frame) {
  constexpr std::array wrappers = {"_call_impl", "_wrapped_call_impl", "__call__"};
  return std::ranges::find(wrappers, frame.function) != wrappers.end();
}

bool is_users(const Frame& frame) {
  if (frame.file.empty() || !is_python(frame) || is_wrapper(frame)) return false;
  const auto has = [&](std::string_view part) {
    return frame.file.find(part) != std::string::npos;
  };
  if (has("/torch/") || has("<frozen") || has("<__array_function__")) return false;
  return !has("/lib/python3") || has("site-packages/") || has("dist-packages/");
}

}  // namespace

std::string frame_text(const Frame& frame) {
  return fmt::format("{} ({}:{})", printable(frame.function), printable(last_part(frame.file)),
                     frame.line);
}

const std::string& SiteNames::name(StackId stack) {
  std::string& name = names_[index(stack)];
  if (name.empty()) name = site_of(snapshot_, stack);
  return name;
}

std::string SiteNames::whole(StackId stack) const {
  constexpr std::size_t most = 24;
  std::string text;
  std::size_t shown = 0;
  for (const std::uint32_t number : snapshot_.stack(stack)) {
    const Frame& frame = snapshot_.frames[number];
    if (is_wrapper(frame)) continue;
    if (shown == most) return text + " ← …";
    text += fmt::format("{}{}", shown++ == 0 ? "" : " ← ", frame_text(frame));
  }
  return text;
}

std::string site_of(const MemorySnapshot& snapshot, StackId stack) {
  const Frame *innermost = nullptr, *users = nullptr;
  for (const std::uint32_t number : snapshot.stack(stack)) {
    const Frame& frame = snapshot.frames[number];
    if (!innermost && !is_wrapper(frame)) innermost = &frame;
    if (is_users(frame)) {
      users = &frame;
      break;
    }
  }
  if (!innermost) return std::string(unknown_site);
  if (!users || users == innermost) return frame_text(*innermost);
  return fmt::format("{} ← {}", printable(innermost->function), frame_text(*users));
}

}  // namespace tidemark::importers
