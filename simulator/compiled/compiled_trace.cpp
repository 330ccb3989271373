// The whole step is one region; what there is no graph of is refused.
#include "simulator/compiled/compiled_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "simulator/compiled/graph_writer.h"

namespace tidemark {
namespace {

/// Whose compiled steps were compared with PyTorch's (tests/reference/steps_compiled.json).
constexpr std::array<std::string_view, 19> families = {
    "gpt2",       "llama",  "phi",    "phi3",     "stablelm", "starcoder2", "olmo2",
    "gemma",      "gemma2", "gemma3", "gpt-neox", "falcon",   "t5",         "bert",
    "modernbert", "vit",    "swin",   "clip",     "siglip"};

// An algorithm runs in one piece: nothing of the compiler holds local variables.
void forget_frames(const FxRegion& region, Trace& trace) {
  for (std::size_t i = index(region.begin); i < index(region.end); ++i) {
    Op& op = trace.ops[i];
    op.part = Part::None, op.residual = false;
    if (op.kind != OpKind::Conv2d) op.also_keeps = 0;  // whose backward is one call in a graph, too
    for (const TensorId output : trace.outputs(op)) {
      OpId& held = trace.tensors[index(output)].held_until;
      if (held != no_op && held < region.end) held = no_op;
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

}  // namespace

Trace compiled_trace(const Trace& trace) {
  if (!trace.step.mesh.is_one() || trace.step.ddp)
    throw UsageError(fmt::format(
        "--framework {}: what torch.compile makes of a step of several ranks is not known here "
        "(leave --mesh, --gpus and --ddp out, or capture the compiled step: tidemark capture "
        "--help)",
        trace.step.framework));
  if (std::ranges::find(families, trace.family) == families.end())
    throw UsageError(fmt::format(
        "--framework {}: what torch.compile makes of {} is not known here, only of the families {} "
        "(capture the compiled step: tidemark capture --help; or plan the eager one: --framework "
        "{})",
        trace.step.framework, trace.model, fmt::join(families, ", "), default_framework));
  return compiled_model(trace);
}

}  // namespace tidemark
