// The rows of the option table by group, and the way back: options as they would be typed.
#include "cli/commands/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/planning/planning.h"
#include "cli/commands/formats.h"
#include "cli/text/terminal.h"
#include "profiler/backends.h"
#include "simulator/parallel/cluster.h"
#include "simulator/schedule.h"
#include "simulator/strategies/strategy.h"

namespace tidemark::cli {
namespace {

constexpr std::uint32_t for_steps = for_compare | for_explain | for_trace | for_plan;
constexpr std::uint32_t for_reports = for_compare | for_explain | for_plan | for_search;
constexpr std::uint32_t for_runs = for_replay | for_calibrate;
constexpr std::uint32_t for_all =
    for_steps | for_search | for_allocator | for_lists | for_check | for_diff | for_runs;

// What a script says by what it returns, and a config.json does not.
bool is_captured(const StepField& field) {
  constexpr std::array<std::string_view, 9> keys = {"batch",     "sequence",  "target_sequence",
                                                    "image",     "head",      "padded",
                                                    "precision", "attention", "optimizer"};
  return std::ranges::find(keys, field.key) != keys.end();
}

// What a search decides, and does not ask for.
bool is_searched(const StepField& field) {
  return field.key == "accumulate" || field.key == "rank";
}

void add_step(std::vector<OptionRow>& rows) {
  for (const StepField& field : step_fields())
    for (const StepSwitch& option : field.switches)
      rows.push_back({"step", option.names, option.value, StepMember{option.text, &field},
                      for_steps | for_view | for_replay | (is_captured(field) ? for_capture : 0u) |
                          (field.key == "precision" ? for_calibrate : 0u) |
                          (is_searched(field) ? 0u : for_search),
                      option.help});
  rows.push_back(
      {"step", "--gpus", "N", &Options::gpus, for_reports | for_trace | for_view,
       "how many GPUs the job has: without --mesh all are replicas (dp), with it its "
       "product has to be N; a search lays the step out over them, with cp and etp of a --mesh in "
       "every layout"});
  rows.push_back({"step", "--global-batch", "N", &Options::global_batch, for_search,
                  "samples per step of all GPUs together (default: one for each); --batch, --sp, "
                  "--schedule and --shard, where they are given, are those of every layout"});
}

void add_device(std::vector<OptionRow>& rows) {
  rows.push_back(
      {"device", "-d,--device", "NAME", &Options::device,
       for_reports | for_view | for_replay | for_capture,
       "the device, or a device file (default a100-80gb, for a replay the backend itself; see "
       "tidemark devices)",
       nullptr, [] { return name_texts(known_devices()); }});
  rows.push_back({"device", "--cluster", "NAME", &Options::cluster, for_reports | for_view,
                  "what joins the GPUs of a --mesh, or a cluster file; the device is then the "
                  "cluster's, or a --device that was measured of it (default: the first of the "
                  "device, see tidemark clusters)",
                  nullptr, [] { return name_texts(known_clusters()); }});
  rows.push_back({"device", "--budget", "SIZE", &Options::budget, for_reports | for_view,
                  "memory for tensors: 20GiB, 20G, or 24GB in decimal units (default: the "
                  "device's, less a CUDA context)"});
  rows.push_back({"device", "--alloc-conf", "TEXT", &Options::alloc_conf, for_reports | for_view,
                  "settings of the caching allocator, written as for PYTORCH_CUDA_ALLOC_CONF (the "
                  "variable itself is not read)"});
}

void add_scenario(std::vector<OptionRow>& rows) {
  rows.push_back(
      {"scenario", "--strategies,--strategy", "LIST", &Options::strategies,
       for_compare | for_explain | for_view | for_replay | for_search,
       "the strategy, of compare, search and view also several: names combined with +, options "
       "after a "
       "colon, commas between, as in vanilla,checkpoint:every=2,mesa+checkpoint (default vanilla; "
       "compare and search have lists of their own). A piece that is an option of the strategy "
       "before it "
       "continues that one",
       nullptr, [] { return name_texts(strategies()); }});
  rows.push_back({"scenario", "--plan", "FILE", &Options::plan,
                  for_compare | for_explain | for_view | for_replay,
                  "a plan file (docs/plan_format.md) in place of a strategy; of compare and view "
                  "also several, with commas between or the option again, beside the strategies",
                  nullptr, nullptr, true});
  rows.push_back({"scenario", "--plan-out", "FILE", &Options::plan_out, for_explain | for_plan,
                  "also write what is decided as a plan file, FILE.plan.json, to edit and "
                  "to use with --plan"});
  rows.push_back({"scenario", "--plan-budget", "SIZE", &Options::plan_budget, for_compare,
                  "also compare the plan that tidemark plan finds for this budget"});
  rows.push_back(
      {"scenario", "--measure", "NAME", &Options::measure, for_plan | for_explain,
       "what the budget of a plan limits, and what --levers lower: allocated, reserved, planned or "
       "live (default allocated)",
       nullptr, [] { return name_texts(measures); }});
  rows.push_back({"scenario", "--max-slowdown", "PERCENT", &Options::max_slowdown, for_plan,
                  "instead of a budget: the least memory for at most so much more time than "
                  "vanilla, as 10%"});
  rows.push_back(
      {"scenario", "--form", "NAME", &Options::form, for_plan,
       "what a plan decides about: tensors, whole blocks as torch.utils.checkpoint wraps "
       "them, or policy: blocks of which it keeps what chosen calls give (default "
       "tensors)",
       nullptr, [] { return name_texts(plan_forms); }});
  rows.push_back({"scenario", "--forms", "", &Options::forms, for_plan,
                  "also show what the budget costs in each form that PyTorch, transformers, "
                  "torchtune, axolotl, Megatron and JAX let people write, and what to write"});
  rows.push_back({"scenario", "--python-out", "FILE", &Options::python_out, for_plan,
                  "also write a Python file whose apply(model) wraps the blocks of a PyTorch model "
                  "as planned, with --form blocks or policy"});
  rows.push_back(
      {"scenario", "--allow", "LIST", &Options::allow, for_plan,
       "what a plan may do beside keeping and computing again (exact, the default): "
       "offload to the host's memory, overlap (recover on other streams), lossy "
       "(8-bit codes as Mesa, operators of LowMemoryBP), coupled (reversible blocks: "
       "another network), several with commas, or anything (offload and lossy, and codes "
       "of 4 and 2 bits)",
       nullptr, [] { return name_texts(allowances); }});
  rows.push_back(
      {"scenario", "--max-gradient-error", "PERCENT", &Options::max_gradient_error, for_plan,
       "where plans may be lossy: how far from exact ones, as predicted, a plan may take "
       "the gradients, as 5% (default: as far as it likes)"});
  rows.push_back({"scenario", "--host-budget", "SIZE", &Options::host_budget, for_plan,
                  "where plans may offload: how much of the host's memory a plan may take"});
  rows.push_back({"scenario", "--front", "", &Options::front, for_plan,
                  "also show what other budgets would cost, of each class of plans that --allow "
                  "names beside exact ones"});
  rows.push_back({"scenario", "--max-batch", "", &Options::max_batch, for_compare,
                  "find the largest batch up to which every batch fits with each strategy, and the "
                  "largest that fits at all where fragmentation makes them differ"});
  rows.push_back({"scenario", "--units", "", &Options::units, for_compare,
                  "show what a middle block saves by kind of op, in units of one 16-bit tensor "
                  "[batch, tokens, width] (always with --framework paper)"});
  rows.push_back({"scenario", "--top", "N", &Options::top, for_explain | for_diff | for_search,
                  "how many rows to list of tensors alive at the peak, or of each table of "
                  "differences (default 12), or of the fastest layouts (default 20)"});
  rows.push_back({"scenario", "--part", "I/N", &Options::part, for_search,
                  "only the I-th of N parts of the layouts, 1/7 to 7/7, for as many machines; auto "
                  "takes I and N from the variables of a Slurm array, Open MPI, PMI or Slurm's "
                  "tasks. With --records"});
  rows.push_back(
      {"scenario", "--records", "FILE", &Options::records, for_search,
       "keep what is simulated in FILE (r.jsonl; of the first of seven parts r.1-of-7.jsonl), "
       "go on where it ends, and let tidemark search merge unite the parts"});
  rows.push_back({"scenario", "--saved", "", &Options::saved, for_explain,
                  "list the saved tensors in groups, as an autograd graph would"});
  rows.push_back({"scenario", "--levers", "", &Options::levers, for_explain,
                  "list what would lower this peak: strategies, plans and options of the step, "
                  "each tried, best first"});
  rows.push_back({"scenario", "--beside", "FILE", &Options::beside, for_explain,
                  "why a run needed more or less than this prediction: a memory snapshot, a "
                  "profile, a recorded run or a timeline, its blocks matched with the tensors"});
  rows.push_back({"scenario", "--graph", "FILE", &Options::graph, for_explain,
                  "write the joint graph of a middle block, or of the TENSOR, OP or block named, "
                  "instead: .dot for graphviz or .json (docs/graph_format.md)"});
  rows.push_back({"scenario", "--block", "N", &Options::block, for_explain,
                  "which block --graph shows, from 0, or all for the whole step"});
  rows.push_back({"scenario", "--require-fit", "", &Options::require_fit, for_reports,
                  "exit with 4 if nothing shown fits"});
  rows.push_back({"scenario", "--info", "FILE", &Options::info, for_trace,
                  "check a trace file and describe it"});
}

void add_check(std::vector<OptionRow>& rows) {
  rows.push_back(
      {"check", "--update", "", &Options::update, for_check,
       "run the experiments and record what they give; nothing else of the file changes"});
  rows.push_back({"check", "--init", "", &Options::init, for_check,
                  "write a first tidemark.json: the models of its folder, as an example to edit"});
  rows.push_back({"check", "--allow-new", "", &Options::allow_new, for_check,
                  "do not fail because of experiments that have no numbers yet"});
  rows.push_back({"check", "--also", "LIST", &Options::also, for_check,
                  "further reports of the same run: FORMAT=FILE, separated by commas"});
}

void add_run(std::vector<OptionRow>& rows) {
  const auto add = [&](auto names, auto value, auto member, std::uint32_t verbs, auto help,
                       auto... more) {
    rows.push_back({"run", names, value, member, verbs, help, more...});
  };
  const auto backend_names = [] { return name_texts(profiler::backends()); };
  add("--backend", "NAME", &Options::backend, for_replay | for_calibrate,
      "cpu, cuda or null, which computes nothing and takes the predicted time (default cpu)",
      nullptr, backend_names);
  add("--from", "FILE", &Options::timed, for_calibrate,
      "measure nothing, but fit a known device's rates to the steps in the file, which were timed: "
      "{\"format\": \"tidemark-timed-steps\", \"version\": 1, \"steps\": [{\"compare\": \"gpt2 -b "
      "8\", "
      "\"seconds\": 0.21}]}, each as tidemark compare is asked about it");
  add("--replay", "NAME", &Options::replay, for_compare,
      "run every strategy on this backend, too: cpu, cuda or null; predicted beside measured",
      nullptr, backend_names);
  add("--steps", "N", &Options::steps, for_replay, "steps to time, after one more (default 5)");
  add("--seed", "N", &Options::seed, for_replay,
      "parameters, synthetic data and dropout follow from it (default 1)");
  add("--data", "FILE", &Options::data, for_replay,
      "real data: text, whose bytes become tokens, or images as records of a label byte and the "
      "pixels, as in CIFAR-10's binary version (default: synthetic)");
  add("--no-check", "", &Options::no_check, for_replay,
      "do not compare the gradients with those of a step that keeps everything");
}

void add_capture(std::vector<OptionRow>& rows) {
  rows.push_back({"capture", "--python", "FILE", &Options::python, for_capture,
                  "the Python that has PyTorch (default: that of the virtual environment, or "
                  "python3)"});
  rows.push_back({"capture", "--beside-gpu", "", &Options::beside_gpu, for_capture,
                  "although this machine has a GPU, which is not used"});
}

void add_window(std::vector<OptionRow>& rows) {
  rows.push_back({"window", "--screenshot", "FILE", &Options::screenshot, for_view,
                  "write a picture (.png or .svg) instead of opening a window; needs no display"});
  rows.push_back({"window", "--size", "WxH", &Options::size, for_view,
                  "pixels of the window or picture (default 1280x800, or as it was last)"});
  rows.push_back({"window", "--scale", "F", &Options::scale, for_view,
                  "size of text and lines, from 0.5 to 4 (default: the screen's; 1 in pictures)"});
  rows.push_back({"window", "--script", "FILE", &Options::script, for_view,
                  "play mouse and keys from a file, then close (docs/gui.md says how)"});
  rows.push_back({"window", "--in-window", "", &Options::in_window, for_view,
                  "with --script and --screenshot: play and draw in a window all the same"});
}

void add_output(std::vector<OptionRow>& rows) {
  rows.push_back({"output", "--format", "NAME", &Options::format,
                  for_reports | for_lists | for_check | for_diff | for_replay, "how it is written",
                  describe_formats});
  rows.push_back(
      {"output", "-o,--output", "FILE", &Options::output,
       for_all | for_completion | for_capture | for_record,
       "write to a file, which is replaced only when all is written. Its name says the format, "
       "unless --format does"});
  rows.push_back({"output", "--color", "WHEN", &Options::color,
                  for_reports | for_lists | for_check | for_diff | for_replay,
                  "auto, always or never (default auto: on a terminal, unless NO_COLOR is set)",
                  nullptr, when_names});
  rows.push_back({"output", "-q,--quiet", "", &Options::quiet, for_all | for_capture | for_record,
                  "no progress and no notes on standard error"});
}

bool is_safe(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:,=+@%").find(c) != std::string_view::npos;
}

}  // namespace

const std::vector<OptionRow>& option_table() {
  static const std::vector<OptionRow> rows = [] {
    std::vector<OptionRow> made;
    add_step(made);
    add_device(made);
    add_scenario(made);
    add_check(made);
    add_run(made);
    add_capture(made);
    add_window(made);
    add_output(made);
    return made;
  }();
  return rows;
}

std::string_view long_name(const OptionRow& row) { return long_name(row.names); }

namespace {
// Of PyTorch's own optimizers, those that a capture makes by their names.
bool is_optimizer_of_capture(const OptionRow& row, std::uint32_t verbs) {
  return verbs == for_capture && row.names == "--optimizer";
}
}  // namespace

std::string help_of(const OptionRow& row, std::uint32_t verbs) {
  if (is_optimizer_of_capture(row, verbs))
    return "adamw, adam or sgd (default adamw), where FUNCTION returns no optimizer";
  if (!row.details) return std::string(row.help);
  return fmt::format("{}: {}", row.help, row.details(verbs));
}

std::vector<std::string> choices_of(const OptionRow& row, VerbBit command) {
  if (is_optimizer_of_capture(row, command)) return {"adamw", "adam", "sgd"};
  if (const auto* step = std::get_if<StepMember>(&row.member)) {
    const auto names = step->field->choices(), beginnings = step->field->beginnings();
    const auto& offered = names.empty() ? beginnings : names;
    return {offered.begin(), offered.end()};
  }
  if (row.details) return format_names(command);
  return row.choices ? row.choices() : std::vector<std::string>();
}

bool is_given(const Options& options, const OptionRow& row) {
  return std::visit(Overload{[&](TextMember text) { return (options.*text).has_value(); },
                             [&](FlagMember flag) { return options.*flag; },
                             [&](StepMember) { return options.step.contains(long_name(row)); }},
                    row.member);
}

std::string_view value_given(const Options& options, const OptionRow& row) {
  return std::visit(
      Overload{[&](TextMember text) { return std::string_view(*(options.*text)); },
               [&](FlagMember) { return std::string_view(); },
               [&](StepMember) { return std::string_view(options.step.at(long_name(row))); }},
      row.member);
}

std::string as_typed(const Options& options, std::string_view group) {
  std::string typed;
  for (const OptionRow& row : option_table()) {
    if (row.group != group || !is_given(options, row)) continue;
    typed.append(" ").append(long_name(row));
    if (!row.value.empty()) typed += " " + shell_quoted(value_given(options, row));
  }
  return typed;
}

std::string shell_quoted(std::string_view argument) {
  if (!argument.empty() && std::ranges::all_of(argument, is_safe)) return std::string(argument);
  std::string quoted = "'";
  for (const char c : argument) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace tidemark::cli
