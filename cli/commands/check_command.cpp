// `tidemark check`: writes a first list, compares with the baseline, or updates it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "analysis/check/first_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/quoted.h"
#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/commands/option_table.h"
#include "cli/reports/check_print.h"

namespace tidemark::cli {
namespace {

constexpr const char* usual_file = "tidemark.json";

// "--init", with the file where it is not the usual one.
std::string command_with(const std::string& path, const char* option) {
  return path == usual_file ? fmt::format("tidemark check {}", option)
                            : fmt::format("tidemark check {} {}", shell_quoted(path), option);
}

void require_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) || error) return;
  throw InputError(fmt::format("{}: there is no such file ({} writes a first one)",
                               printable(path, 200), command_with(path, "--init")));
}

// "2 models of this folder", and what was not taken.
std::string describe(const regression::FoundModels& models) {
  const std::size_t count = models.configs.size() + models.traces.size();
  std::string text = count == 0 ? "no model in its folder, so a preset as an example"
                                : fmt::format("{} model{} found", count, count == 1 ? "" : "s");
  if (models.left_out > 0) text += fmt::format(", {} more left out", models.left_out);
  if (models.unread > 0)
    text += fmt::format(", {} config.json of no family that Tidemark knows", models.unread);
  return text;
}

Result init(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error))
    throw InputError(fmt::format("{}: exists already and stays as it is (name another file)",
                                 printable(path, 200)));
  require_writable(path);
  const regression::FoundModels models =
      regression::find_models_in(std::filesystem::path(path).parent_path().string());
  const std::string text = first_check_file(models);
  const std::size_t count = regression::read_check_file(text, path).experiments.size();
  write_file(path, text);
  return {
      "",
      fmt::format("{}: written with {} experiments ({}); edit it, then: {}\n", printable(path, 200),
                  count, describe(models), command_with(path, "--update")),
      ExitCode::Ok};
}

/// A report of --also: where it goes, and how it looks.
struct ExtraReport {
  CheckFormat format;
  std::string path;
};

// "junit=check.xml,sarif=check.sarif"
std::vector<ExtraReport> extra_reports(const Options& options) {
  std::vector<ExtraReport> reports;
  const std::string list = options.also.value_or("");
  for (std::size_t begin = 0; options.also && begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const auto piece = std::string_view(list).substr(begin, end - begin);
    const std::size_t equals = piece.find('=');
    if (equals == std::string_view::npos || equals + 1 == piece.size())
      throw UsageError(fmt::format("--also: {} is not FORMAT=FILE (as in junit=check.xml)",
                                   tidemark::quoted(piece)));
    reports.push_back({parse_name(check_formats, "format", piece.substr(0, equals)),
                       std::string(piece.substr(equals + 1))});
    begin = end + 1;
  }
  return reports;
}

/// The progress on a terminal, whose length is known only once the file is read.
class LateProgress {
 public:
  explicit LateProgress(const Options& options) : options_(options) {}
  void operator()(std::size_t done, std::size_t all) {
    if (!shown_) shown_.emplace(options_, "experiments", all);
    (*shown_)(done);
  }

 private:
  const Options& options_;
  std::optional<Progress> shown_;
};

regression::CheckReport check(const std::string& path, const Options& options,
                              LateProgress& progress) {
  const regression::CheckFile file =
      regression::read_check_file(read_file(path, FileKind::Check), path);
  const std::size_t all = file.experiments.size();
  const auto outcomes =
      run_experiments(path, file.experiments, [&](std::size_t done) { progress(done, all); });
  return compare_with_baseline(file, outcomes, {TIDEMARK_VERSION, options.allow_new});
}

// What an update changed, in one line.
std::string describe(const regression::Update& update) {
  const regression::CheckReport before =
      compare_with_baseline(update.before, update.outcomes, {TIDEMARK_VERSION, false});
  std::size_t fresh = 0, gone = 0, other = 0;
  for (const regression::ExperimentVerdict& verdict : before.experiments) {
    const auto has = [&](regression::FindingKind kind) {
      return std::ranges::find(verdict.findings, kind, &regression::Finding::kind) !=
             verdict.findings.end();
    };
    if (has(regression::FindingKind::GoneExperiment)) {
      ++gone;
    } else if (has(regression::FindingKind::NewExperiment)) {
      ++fresh;
    } else if (verdict.failed()) {
      ++other;
    }
  }
  const std::size_t all = update.after.experiments.size();
  const std::string count = fmt::format("{}: {} experiment{}", printable(update.after.path, 200),
                                        all, all == 1 ? "" : "s");
  if (update.before.text == update.after.text) return count + ", nothing to update\n";
  const std::string head = count + " written";
  if (!update.before.baseline) return head + ", the first baseline\n";
  if (!before.findings.empty()) return head + ", the old ones were not comparable\n";
  return fmt::format("{}: {} changed, {} new, {} gone (git diff shows them)\n", head, other, fresh,
                     gone);
}

}  // namespace

Result run_check(const Options& options) {
  if (options.update && options.allow_new)
    throw UsageError("--update records what is new already (leave out --allow-new)");
  if (options.init && (options.update || options.allow_new || options.also))
    throw UsageError("--init only writes the list of experiments (give it alone)");
  const std::string path = options.subject.empty() ? usual_file : options.subject;
  if (options.init) return init(path);
  const CheckFormat format =
      parse_name(check_formats, "format", name_of(format_of(options, for_check)));
  const std::vector<ExtraReport> extras = extra_reports(options);
  const Style style = style_of(options);
  require_file(path);
  LateProgress progress(options);
  Result result;
  regression::CheckReport report;
  if (options.update) {
    const regression::Update update =
        regression::update_check_file(path, TIDEMARK_VERSION, std::ref(progress));
    report = compare_with_baseline(update.after, update.outcomes, {TIDEMARK_VERSION, false});
    result.notes = describe(update);
  } else {
    report = check(path, options, progress);
    if (report.failed() && report.defects() == 0)
      result.notes = fmt::format("If this is meant: {}\n", update_command(report));
  }
  Options to_file = options;
  for (const ExtraReport& extra : extras) {
    to_file.output = extra.path;
    write_file(extra.path, print(report, extra.format, style_of(to_file)));
  }
  result.text = print(report, format, style);
  // What cannot be run is no verdict about memory, so it outweighs those that there are.
  if (report.defects() > 0)
    result.exit_code = ExitCode::Error;
  else if (report.failed())
    result.exit_code = ExitCode::Regression;
  return result;
}

}  // namespace tidemark::cli
