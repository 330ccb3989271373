// One file after the other, each read by a thread of its own.
#include "gui/loading.h"

#include <fmt/format.h>

#include <filesystem>

namespace tidemark::gui {
namespace {

Loading::Done load(const Loading::Reader& reader, const std::string& path, Opening opening,
                   ReadProgress* progress) {
  try {
    Recording made = reader(path, progress);
    progress->begin("indexing");
    return {path, opening, std::make_shared<const Opened>(std::move(made)), ""};
  } catch (const InputError& error) {
    return {path, opening, nullptr, error.what()};
  }
}

std::string size_text(const std::string& path) {
  std::error_code unknown;
  const auto bytes = std::filesystem::file_size(path, unknown);
  return unknown ? "" : fmt::format(" ({})", to_text(Bytes{static_cast<std::int64_t>(bytes)}));
}

}  // namespace

void Loading::add(std::string path, Opening opening) {
  waiting_.emplace_back(std::move(path), opening);
  if (!is_busy()) start();
}

void Loading::start() {
  const auto [path, opening] = std::move(waiting_.front());
  path_ = path;
  waiting_.pop_front();
  began_ = std::chrono::steady_clock::now();
  progress_.begin("");
  under_way_ = std::async(std::launch::async, load, reader_, path, opening, &progress_);
}

std::optional<Loading::Done> Loading::next() {
  if (!is_busy() || under_way_.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return {};
  Done done = under_way_.get();
  if (!waiting_.empty()) start();
  return done;
}

std::string Loading::text() const {
  if (!is_busy()) return "";
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began_);
  std::string text =
      fmt::format("reading {}{}, {} s", std::filesystem::path(path_).filename().string(),
                  size_text(path_), seconds.count());
  if (const std::string progress = progress_.text(); !progress.empty()) text += ": " + progress;
  if (!waiting_.empty()) text += fmt::format("; {} more to read", waiting_.size());
  return text;
}

void Loading::wait(std::chrono::milliseconds most) const {
  if (is_busy()) under_way_.wait_for(most);
}

}  // namespace tidemark::gui
