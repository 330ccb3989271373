// `tidemark search`: which layouts over many GPUs fit, and which of them are the fastest.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/quoted.h"
#include "cli/commands/command_line.h"
#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/commands/interrupt.h"
#include "cli/commands/program_build.h"
#include "cli/commands/scenario.h"
#include "cli/commands/search_records.h"
#include "cli/reports/print_search.h"
#include "simulator/parallel/cluster.h"
#include "traces/models/model_config.h"
#include "traces/trace_builder.h"

namespace tidemark::cli {
namespace {

constexpr std::int64_t most_samples = std::int64_t{1} << 30;
constexpr std::int64_t most_rows = 100'000;

std::vector<StrategySpec> searched_strategies(const Options& options) {
  const auto named =
      parse_strategies(options.strategies.value_or("vanilla,checkpoint,checkpoint:selective"));
  std::vector<StrategySpec> all;
  for (const StrategySpec& strategy : named)
    if (std::ranges::find(all, strategy.text, &StrategySpec::text) == all.end())
      all.push_back(strategy);
  return all;
}

// Which ranks share a sequence, and whether an expert is whole on each, is said, not searched.
Mesh mesh_of_layouts(std::string_view text, std::int64_t gpus) {
  const Mesh mesh = parse_mesh_axes(text);
  Mesh said;
  said[Axis::Context] = mesh[Axis::Context];
  said.expert_tensor = mesh.expert_tensor;
  if (mesh != said)
    throw UsageError(fmt::format(
        "search: --mesh {}: other axes than cp and etp are what it tries ({})", to_text(mesh),
        said == Mesh() ? "leave --mesh out" : "give --mesh " + to_text(said)));
  if (const std::int64_t cut_by = said.expert_tensor; cut_by > 0 && gpus % cut_by != 0)
    throw UsageError(
        fmt::format("search: --mesh {}: {} GPUs are no groups of {} that cut an expert (nearest: "
                    "etp={})",
                    to_text(said), gpus, cut_by, nearest_divisor(gpus, cut_by)));
  return said;
}

LayoutRequest search_request(const Options& options) {
  if (!options.gpus) throw UsageError("search: how many GPUs does the job have? (give --gpus 64)");
  LayoutRequest request;
  request.gpus = parse_count(*options.gpus, "--gpus", 1, Mesh::most_gpus);
  Options alone = options;
  alone.gpus.reset();
  alone.step.erase("--mesh");
  alone.strategies = options.strategies.value_or(std::string(reference_strategy().name));
  request.scenario = scenario_of(alone);
  if (const auto given = options.step.find("--mesh"); given != options.step.end())
    request.scenario.step.mesh = mesh_of_layouts(given->second, request.gpus);
  if (request.scenario.trace)
    throw UsageError(fmt::format("{} is one step as it is, of one batch (name a model to lay out)",
                                 tidemark::quoted(options.subject)));
  if (request.gpus > 1 && !interconnect_of(request.scenario.device))
    throw UsageError(fmt::format("nothing is known of what joins several {} (give a --cluster)",
                                 request.scenario.device.title));
  request.scenario.strategies = searched_strategies(options);
  request.global_batch = options.global_batch
                             ? parse_count(*options.global_batch, "--global-batch", 1, most_samples)
                             : request.gpus;
  if (options.step.contains("--batch")) request.micro_batch = request.scenario.step.batch;
  const StepOptions& step = request.scenario.step;
  if (const std::string defect = expert_form_defect(step); !defect.empty())
    throw UsageError("--ep-form: " + defect);
  require_used_options(build_trace(request.scenario.model, step_in(request, MeshLayout())));
  if (find_framework(step.framework).torchtitan)  // which has no others
    std::erase_if(request.shardings, [](const Sharding& sharding) {
      return sharding.kind != Sharding::Kind::Ddp && sharding.kind != Sharding::Kind::Fsdp2;
    });
  if (step.shard) request.shardings = {*step.shard};
  if (step.schedule) request.schedules = {*step.schedule};
  if (options.top)
    request.top = static_cast<std::size_t>(parse_count(*options.top, "--top", 1, most_rows));
  return request;
}

// As the user typed it, with the layout's own options.
std::string command_for(const LayoutRequest& request, const MeshLayout& layout, Options options) {
  const StepOptions step = step_in(request, layout);
  options.gpus.reset();
  options.global_batch.reset();
  const auto set = [&](std::string_view name, bool is_said, std::string text) {
    options.step.erase(name);
    if (is_said) options.step[name] = std::move(text);
  };
  set("--batch", true, fmt::format("{}", step.batch));
  set("--accumulate", step.accumulate.count > 1, fmt::format("{}", step.accumulate.count));
  set("--mesh", !step.mesh.is_one(), to_text(step.mesh));
  set("--sp", step.sequence_parallel, "true");
  set("--schedule", step.mesh[Axis::Pipeline] > 1,
      step.schedule ? to_text(*step.schedule) : std::string());
  set("--shard", step.shard.has_value(), step.shard ? to_text(*step.shard) : std::string());
  return fmt::format("tidemark compare {}{}{} {}", shell_quoted(options.subject),
                     as_typed(options, "step"), as_typed(options, "device"),
                     as_typed(request.scenario.strategies[layout.strategy]));
}

// What asks the same again, without what says how it is run and shown.
std::vector<std::string> arguments_of(const Options& options) {
  std::vector<std::string> arguments = {"search", options.subject};
  for (const OptionRow& row : option_table()) {
    const std::string_view name = long_name(row);
    const bool is_asked =
        row.group == "step" || row.group == "device" || name == "--top" || name == "--strategies";
    if (!is_asked || !is_given(options, row)) continue;
    arguments.emplace_back(name);
    if (!row.value.empty()) arguments.emplace_back(value_given(options, row));
  }
  return arguments;
}

LayoutSearch watched_search(const LayoutRequest& request, const Options& options,
                            LayoutWatch watch) {
  const Interrupt interrupt;
  const Progress progress(options, "", 0);
  watch.tell = [&](std::size_t done, std::size_t left) {
    progress.within(fmt::format("{} layouts simulated, at most {} to go", done, left));
  };
  watch.is_stopped = [&] { return interrupt.came(); };
  return search_layouts(request, watch);
}

LayoutSearch recorded_search(const LayoutRequest& request, const Options& options) {
  SearchRecords records(records_path(*options.records, request.part),
                        {.version = program_build(),
                         .question = question_of(request),
                         .part = request.part,
                         .arguments = arguments_of(options),
                         .rows = {}});
  LayoutSearch search =
      watched_search(request, options,
                     {.tell = {},
                      .is_stopped = {},
                      .known = [&](const std::string& key) { return records.find(key); },
                      .keep = [&](const FoundLayout& made) { records.add(made); }});
  if (!search.is_stopped) records.finish();
  return search;
}

Result result_of(const LayoutSearch& search, const Options& asked, const Options& shown) {
  const LayoutRequest& request = search.request;
  const auto command = [&](const MeshLayout& layout) {
    return command_for(request, layout, asked);
  };
  Result result{print_search(search, command, format_of(shown, for_search), style_of(shown)),
                notes_on(request.scenario), ExitCode::Ok};
  if (search.is_stopped && !search.found.empty())
    result.notes += "stopped: the best that was found by then\n";
  if (request.part.count > 1)
    result.notes += fmt::format("part {} of a search: tidemark search merge unites the files\n",
                                to_text(request.part));
  if (shown.require_fit && search.found.empty()) result.exit_code = ExitCode::DoesNotFit;
  return result;
}

// The files say what was asked; how it is shown is said anew.
void require_nothing_asked(const Options& options) {
  for (const OptionRow& row : option_table()) {
    const bool is_shown = row.group == "output" || long_name(row) == "--require-fit";
    if (!is_shown && is_given(options, row))
      throw UsageError(
          fmt::format("search merge asks what its files say (leave {} out)", long_name(row)));
  }
}

// What all parts have simulated stands in their files; the search over it is that of one run.
Result run_merge(const Options& options) {
  if (options.files.empty())
    throw UsageError("search merge: no files (name those that --records has written)");
  require_nothing_asked(options);
  const LayoutRecords all = merged_records(options.files);
  if (all.version != program_build())
    throw InputError(fmt::format("{}: is of tidemark {}, and this is {} (merge with that one)",
                                 printable(options.files.front(), 200), printable(all.version, 40),
                                 program_build()));
  std::vector<std::string> texts = {"tidemark"};
  texts.insert(texts.end(), all.arguments.begin(), all.arguments.end());
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  const Options asked =
      parse_command_line(static_cast<int>(pointers.size()), pointers.data()).options;
  const LayoutRequest request = search_request(asked);
  if (question_of(request) != all.question)
    throw InputError(fmt::format(
        "{}: was asked of a model, device or cluster that is another one here (merge where its "
        "files are as they were)",
        printable(options.files.front(), 200)));
  const auto known = [&](const std::string& key) {
    const auto found = all.rows.find(key);
    return found == all.rows.end() ? nullptr : &found->second;
  };
  return result_of(
      watched_search(request, options, {.tell = {}, .is_stopped = {}, .known = known, .keep = {}}),
      asked, options);
}

}  // namespace

Result run_search(const Options& options) {
  format_of(options, for_search);  // refused before minutes are spent
  if (options.subject == "merge") return run_merge(options);
  if (!options.files.empty())
    throw UsageError(fmt::format("{} is one operand too many (usage: tidemark search MODEL)",
                                 tidemark::quoted(options.files.front())));
  if (options.part && !options.records)
    throw UsageError("--part: what a part finds is for merge (add --records FILE)");
  LayoutRequest request = search_request(options);
  if (options.part) request.part = search_part(*options.part);
  const LayoutSearch search =
      options.records ? recorded_search(request, options) : watched_search(request, options, {});
  return result_of(search, options, options);
}

}  // namespace tidemark::cli
