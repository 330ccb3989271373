// Looks for model configs and traces a few folders deep, and lists the first ones as experiments.
#include "analysis/check/first_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/check/experiment.h"
#include "base/error.h"
#include "traces/presets.h"

namespace tidemark::regression {
namespace {

namespace fs = std::filesystem;

// An example, and not the end of a wait: a repository may have a data set in it.
constexpr std::size_t most_models = 8;
constexpr std::size_t most_entries = 20'000;
constexpr int deepest = 4;

bool is_model(const fs::path& config) {
  try {
    find_model(config.string());
    return true;
  } catch (const InputError&) {
    return false;
  }
}

void add(const fs::path& folder, const fs::path& path, FoundModels& found) {
  const std::string name = path.lexically_relative(folder).generic_string();
  const bool is_trace = is_trace_path(name);
  if (!is_trace && path.filename() != "config.json") return;
  if (found.configs.size() + found.traces.size() == most_models)
    ++found.left_out;
  else if (is_trace)
    found.traces.push_back(name);
  else if (is_model(path))
    found.configs.push_back(name);
  else
    ++found.unread;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += fmt::format(
        "{}{}", text.empty() ? "" : ", ",
        nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return "[" + text + "]";
}

}  // namespace

FoundModels find_models_in(const std::string& folder) {
  const fs::path top = folder.empty() ? "." : folder;
  std::vector<fs::path> paths;
  std::error_code error;
  std::size_t seen = 0;
  for (fs::recursive_directory_iterator at(top, error), end; !error && at != end;
       at.increment(error)) {
    if (++seen > most_entries) break;
    const bool is_hidden = at->path().filename().string().starts_with('.');
    if (is_hidden || at.depth() >= deepest) at.disable_recursion_pending();
    if (!is_hidden && at->is_regular_file(error)) paths.push_back(at->path());
    error.clear();
  }
  std::ranges::sort(paths);
  FoundModels found;
  for (const fs::path& path : paths) add(top, path, found);
  return found;
}

std::string first_check_file(const FoundModels& models) {
  std::string entries;
  const auto entry = [&](const std::vector<std::string>& names) {
    entries +=
        fmt::format("{}    {{\"models\": {}, \"strategies\": [\"vanilla\", \"checkpoint\"]}}",
                    entries.empty() ? "" : ",\n", list_of(names));
  };
  if (!models.configs.empty()) entry(models.configs);
  if (!models.traces.empty()) entry(models.traces);
  if (entries.empty()) entry({"vit-b-16"});
  return fmt::format(R"({{
  "format": "tidemark-check",
  "version": 1,
  "description": "Memory of one training step. If a change is meant: tidemark check --update",
  "defaults": {{"device": "a100-80gb", "precision": "amp-bf16", "batch": 8}},
  "experiments": [
{}
  ]
}}
)",
                     entries);
}

}  // namespace tidemark::regression
