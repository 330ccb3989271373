// What peft's users switch on beside a model's own checkpointing: the outputs of its input
// embeddings require a gradient (enable_input_require_grads() of transformers' modeling_utils.py,
// which prepare_model_for_kbit_training() of peft calls, too), so that ops between the embedding
// and the first block keep tensors, and have gradients, although nothing there is trained. T5's own
// code asks for a gradient of the zeros that it adds to scores.
#include "simulator/strategies/input_gradients.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "simulator/strategies/trace_edit.h"

namespace tidemark {
namespace {

// BART's blocks look words up in copies of the module that the hook is on. Hooks fail on what the
// others return, pairs of a tensor and a size.
constexpr std::array<std::string_view, 5> without_hook = {"bart", "beit", "swin", "pvt", "mvit"};

// Gemma 3's module for the table scales what it looks up: the hook gets that.
constexpr std::string_view scales_what_it_finds = "gemma3";

// Ranks cut blocks, and what lies between them.
bool is_whole(const Trace& trace) {
  const Mesh& mesh = trace.step.mesh;
  return mesh[Axis::Tensor] == 1 && mesh[Axis::Context] == 1 && mesh[Axis::Pipeline] == 1;
}

bool uses_peft(const Trace& trace) {
  const Tuning::Kind kind = trace.step.tuning.kind;
  return (kind == Tuning::Kind::Lora || kind == Tuning::Kind::LoraFa) &&
         find_framework(trace.step.framework).keeps_originals &&
         std::ranges::find(without_hook, trace.family) == without_hook.end();
}

// Of timm, whose linears of q, k and v are one, and whose models have no such hook.
bool is_timms(const Trace& trace) {
  return std::ranges::any_of(trace.ops, [](const Op& op) {
    return op.kind == OpKind::Linear && op.name.ends_with(".attn.qkv");
  });
}

template <typename Fill>
bool is_filled_with(const Trace& trace, TensorId tensor) {
  const InputFill* fill = fill_of(trace, trace[tensor]);
  return fill && std::holds_alternative<Fill>(*fill);
}

// Op by op: does it look up words, or make tokens of an image (or of autocast's copy of it)?
std::vector<OpId> input_embeddings(const Trace& trace) {
  std::vector<bool> is_image(trace.tensors.size());
  std::vector<OpId> found;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    const auto inputs = trace.inputs(op);
    if (inputs.empty()) continue;
    const TensorId x = inputs[0];
    const bool reads_image = is_image[index(x)] || is_filled_with<fill::Pixels>(trace, x);
    if (op.kind == OpKind::Cast) is_image[index(trace.outputs(op)[0])] = reads_image;
    const bool reads_words = std::ranges::any_of(
        inputs, [&](TensorId input) { return is_filled_with<fill::Words>(trace, input); });
    if ((op.kind == OpKind::Embedding && reads_words) || (op.kind == OpKind::Conv2d && reads_image))
      found.push_back(static_cast<OpId>(i));
  }
  return found;
}

// What the hook is on, and what has no gradient anyway.
std::vector<OpId> hooked(const Trace& trace) {
  const bool has_hook = !is_timms(trace);
  const std::vector<std::uint8_t> has_gradient = requires_gradient(trace);
  std::vector<OpId> found;
  for (OpId op : input_embeddings(trace)) {
    if (trace.family == scales_what_it_finds) op = static_cast<OpId>(index(op) + 1);
    const TensorId x = trace.outputs(trace[op])[0];
    if (has_gradient[index(x)] == 0 && (has_hook || trace[op].kind != OpKind::Conv2d))
      found.push_back(op);
  }
  return found;
}

// position_bias.requires_grad = True of modeling_t5.py: no table is there for the decoder's second
// attention.
std::vector<OpId> zeros_of_scores(const Trace& trace) {
  std::vector<OpId> found;
  if (trace.family != "t5" || !find_framework(trace.step.framework).keeps_originals) return found;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const OpaqueRow* row = opaque_row(trace, trace.ops[i]);
    if (row && row->computes == Formula::Zeros) found.push_back(static_cast<OpId>(i));
  }
  return found;
}

// x += 0, where the 0 has a gradient, and x stays for as long as the graph does: the node that adds
// up its gradient names it.
void give_gradient(TraceEdit& edit, TensorId old, Name name) {
  const TensorId x = edit.map(old);
  Tensor now = edit[x];
  now.name = name;
  now.storage = edit[x].storage;
  const TensorId zero = edit.external({.name = edit.name(name + ".zero"),
                                       .shape = {},
                                       .dtype = now.dtype,
                                       .category = Category::Input,
                                       .trainable = true});
  edit.redirect(old, edit.emit({.name = name, .kind = OpKind::Add, .also_keeps = output_bit(0)},
                               {x, zero}, now));
}

}  // namespace

bool asks_for_input_gradients(const StrategySpec::Component& component) {
  if (component.row->decide != checkpoint_blocks) return false;
  return component.arguments.chosen.empty() || component.arguments.has("op");
}

std::optional<Trace> add_input_gradients(const Trace& trace) {
  // Wrappers that are compiled with their blocks need none.
  if (!is_whole(trace) || is_compiled(find_framework(trace.step.framework))) return {};
  std::vector<OpId> asked = uses_peft(trace) ? hooked(trace) : std::vector<OpId>();
  std::ranges::copy(zeros_of_scores(trace), std::back_inserter(asked));
  if (asked.empty()) return {};
  std::ranges::sort(asked);
  TraceEdit edit(trace);
  auto next = static_cast<OpId>(0);
  const auto copy_to = [&](std::size_t end) {
    for (; index(next) < end; next = static_cast<OpId>(index(next) + 1)) edit.copy(next);
  };
  for (const OpId op : asked) {
    const TensorId x = trace.outputs(trace[op])[0];
    copy_to(index(op) + 1);
    give_gradient(edit, x, edit.name(trace[x].name + ".requires_grad"));
  }
  copy_to(trace.ops.size());
  Trace changed = edit.finish();
  const auto zero = static_cast<FillId>(changed.fills.size());
  changed.fills.push_back(fill::Constant{0});
  for (Tensor& tensor : changed.tensors)
    if (tensor.trainable && tensor.category == Category::Input) tensor.fill = zero;
  return changed;
}

}  // namespace tidemark
