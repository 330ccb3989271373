// Reads the file, and puts a new baseline into its text without touching any other byte.
#include "analysis/check/check_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/quoted.h"

namespace tidemark::regression {
namespace {

constexpr std::string_view format_name = "tidemark-check";
/// Counts up when an older program would misread a newer file.
constexpr std::int64_t format_version = 1;
constexpr std::int64_t most_groups = 10'000;

void require_format(const JsonView& root) {
  const JsonView format = root.at("format");
  if (format.text() != format_name)
    format.fail(fmt::format("found {}; need '{}'", tidemark::quoted(format.text()), format_name));
  const JsonView version = root.at("version");
  if (const std::int64_t found = version.integer(0, 1'000'000); found != format_version)
    version.fail(fmt::format("found version {}; this tidemark reads version {} ({})", found,
                             format_version,
                             found > format_version ? "use a newer one" : "write the file anew"));
}

}  // namespace

CheckFile read_check_file(std::string text, const std::string& path) {
  const JsonDocument document(text, path);
  const JsonView root = document.root();
  root.allow_only(
      {"format", "version", "description", "peak_groups", "defaults", "experiments", "expected"});
  require_format(root);
  if (const auto description = root.find("description")) description->text();
  CheckFile file{path, "", 8, {}, {}, JsonPlaces(text)};
  file.peak_groups = static_cast<std::size_t>(root.integer_or("peak_groups", 8, 0, most_groups));
  file.experiments = read_experiments(root.at("experiments"), root.find("defaults"));
  if (const auto expected = root.find("expected")) file.baseline = read_baseline(*expected);
  file.text = std::move(text);
  return file;
}

std::string with_baseline(const CheckFile& file, const Baseline& baseline) {
  const std::string written = write_baseline(baseline);
  const std::string_view text = file.text;
  if (const JsonPlace* old = file.places.find("/expected"))
    return fmt::format("{}{}{}", text.substr(0, old->begin), written, text.substr(old->end));
  // Behind the last value of the root, whose closing bracket is its last byte.
  const JsonPlace* root = file.places.find("");
  CHECK(root && root->end > root->begin);
  const std::size_t last = text.find_last_not_of(" \t\r\n", root->end - 2) + 1;
  return fmt::format("{},\n\n  \"expected\": {}\n{}", text.substr(0, last), written,
                     text.substr(root->end - 1));
}

Baseline baseline_of(const CheckFile& file, const std::vector<ExperimentOutcome>& outcomes,
                     std::string_view tidemark_version) {
  CHECK(outcomes.size() == file.experiments.size());
  Baseline baseline{std::string(tidemark_version), std::string(allocator_rules), {}};
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    baseline.experiments.push_back(
        expected_of(file.experiments[i].id, outcomes[i], file.peak_groups));
  return baseline;
}

}  // namespace tidemark::regression
