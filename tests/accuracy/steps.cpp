// Steps that ran in PyTorch's own allocator: how far each prediction is off, and why the worst are.
#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"
#include "tests/accuracy/page.h"
#include "tests/support/measured_steps.h"

namespace tidemark {
namespace {

struct Number {
  const char* name;
  std::int64_t StepBytes::*of;
};

constexpr std::array numbers = {
    Number{"saved", &StepBytes::saved}, Number{"live", &StepBytes::live},
    Number{"allocated", &StepBytes::allocated}, Number{"reserved", &StepBytes::reserved}};

constexpr const char* what_is_missed =
    "What is missed, and why. *Allocated*: a block that the allocator does not split counts "
    "whole, up to 1 MiB more than was asked for, and which request meets which block depends on "
    "all before it; the tensors inside of composed forwards (RMSNorm, rotary positions) are not "
    "among those here. *Live*: up to transformers 4.51 and among ranks, masks that fused "
    "attention takes are of one sample and of numbers until a block copies them; in PyTorch they "
    "are truths of each. *Saved*: tables of indices that are buffers of a module (Swin, BERT's "
    "positions) count here and not in the measurement; steps with checkpointing are left out, "
    "because what they keep is held by the checkpoint, not by nodes. Mistral's own code in 4.47 "
    "makes rotary tables per layer (0.3 %). Of the steps drawn by chance "
    "(`scripts/capture_steps/random_cases.py`): T5's first block makes the biases of positions "
    "itself, and its own checkpointing drops them where no second block reads them; here it is "
    "called with them (an encoder of one layer: 12 %, 7 %). Beside its own checkpointing zeros "
    "that are added to scores have gradients there, which lie beside them until the step is over; "
    "here they "
    "are gone when they are complete (1.8 %). "
    "A bare CLIP's mean of words takes a gradient over, where here "
    "a sum lies beside it (0.8 %). Dropping paths divides what it keeps into a "
    "tensor of its own, which lies beside both for a moment (BEiT 1 %). Beside adapters, linears "
    "whose frozen weights read what is not contiguous (SigLIP's pool, PVT v2) copy nothing there "
    "(1.6 %). Of networks of 20 to 60 MiB, blocks that are not split are up to 6 % (*allocated*: "
    "DeBERTa, SigLIP). Swin of transformers 5 checkpoints layers inside of stages, see "
    "[models.md](models.md) (0.6 %). Liger's "
    "loss keeps the gradient of its table from the forward on, which is *saved* there and not "
    "here; its rotation works in place, here its result lies beside what it turns for a moment, "
    "which in networks of 30 to 60 MiB often takes a segment of 20 MiB more (*reserved*). Of "
    "checkpoints that keep by op, those of T5 are 3 % low, of Falcon 2. A tile "
    "of TRL's logits has 32768 columns whatever the vocabulary is, a third of all memory of "
    "these networks; it is a part of one block here, where PyTorch's backward finds that of the "
    "forward free (*reserved*). Compiled steps (`scripts/capture_steps/compiled.py`; *saved* "
    "counts autocast's copies of weights, which their graphs keep): Inductor pads strides of "
    "more than 1024 elements to whole 128 bytes, up to 0.5 % of *saved* at these odd sizes and "
    "nothing at usual ones; one head of keys is a view under autocast (3 %), Falcon's own heads "
    "are copied for a mask (7 to 10 %), Swin's biases are looked up again under autocast (1.6 "
    "%), and of a composed attention of CLIP a mask is not kept (1 %). Which buffer of the "
    "backward Inductor writes over another, and where it parts a fusion, is not followed "
    "(*allocated*, and with segments of 20 MiB *reserved*).";

/// Of a checkpointed step the nodes hold something else than the strategy keeps.
bool is_known(const MeasuredStep& step, const Number& number) {
  if (number.of == &StepBytes::live && step.measured.live == 0) return false;
  return number.of != &StepBytes::saved || step.strategy == "vanilla";
}

// "−0.00" would say nothing that "0.00" does not.
std::string off(const MeasuredStep& step, const Number& number) {
  if (!is_known(step, number)) return "–";
  const double percent = percent_off(step.predicted.*number.of, step.measured.*number.of);
  return std::abs(percent) < 0.005 ? "0.00" : fmt::format("{:+.2f}", percent);
}

/// Median, ninth of ten and worst.
std::string ordered(std::vector<double> distances) {
  std::ranges::sort(distances);
  const std::size_t n = distances.size();
  return fmt::format("{:.2f} · {:.2f} · {:.2f}", distances[n / 2], distances[n * 9 / 10],
                     distances[n - 1]);
}

std::string spread(const std::vector<MeasuredStep>& steps, const Number& number) {
  std::vector<double> distances;
  for (const MeasuredStep& step : steps)
    if (is_known(step, number))
      distances.push_back(
          std::abs(percent_off(step.predicted.*number.of, step.measured.*number.of)));
  return distances.empty() ? "–" : ordered(std::move(distances));
}

}  // namespace

void steps_section(Page& page, const std::string& folder) {
  page.line("## Training steps in PyTorch's own allocator");
  page.line("");
  page.line(
      "`scripts/capture_steps/capture.py` runs eager steps on real CUDA tensors, in PyTorch's "
      "own caching allocator (2.15 where transformers is 5, else 2.6), over a stand-in for the "
      "CUDA runtime: no GPU, and nothing computed. "
      "*Saved*: bytes that backward nodes hold, parameters apart. *Live*: most bytes of storages "
      "in forward and backward. *Allocated*, *reserved*: what the allocator says of the second "
      "step. Small networks of odd sizes, so that constants weigh more than they do in practice. "
      "cuDNN cannot be stood in for: convolutions run without it.");
  page.line("");
  page.line("Off by, in per cent: median · ninth of ten · worst.");
  page.line("");
  page.line("| versions | steps | saved | live | allocated | reserved |");
  page.line("|---|---|---|---|---|---|");
  std::vector<std::pair<std::string, std::vector<MeasuredStep>>> all;
  const auto add = [&](const char* label, const char* file) {
    all.emplace_back(label, measured_steps(fmt::format("{}/steps_{}.json", folder, file)));
  };
  add("transformers-4.57", "transformers-4.57");
  add("transformers-4.57, families that came later", "families");
  add("transformers-5", "transformers-5");
  add("transformers-5, families that came later", "families_transformers-5");
  add("transformers-5, fused attention with learned biases", "shared_attention_transformers-5");
  add("transformers-5, mixtures of experts", "experts_transformers-5");
  add("transformers-5, PyTorch 2.11 on an H200: a GPU, no stand-in", "h200");
  add("transformers-4.51", "transformers-4.51");
  add("transformers-4.47", "transformers-4.47");
  add("transformers-4.57, Liger's kernels", "liger");
  add("transformers-4.57, adapters", "adapters");
  add("transformers-4.57, learned prompts", "prompts");
  add("transformers-4.57, learned prefixes", "prefix");
  add("transformers-5, bases in eight-bit floats", "fp8_base_transformers-5");
  add("transformers-4.57, TRL's pairs", "dpo");
  add("transformers-4.57, other activations than the family's", "activations");
  add("transformers-4.57, checkpoints of small vocabularies", "checkpointed");
  add("transformers-4.57, checkpoints that keep by op", "policy");
  add("transformers-4.57, drawn by chance", "by_chance");
  add("transformers-5, drawn by chance", "by_chance_transformers-5");
  all.emplace_back("torch.compile(model), PyTorch 2.6",
                   compiled_steps(folder + "/steps_compiled.json"));
  all.emplace_back("torch.compile of each block, PyTorch 2.6",
                   compiled_steps(folder + "/steps_compiled_blocks.json"));
  for (const auto& [version, steps] : all)
    page.line("| {} | {} | {} | {} | {} | {} |", version, steps.size(), spread(steps, numbers[0]),
              spread(steps, numbers[1]), spread(steps, numbers[2]), spread(steps, numbers[3]));
  page.line("");
  page.line("{}", what_is_missed);
  page.line("");
  page.line("| step | saved | live | allocated | reserved |");
  page.line("|---|---|---|---|---|");
  for (const auto& [version, steps] : std::span(all).first(2))
    for (const MeasuredStep& step : steps)
      page.line("| {} | {} | {} | {} | {} |", step.name, off(step, numbers[0]),
                off(step, numbers[1]), off(step, numbers[2]), off(step, numbers[3]));
  page.line("");
}

namespace {

std::string bytes_off(std::int64_t predicted, std::int64_t measured) {
  return predicted == measured ? "0 B" : fmt::format("{:+} B", predicted - measured);
}

constexpr auto about_captures =
    "`scripts/capture_models` captures {} training steps of small models of many kinds "
    "([capture.md](capture.md)), most of which Tidemark knows nothing else of, once in PyTorch 2.6 "
    "with transformers 4.57 and once in PyTorch 2.15 with transformers 5.23. The numbers beside "
    "are those of that PyTorch's own allocator in the second of the steps that a capture runs, an "
    "ordinary one; the trace comes from the fourth. *Saved*: what the graph holds when the forward "
    "is over. *Live*: most bytes of storages in forward and backward. *Allocated*, *reserved*: of "
    "the whole step, as they follow from the ops. The calls of PyTorch's allocator that the traces "
    "carry, too, are repeated to the byte: of all these steps both are then off by 0.";

constexpr auto what_captures_miss =
    "What is missed, and why. *Allocated*: a block that the allocator does not split counts whole, "
    "up to 1 MiB more than was asked for, and which request meets which block depends on the order "
    "within an op's backward, which is one run here, where what the op takes meanwhile is one "
    "block "
    "behind its results; weights of such small networks are a few MiB. "
    "PyTorch 2.15 gives workspaces of cuBLAS back with each call, and fewer blocks stay whole. "
    "*Live*: the fused LSTM cell makes one gradient for two inputs, twice, and here each counts. "
    "Convolutions ran without cuDNN, which cannot be stood in for: what it would take is not "
    "known.";

constexpr auto about_compiled =
    "The same numbers of steps under `torch.compile` ([capture.md](capture.md#torchcompile)), {} "
    "in PyTorch 2.6 and {} in 2.15, of models that are compiled as a whole and of one whose blocks "
    "are. Inductor's code ran in PyTorch's allocator, without its kernels. What a graph takes "
    "inside is one temporary here, and many buffers there: which of them meets which free block "
    "differs. Where *allocated* is more than 1 % off, it is blocks that were not split: the same "
    "tensors between steps take 1.3 MiB more in small-amp-bf16 than in fp32. *Reserved*: the one "
    "temporary is larger than what is free, and takes a segment of 20 MiB where many small ones "
    "fit. Replayed, both are off by 0 here, too.";

void list_captures(Page& page, const std::vector<MeasuredStep>& steps) {
  page.line(
      "Off by, in per cent: median · ninth of ten · worst. Saved {}, live {}, allocated {}, "
      "reserved {}.",
      spread(steps, numbers[0]), spread(steps, numbers[1]), spread(steps, numbers[2]),
      spread(steps, numbers[3]));
  page.line("");
  page.line(
      "| step | saved | off | live | off | allocated, MiB | predicted | off, % | reserved, % |");
  page.line("|---|---|---|---|---|---|---|---|---|");
  for (const MeasuredStep& step : steps)
    page.line("| {} | {} | {} | {} | {} | {:.2f} | {:.2f} | {} | {} |", step.name,
              step.measured.saved, bytes_off(step.predicted.saved, step.measured.saved),
              step.measured.live, bytes_off(step.predicted.live, step.measured.live),
              static_cast<double>(step.measured.allocated) / 1048576,
              static_cast<double>(step.predicted.allocated) / 1048576, off(step, numbers[2]),
              off(step, numbers[3]));
  page.line("");
}

constexpr auto about_mem_tracker =
    "PyTorch's own MemTracker (`torch.distributed._tools.mem_tracker`) ran on the same steps, "
    "over the same stand-in, each in a process of its own "
    "(`scripts/capture_models/mem_tracker.py`). It watches storages as operators make them, "
    "rounded to 512 bytes as blocks are, and knows neither what operators take meanwhile nor the "
    "allocator: in networks this small the workspaces of cuBLAS (8 MiB and more) are most of what "
    "it misses. Off by, of *allocated*: median · ninth of ten · worst. Processor seconds are of "
    "whole processes on average, of which imports are 4 to 5. What it could not run: hooks on "
    "what has no gradient, gradients of gradients, and in 2.6 a process that ended.";

/// One row: how far MemTracker is off, how far a capture's ops, and how far its calls.
void beside_mem_tracker(Page& page, const std::string& fixture,
                        const std::vector<MeasuredStep>& steps) {
  const JsonDocument document = read_json(fixture, FileKind::TrainingData);
  std::vector<double> tracked, captured, replayed;
  double seconds = 0, capture_seconds = 0;
  for (const JsonView row : document.root().at("steps").items()) {
    const auto peak = row.find("peak");
    if (!peak) continue;
    const auto step = std::ranges::find(steps, row.at("name").text(), &MeasuredStep::name);
    CHECK(step != steps.end() && step->replayed);
    const auto add = [&](std::vector<double>& distances, std::int64_t bytes) {
      distances.push_back(std::abs(percent_off(bytes, step->measured.allocated)));
    };
    add(tracked, peak->integer());
    add(captured, step->predicted.allocated);
    add(replayed, step->replayed->allocated);
    seconds += row.at("seconds").number(0, 1e6);
    capture_seconds += row.at("capture_seconds").number(0, 1e6);
  }
  const auto count = static_cast<double>(tracked.size());
  page.line("| {} | {} of {} | {} | {} | {} | {:.1f} | {:.1f} |",
            document.root().at("torch").text(), tracked.size(), steps.size(), ordered(tracked),
            ordered(captured), ordered(replayed), seconds / count, capture_seconds / count);
}

}  // namespace

void captured_section(Page& page, const std::string& folder) {
  const std::vector<MeasuredStep> before = captured_steps(folder + "/captures");
  const std::vector<MeasuredStep> newest = captured_steps(folder + "/captures_torch-2.15");
  page.line("## Captured models");
  page.line("");
  page.line(about_captures, before.size());
  page.line("");
  page.line("{}", what_captures_miss);
  page.line("");
  page.line("### In PyTorch 2.15");
  page.line("");
  list_captures(page, newest);
  page.line("### In PyTorch 2.6");
  page.line("");
  list_captures(page, before);
  const std::vector<MeasuredStep> compiled = captured_steps(folder + "/captures_compiled");
  const std::vector<MeasuredStep> compiled_newest =
      captured_steps(folder + "/captures_compiled_torch-2.15");
  page.line("### Beside MemTracker");
  page.line("");
  page.line("{}", about_mem_tracker);
  page.line("");
  page.line(
      "| PyTorch | steps that it could run | MemTracker, % | captures, % | their calls, % | "
      "MemTracker, s | capture, s |");
  page.line("|---|---|---|---|---|---|---|");
  beside_mem_tracker(page, folder + "/mem_tracker_torch-2.15.json", newest);
  beside_mem_tracker(page, folder + "/mem_tracker.json", before);
  page.line("");
  page.line("### Under torch.compile");
  page.line("");
  page.line(about_compiled, compiled.size(), compiled_newest.size());
  page.line("");
  page.line("In PyTorch 2.15:");
  page.line("");
  list_captures(page, compiled_newest);
  page.line("In PyTorch 2.6:");
  page.line("");
  list_captures(page, compiled);
}

}  // namespace tidemark
