// Reads settings and layout transforms off the trace; groups quantizers by head or 64 channels.
#include "profiler/call_settings.h"

namespace tidemark::profiler {
namespace {

// Mesa's groups: one per head where heads are an axis, else of 64 channels, DeiT's head width
// (facts of arXiv 2111.11124's released policies).
constexpr std::int64_t channels_per_group = 64;

bool moves_elements(OpKind kind) {
  return is_view(kind) || kind == OpKind::Copy || kind == OpKind::Concat;
}

}  // namespace

Quantizer quantizer_for(const Shape& shape) {
  if (shape.rank() == 0) return {};
  if (shape.rank() == 4) return {.groups = shape[1], .group_axis = 1};
  const std::int64_t channels = shape.back();
  const auto last = static_cast<std::int64_t>(shape.rank()) - 1;
  return {.groups = channels % channels_per_group == 0 ? channels / channels_per_group : 1,
          .group_axis = last};
}

Settings settings_of(const Trace& trace, const Op& op) {
  const auto number = [&](AttributeKey key, double otherwise) {
    return attribute(trace, op, key, otherwise);
  };
  const auto whole = [&](AttributeKey key, std::int64_t otherwise) {
    return static_cast<std::int64_t>(number(key, static_cast<double>(otherwise)));
  };
  Settings settings;
  settings.causal = whole(AttributeKey::Causal, 0) != 0;
  settings.tanh_approx = whole(AttributeKey::TanhApprox, 0) != 0;
  settings.window = whole(AttributeKey::Window, 0);
  settings.stride = whole(AttributeKey::Stride, 1);
  // A pooling says no padding: its windows are centred.
  settings.padding =
      whole(AttributeKey::Padding, op.kind == OpKind::MaxPool ? settings.window / 2 : 0);
  settings.groups = whole(AttributeKey::Groups, 1);
  settings.probability = number(AttributeKey::Probability, 0);
  settings.factor = number(AttributeKey::Factor, 1);
  settings.epsilon = number(AttributeKey::Epsilon, settings.epsilon);
  return settings;
}

std::vector<Rearrangement> moves_of(const Trace& trace, const Op& op) {
  std::vector<Rearrangement> moves;
  if (!moves_elements(op.kind)) return moves;
  const std::size_t pieces = op.kind == OpKind::Concat  ? op.inputs
                             : op.kind == OpKind::Split ? op.outputs
                                                        : std::size_t{1};
  for (std::size_t i = 0; i < pieces; ++i) moves.push_back(rearrangement_of(trace, op, i));
  return moves;
}

}  // namespace tidemark::profiler
