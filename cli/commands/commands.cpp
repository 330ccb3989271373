// The table of commands: name, operands, help, examples and the function that runs each.
#include "cli/commands/commands.h"

#include "cli/commands/completion.h"
#include "simulator/cost/device.h"
#include "simulator/parallel/cluster.h"
#include "simulator/strategies/strategy.h"
#include "traces/presets.h"

namespace tidemark::cli {
namespace {

constexpr std::string_view compare_text =
    "MODEL is a preset (tidemark models lists them), the path of a Hugging Face config.json or of "
    "its folder, or a trace file (.trace.json or .trace.json.zst), which describes a whole step "
    "and so takes no options of the step. --batch, --sequence, --image and --device take several "
    "values, 8,16,32 or 8:64:8 or 8:256:x2, and every combination is compared. MFU, model FLOPs "
    "utilization, is the FLOP of the network's matrix products, forward and backward without any "
    "recomputation, divided by the time of the step and by the device's nominal rate for the "
    "precision (arXiv 2204.02311, appendix B).";

std::vector<std::string> model_names() { return name_texts(known_models()); }
std::vector<std::string> device_names() { return name_texts(known_devices()); }
std::vector<std::string> cluster_names() { return name_texts(known_clusters()); }
std::vector<std::string> strategy_names() { return name_texts(strategies()); }
std::vector<std::string> framework_names() { return name_texts(frameworks()); }
std::vector<std::string> shell_names() { return name_texts(shells()); }

void add_reports(std::vector<Command>& rows) {
  rows.push_back(
      {"compare",
       "MODEL",
       "what each strategy needs, saves and costs",
       compare_text,
       {{"tidemark compare vit-b-16 --batch 64 --precision amp-fp16", "the what-if table"},
        {"tidemark compare llama-7b -b 4 --precision bf16 --tuning lora:r=8,targets=q,v -d "
         "rtx-4090",
         "adapters on an RTX 4090"},
        {"tidemark compare swin-t -b 64 -d rtx-4090 --strategies "
         "vanilla,checkpoint:every=2,pareprop --max-batch",
         "three strategies, and the largest batch of each"},
        {"tidemark compare vit-b-16 -b 64 --precision amp-fp16 -o report.html",
         "a page to pass around: tables, pictures and what the numbers assume"},
        {"tidemark compare vit-b-16 -b 8:256:x2 -d a100-80gb,h100 --strategies vanilla,pareprop",
         "a sweep over batches and devices"},
        {"tidemark compare gpt2 -b 4 --precision bf16 --mesh pp=4 --accumulate 16 --schedule "
         "interleaved:v=3",
         "four pipeline stages, of three chunks each"},
        {"tidemark compare llama-3.2-1b -b 4 --precision bf16 --framework torch-compile-2.6",
         "under torch.compile"},
        {"tidemark compare bert-base -b 32 --budget 8GiB --strategies checkpoint --require-fit -q",
         "for scripts: exits with 4 if it does not fit"}},
       for_compare,
       run_compare,
       model_names});
  rows.push_back(
      {"explain",
       "MODEL [TENSOR|OP]",
       "where the peak is, who is alive there, what each decision buys",
       "With the name of a tensor or an op: what it is, who needs it, what was decided about it "
       "and when it lives. MODEL may be a memory snapshot of PyTorch (docs/recordings.md): where "
       "its peak is, the pool with its gaps, and the stacks that allocated what is in use.",
       {{"tidemark explain vit-b-16 -b 64 --strategy checkpoint", "the peak, with a picture"},
        {"tidemark explain vit-b-16 -b 64 --strategy checkpoint blocks.3.mlp.gelu",
         "one op and its output"},
        {"tidemark explain vit-b-16 -b 64 --strategy pareprop -o step.svg",
         "memory over time, streams, and who is alive at the peak"},
        {"tidemark explain vit-b-16 -b 64 --strategy pareprop --format chrome -o step.json",
         "the same for Perfetto (ui.perfetto.dev)"},
        {"tidemark explain vit-b-16 -b 64 --strategy checkpoint --graph block.dot",
         "what a block reads, writes and recomputes; dot -Tsvg block.dot draws it"},
        {"tidemark explain vit-b-16 --framework torch-1.13 --attention math --saved",
         "the saved tensors, grouped as in an autograd graph"}},
       for_explain,
       run_explain,
       model_names});
}

void add_plan(std::vector<Command>& rows) {
  rows.push_back(
      {"plan",
       "MODEL",
       "the fastest plan that keeps to a memory budget, and how far from the best it can be",
       "Decides for each tensor that blocks save whether it is kept or computed again, so that the "
       "step's peak stays within --budget (without: so that the step fits on the device) and takes "
       "the least time; gradients stay as they are, bit by bit. Ctrl-C shows the "
       "best plan so far. docs/planning.md says how, and what the proof says.",
       {{"tidemark plan llama-7b -b 4 --precision bf16 --tuning lora:r=8,targets=q,v --budget "
         "22GiB",
         "what to recompute, and what that costs"},
        {"tidemark plan gpt2 -b 16 --max-slowdown 5%", "the least memory for 5 % more time"},
        {"tidemark plan vit-b-16 -b 64 --budget 4GiB --plan-out vit.plan.json",
         "a file for --plan of other commands"},
        {"tidemark plan bert-large -b 32 --front -o front.svg", "what every budget costs"},
        {"tidemark plan gpt2 -b 16 --budget 12GiB --allow lossy --max-gradient-error 1%",
         "codes and other operators, but gradients within 1 % of exact ones"},
        {"tidemark plan bert-large -b 32 --allow anything -o plan.html",
         "the same for three classes of plans, with a slider along each front"}},
       for_plan,
       run_plan,
       model_names});
}

void add_search(std::vector<Command>& rows) {
  rows.push_back(
      {"search",
       "MODEL | merge FILE…",
       "the layouts over many GPUs that fit, the fastest first",
       "Tries every mesh of data-, tensor- and pipeline-parallel ranks that the GPUs, the model "
       "and "
       "the global batch allow, with each micro-batch, schedule, sharding and strategy. What "
       "cannot "
       "fit or cannot be among the answers by lower bounds is not simulated. Shown are the fastest "
       "and those that need less memory than any faster one, each with the command that repeats it "
       "and with what Megatron-LM, torchtitan or accelerate are told to run it. Ctrl-C shows the "
       "best so far. A search is cut into parts for many machines with --part, and merge shows "
       "what "
       "all of them found, as one run would. docs/parallel.md says how.",
       {{"tidemark search llama-7b --gpus 64 --cluster dgx-h100 --precision bf16 --master-weights",
         "one sample per GPU and step"},
        {"tidemark search gpt2 --gpus 8 --cluster dgx-h100 --global-batch 64 --shard fsdp2 "
         "--strategies vanilla,checkpoint",
         "with one sharding"},
        {"tidemark search llama-7b --gpus 16 --cluster dgx-a100 --global-batch 64 --precision bf16 "
         "--top 5 --format csv",
         "with the commands of every row"},
        {"tidemark search gpt2 --gpus 64 --cluster dgx-h100 --part 1/2 --records gpt2.jsonl -q",
         "half of it, on one machine"},
        {"tidemark search gpt2 --gpus 64 --cluster dgx-h100 --part 2/2 --records gpt2.jsonl -q",
         "the other half, on another"},
        {"tidemark search merge gpt2.1-of-2.jsonl gpt2.2-of-2.jsonl", "both, in any order"}},
       for_search,
       run_search,
       model_names});
}

void add_check(std::vector<Command>& rows) {
  rows.push_back(
      {"check",
       "[FILE]",
       "fail when the memory of a listed experiment is not what it was",
       "FILE (tidemark.json unless named) lists experiments and holds what they gave when it was "
       "last updated; docs/check.md describes it. Whatever differs by more than its margin, in "
       "either direction, is told with the tensors that changed at the peak, and exits with 3. "
       "Formats: table, json, markdown, github (annotations), junit, sarif, customSmallerIsBetter "
       "(github-action-benchmark) and bmf (Bencher).",
       {{"tidemark check --update", "run what tidemark.json lists, and record the numbers in it"},
        {"tidemark check", "run it again, and compare"},
        {"tidemark check --format github --also junit=check.xml,markdown=summary.md",
         "in a workflow: annotations, a report for the CI system and a summary"}},
       for_check,
       run_check});
}

void add_view(std::vector<Command>& rows) {
  rows.push_back(
      {"view",
       "[MODEL|FILE…]",
       "the interactive timeline: streams, memory, and what-if while you look",
       "With a MODEL (as compare takes it) the step is predicted, and every input can be changed "
       "in "
       "the window. FILEs are timelines (.timeline.json or .timeline.json.zst) and memory "
       "snapshots and profiles of PyTorch, exports of Nsight Systems (.sqlite), and recorded runs "
       "(tidemark record). Two strategies or two files are compared. A session (NAME.session.json, "
       "by Ctrl + S in the window) goes on "
       "where it was saved, and a check file (tidemark check) opens as a list of experiments. ? in "
       "the window lists keys and mouse.",
       {{"tidemark view vit-b-16 -b 64 --strategy pareprop --screenshot tide.png",
         "a picture, without a display"},
        {"tidemark view vit-b-16 -b 64 --strategies vanilla,checkpoint --screenshot two.png",
         "two strategies on one axis"},
        {"tidemark view monday.session.json", "what a window held"}},
       for_view,
       run_view,
       model_names});
}

void add_diff(std::vector<Command>& rows) {
  rows.push_back(
      {"diff",
       "BEFORE [AFTER]",
       "what differs between two timelines, reports or baselines",
       "BEFORE and AFTER are any two of: timelines (explain or replay --format timeline), reports "
       "(compare, explain or replay --format json), baselines (check --update), memory "
       "snapshots and profiles of PyTorch, and exports of Nsight Systems (.sqlite). A replay's "
       "report alone is compared with itself: predicted and measured. Where a file has many steps, "
       "the one of the other's strategy, device and batch is taken. Rows are matched by name, "
       "blocks of models that name them differently by place, and sorted by the size of the "
       "change.",
       {{"tidemark explain vit-b-16 -b 64 -o vanilla.timeline.json", "one timeline"},
        {"tidemark explain vit-b-16 -b 64 --strategy pareprop -o pareprop.timeline.json.zst",
         "another one"},
        {"tidemark diff vanilla.timeline.json pareprop.timeline.json.zst --top 5",
         "totals, and what changed by category, block, op and role"}},
       for_diff,
       run_diff});
}

void add_files(std::vector<Command>& rows) {
  rows.push_back(
      {"trace",
       "MODEL",
       "make, check and describe trace files",
       "Writes the training step of MODEL as a trace file (docs/trace_format.md says what its "
       "fields mean), or with --info checks and describes one.",
       {{"tidemark trace gpt2 -b 8 -o gpt2.trace.json.zst",
         "a file for every command that takes a "
         "MODEL"},
        {"tidemark trace --info gpt2.trace.json.zst", "its defects, or what it holds"}},
       for_trace,
       run_trace,
       model_names});
  rows.push_back(
      {"capture",
       "SCRIPT.py:FUNCTION|CONFIG",
       "the trace of any PyTorch model, without a GPU",
       "Runs a training step of your own code on a stand-in for the CUDA runtime, in a child "
       "process, and writes its trace: kernels do nothing, weights take no memory, and PyTorch "
       "itself chooses kernels for the device. FUNCTION takes nothing and returns (model, batch), "
       "(model, batch, loss) or (model, batch, loss, optimizer), or a function that does a whole "
       "step of a training loop, optimizer and all. CONFIG is the config.json of a model of "
       "transformers, or its folder: the installed version builds the model, and a batch for it "
       "is made. docs/capture.md says more. Needs Linux, a C compiler, and a Python with PyTorch "
       "built for CUDA (as pip install torch is).",
       {{"tidemark capture train.py:make_step -o step.trace.json",
         "a file for every command that takes a MODEL"},
        {"tidemark capture train.py:make_step --precision amp-bf16 -d h100 -o step.trace.json.zst",
         "with the kernels of an H100"},
        {"tidemark capture config.json -b 4 -s 1024 --precision bf16 -o step.trace.json",
         "a family that tidemark compare does not know"}},
       for_capture,
       run_capture});
  rows.push_back(
      {"record",
       "-- PROGRAM [ARGUMENT…]",
       "a run of your own program on a GPU, as it is",
       "Runs the program and records what its GPU does: kernels, copies, ranges of NVTX and memory "
       "asked of the driver, and with PyTorch every block of its allocator with the stack that "
       "asked for it. The program is not changed, and ends as it would: with its exit code, or by "
       "its signal. Whatever ends it, the recording can be read. view, explain and diff take "
       "it; docs/recording.md says what is in it, and what it costs.",
       {{"tidemark record -o run.timeline -- python train.py --steps 20", "a training run"},
        {"tidemark explain run.timeline", "its kernels, its peak and who made it"},
        {"tidemark view run.timeline", "streams and memory on one axis"}},
       for_record,
       run_record});
  rows.push_back(
      {"allocator",
       "SCRIPT",
       "run an allocation script through the model of PyTorch's caching allocator",
       "One operation per line: 'a ID BYTES STREAM' allocates, 'f ID' frees, 'r ID STREAM' records "
       "a stream, 'e STREAM' completes its events, 'c' empties the cache; before them 'cap BYTES', "
       "'conf SETTINGS' and 'frac SHARE'. BYTES may have a unit (5MiB, 5MB). Each answers with one "
       "line of counters. SCRIPT may be - "
       "for standard input.",
       {{"tidemark allocator script.txt", "one line of counters per operation"},
        {"echo 'a 1 5242880 0' | tidemark allocator -", "5 MiB take a segment of 20 MiB"}},
       for_allocator,
       run_allocator});
}

void add_lists(std::vector<Command>& rows) {
  rows.push_back({"devices",
                  "[NAME]",
                  "the devices, and where each of their figures comes from",
                  "NAME is a device or the path of a device file.",
                  {{"tidemark devices", "all"},
                   {"tidemark devices h100", "every figure with its source"},
                   {"tidemark devices h100 --format json > my.json", "to begin a device file"}},
                  for_devices,
                  run_devices,
                  device_names});
  rows.push_back(
      {"clusters",
       "[NAME]",
       "what joins the GPUs of a job, and where each figure comes from",
       "NAME is a cluster or the path of a cluster file.",
       {{"tidemark clusters", "all"},
        {"tidemark clusters dgx-h100", "every figure with its source"},
        {"tidemark clusters dgx-h100 --format json > my.json", "to begin a cluster file"}},
       for_clusters,
       run_clusters,
       cluster_names});
  rows.push_back({"models",
                  "[NAME]",
                  "the models that need no config file",
                  "NAME is a preset, a config.json or its folder.",
                  {{"tidemark models", "all"}, {"tidemark models swin-t", "its config"}},
                  for_models,
                  run_models,
                  model_names});
  rows.push_back({"strategies",
                  "[NAME]",
                  "the ways of saving memory",
                  "Strategies are combined with +, and take options after a colon.",
                  {{"tidemark strategies", "all"},
                   {"tidemark strategies checkpoint", "its options and what it combines with"}},
                  for_strategies,
                  run_strategies,
                  strategy_names});
  rows.push_back({"frameworks",
                  "[NAME]",
                  "whose rules decide what is cast and kept",
                  "",
                  {{"tidemark frameworks", "all"}, {"tidemark frameworks paper", "its rules"}},
                  for_frameworks,
                  run_frameworks,
                  framework_names});
}

void add_completion(std::vector<Command>& rows) {
  rows.push_back({"completion",
                  "bash|zsh|fish",
                  "the script with which a shell completes commands, options and names",
                  "For bash, source it from .bashrc; for zsh, write it as _tidemark into a folder "
                  "of fpath; for fish, into ~/.config/fish/completions/tidemark.fish.",
                  {{"tidemark completion bash > tidemark.bash", "to source from .bashrc"}},
                  for_completion,
                  run_completion,
                  shell_names});
}

}  // namespace

void add_runs(std::vector<Command>& rows) {
  rows.push_back(
      {"replay",
       "MODEL",
       "run the step on real kernels, predicted beside measured",
       "The same schedule that the reports simulate is executed in an arena of the planned size: "
       "real values, real gradients, real streams. Ctrl-C stops after the step that runs and shows "
       "what was measured. Without --device the backend is measured first, which takes a second.",
       {{"tidemark replay vit-s-16 --image 64 -b 2 --strategy pareprop",
         "on this machine's processor, two streams on two cores"},
        {"tidemark replay llama-7b --backend null --strategy checkpoint",
         "nothing computed: the schedule's times and memory alone"},
        {"tidemark replay vit-ti-16 --image 64 -b 2 --strategy mesa --format json -o mesa.json",
         "for programs, and for tidemark check"},
        {"tidemark diff mesa.json", "what it predicted, and what it measured"}},
       for_replay,
       run_replay,
       model_names});
  rows.push_back(
      {"calibrate",
       "",
       "measure a backend and write a device file for predictions",
       "Measures bandwidth, matrix products, kernels beside each other and every kind "
       "of kernel in the steps of small networks; then predicts other networks and says "
       "how far off it was. Takes a few minutes: in fp32, bf16 and both mixed precisions, "
       "with --precision in that one alone. Where a GPU is not at hand, but steps were timed "
       "on it (--from), what products, memory, fused attention and the host reach is fitted to "
       "them.",
       {{"tidemark calibrate -o here.json", "this machine's processor"},
        {"tidemark calibrate --backend cuda --precision bf16 -o h100.json",
         "its GPU, for steps in bf16"},
        {"tidemark calibrate --from runs.json -o our-h100.json", "rates that explain timed steps"},
        {"tidemark compare llama-3-8b -d our-h100.json", "predicted with them"},
        {"tidemark replay vit-b-16 --image 64 -b 4 -d here.json", "a replay predicted with it"}},
       for_calibrate,
       run_calibrate});
}

const std::vector<Command>& commands() {
  static const std::vector<Command> rows = [] {
    std::vector<Command> made;
    add_reports(made);
    add_plan(made);
    add_search(made);
    add_check(made);
    add_diff(made);
    add_runs(made);
    add_view(made);
    add_files(made);
    add_lists(made);
    add_completion(made);
    return made;
  }();
  return rows;
}

}  // namespace tidemark::cli
