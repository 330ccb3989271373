// Example, the step of two blocks, each [ … ] one graph:
//   the model   [ embed ─► block 0 ─► block 1 ─► norm ─► head ─► loss ]
//   its blocks  embed ─► [ block 0 ] ─► [ block 1 ] ─► norm ─► head ─► loss
#include "simulator/compiled/compiled_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/error.h"
#include "simulator/compiled/graph_writer.h"
#include "simulator/strategies/kept_calls.h"

namespace tidemark {
namespace {

/// Whose compiled steps were compared with PyTorch's (tests/reference/steps_compiled.json).
constexpr std::array<std::string_view, 19> families = {
    "gpt2",       "llama",  "phi",    "phi3",     "stablelm", "starcoder2", "olmo2",
    "gemma",      "gemma2", "gemma3", "gpt-neox", "falcon",   "t5",         "bert",
    "modernbert", "vit",    "swin",   "clip",     "siglip"};
/// … whose blocks were compiled one by one (tests/reference/steps_compiled_blocks.json).
constexpr std::array<std::string_view, 13> families_of_blocks = {
    "gpt2",  "llama",  "phi",    "phi3",     "stablelm", "starcoder2", "olmo2",
    "gemma", "gemma2", "gemma3", "gpt-neox", "bert",     "vit"};

// An algorithm runs in one piece: nothing of the compiler holds local variables, and of what the
// graph does not return nobody else has a name. So autocast's copies of weights are made in it and
// not cached.
void forget_frames(const FxRegion& region, Trace& trace) {
  for (std::size_t i = index(region.begin); i < index(region.end); ++i) {
    Op& op = trace.ops[i];
    op.part = Part::None, op.residual = false;
    if (op.kind != OpKind::Conv2d) op.also_keeps = 0;  // whose backward is one call in a graph, too
    for (const TensorId output : trace.outputs(op)) {
      OpId& held = trace.tensors[index(output)].held_until;
      const bool is_returned = std::ranges::find(region.outputs, output) != region.outputs.end();
      if (held != no_op && (held < region.end || !is_returned)) held = no_op;
    }
  }
}

// No block of the model is left.
Trace compiled_model(Trace trace) {
  trace.blocks.clear();
  for (Op& op : trace.ops) op.block = -1;
  for (Tensor& tensor : trace.tensors) tensor.held_until = no_op;
  const FxRegion step = whole_step(trace);
  forget_frames(step, trace);
  TraceEdit edit(trace);
  write_graph(trace, step, edit);
  for (const Tensor& tensor : trace.tensors)  // as DINOv2's token for masked patches
    if (tensor.category == Category::Parameter) edit.map(tensor.storage);
  return edit.finish();
}

enum class Wrapped : std::uint8_t { No, ByOp };

void write_block(const Trace& trace, const Block& block, Wrapped wrapped, TraceEdit& edit) {
  const FxRegion region = region_of(trace, block);
  if (wrapped == Wrapped::No) return write_graph(trace, region, edit);
  write_graph(trace, region, kept_by_op(trace, {{block.begin, block.begin, block.end}}), edit);
}

// A policy keeps scattered sums, whoever reads them: what waits for one stands in the backward,
// too, because a graph leaves no such call out.
void hold_sums(Trace& trace) {
  for (Op& op : trace.ops)
    if (op.block >= 0 && op.kind == OpKind::ReduceScatter) op.also_keeps = output_bit(0);
}

// What lies between blocks is eager code, op by op as it was.
Trace compiled_blocks(Trace trace, Wrapped wrapped) {
  for (const Block& block : trace.blocks) forget_frames(region_of(trace, block), trace);
  if (wrapped == Wrapped::ByOp) hold_sums(trace);
  TraceEdit edit(trace);
  const auto copy = [&](std::size_t begin, OpId end) {
    for (std::size_t i = begin; i < index(end); ++i) edit.copy(static_cast<OpId>(i));
  };
  std::size_t written = 0;
  for (const Block& block : trace.blocks) {
    copy(written, block.begin);
    write_block(trace, block, wrapped, edit);
    written = index(block.end);
    edit.stand_for(static_cast<OpId>(written - 1));
  }
  copy(written, static_cast<OpId>(trace.ops.size()));
  return edit.finish();
}

// What shards parameters and reduces gradients is hooked on blocks, outside of their graphs; what
// tensor-parallel and context ranks exchange is inside.
void refuse_ranks(const StepOptions& step, bool compiles_blocks) {
  if (compiles_blocks && step.mesh[Axis::Pipeline] > 1)
    throw UsageError(fmt::format(
        "--framework {}: what stages of compiled blocks exchange is not known here (leave pp out "
        "of --mesh, or plan the eager step: --framework {})",
        step.framework,
        find_framework(step.framework).torchtitan ? "torchtitan" : default_framework));
  if (!compiles_blocks && (!step.mesh.is_one() || step.ddp))
    throw UsageError(fmt::format(
        "--framework {}: what torch.compile makes of a step of several ranks is not known here "
        "(leave --mesh, --gpus and --ddp out, take --framework torch-compile-blocks-2.6, or "
        "capture the compiled step: tidemark capture --help)",
        step.framework));
}

// As config files call them.
std::string model_types(std::span<const std::string_view> families_known) {
  std::string text = fmt::format("{}", fmt::join(families_known, ", "));
  for (const auto& [family, type] :
       {std::pair<std::string_view, std::string_view>{"gemma3", "gemma3_text"},
        {"gpt-neox", "gpt_neox"}})
    if (const std::size_t at = text.find(family); at != text.npos)
      text.replace(at, family.size(), type);
  return text;
}

void refuse_others(const Trace& trace, std::span<const std::string_view> known) {
  if (std::ranges::find(known, trace.family) != known.end()) return;
  throw UsageError(fmt::format(
      "--framework {}: what torch.compile makes of {} is not known here, only of the families {} "
      "(capture the compiled step: tidemark capture --help; or plan the eager one: --framework {})",
      trace.step.framework, trace.model, model_types(known), default_framework));
}

}  // namespace

Trace compiled_trace(const Trace& trace) {
  const bool compiles_blocks = find_framework(trace.step.framework).compiles_blocks;
  refuse_ranks(trace.step, compiles_blocks);
  refuse_others(trace,
                compiles_blocks ? std::span<const std::string_view>(families_of_blocks) : families);
  if (!compiles_blocks) return compiled_model(trace);
  Trace compiled = compiled_blocks(trace, Wrapped::No);
  compiled.eager.trace = std::make_shared<const Trace>(trace);
  return compiled;
}

Trace compiled_by_op(const Trace& trace) {
  CHECK(trace.eager.trace);
  Trace eager = *trace.eager.trace;
  eager.step = trace.step;  // whoever has changed it since then
  Trace compiled = compiled_blocks(std::move(eager), Wrapped::ByOp);
  compiled.eager = trace.eager;
  return compiled;
}

}  // namespace tidemark
