#include "cli/commands.h"

namespace tidemark {
namespace {

constexpr std::string_view model_text =
    "MODEL is a preset (tidemark models lists them), the path of a Hugging Face config.json or of "
    "its folder, or a trace file (.trace.json or .trace.json.zst), which describes a whole step "
    "and so takes no options of the step.";

void add_reports(std::vector<Command>& rows) {
  rows.push_back(
      {"compare",
       "MODEL",
       "what each strategy needs, saves and costs",
       model_text,
       {{"tidemark compare vit-b-16 --batch 64 --precision amp-fp16", "the what-if table"},
        {"tidemark compare llama-7b -b 4 --precision bf16 --tuning lora:r=8,targets=q,v -d "
         "rtx-4090",
         "adapters on an RTX 4090"},
        {"tidemark compare swin-t -b 128 --strategies vanilla,checkpoint:every=2,pareprop "
         "--max-batch",
         "three strategies, and the largest batch of each"},
        {"tidemark compare bert-base -b 32 --budget 8GiB --strategies checkpoint --require-fit -q",
         "for scripts: exits with 4 if it does not fit"}},
       for_compare,
       run_compare});
  rows.push_back(
      {"explain",
       "MODEL [TENSOR|OP]",
       "where the peak is, who is alive there, what each decision buys",
       "With the name of a tensor or an op: what it is, who needs it, what was decided about it "
       "and when it lives.",
       {{"tidemark explain vit-b-16 -b 64 --strategy checkpoint", "the peak, with a picture"},
        {"tidemark explain vit-b-16 -b 64 --strategy checkpoint blocks.3.mlp.gelu",
         "one op and its output"},
        {"tidemark explain vit-b-16 --framework torch-1.13 --attention math --saved",
         "the saved tensors, grouped as in an autograd graph"}},
       for_explain,
       run_explain});
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
       run_trace});
  rows.push_back(
      {"allocator",
       "SCRIPT",
       "run an allocation script through the model of PyTorch's caching allocator",
       "One operation per line: 'a ID BYTES STREAM' allocates, 'f ID' frees, 'r ID STREAM' records "
       "a stream, 'e STREAM' completes its events, 'c' empties the cache; before them 'cap BYTES', "
       "'conf SETTINGS' and 'frac SHARE'. Each answers with one line of counters. SCRIPT may be - "
       "for standard input.",
       {{"tidemark allocator script.txt", "one line of counters per operation"},
        {"echo 'a 1 5242880 0' | tidemark allocator -", "5 MiB take a segment of 20 MiB"}},
       for_allocator,
       run_allocator});
}

void add_lists(std::vector<Command>& rows) {
  rows.push_back({"devices",
                  "[NAME]",
                  "the cards, and where each of their figures comes from",
                  "NAME is a card or the path of a device file.",
                  {{"tidemark devices", "all"},
                   {"tidemark devices h100", "every figure with its source"},
                   {"tidemark devices h100 --format json > my.json", "to begin a device file"}},
                  for_devices,
                  run_devices});
  rows.push_back({"models",
                  "[NAME]",
                  "the models that need no config file",
                  "NAME is a preset, a config.json or its folder.",
                  {{"tidemark models", "all"}, {"tidemark models swin-t", "its config"}},
                  for_models,
                  run_models});
  rows.push_back({"strategies",
                  "[NAME]",
                  "the ways of saving memory",
                  "Strategies are combined with +, and take options after a colon.",
                  {{"tidemark strategies", "all"},
                   {"tidemark strategies checkpoint", "its options and what it combines with"}},
                  for_strategies,
                  run_strategies});
  rows.push_back({"frameworks",
                  "[NAME]",
                  "whose rules decide what is cast and kept",
                  "",
                  {{"tidemark frameworks", "all"}, {"tidemark frameworks paper", "its rules"}},
                  for_frameworks,
                  run_frameworks});
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> rows = [] {
    std::vector<Command> made;
    add_reports(made);
    add_files(made);
    add_lists(made);
    return made;
  }();
  return rows;
}

}  // namespace tidemark
