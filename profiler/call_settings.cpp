// Reads settings and layout transforms off the trace, and quantizers off the plan's encodings.
#include "profiler/call_settings.h"

namespace tidemark::profiler {
namespace {

bool moves_elements(OpKind kind) {
  return is_view(kind) || kind == OpKind::Copy || kind == OpKind::Concat;
}

}  // namespace

Quantizer quantizer_of(const Encoding& encoding, const Shape& shape) {
  return {.groups = groups_of(encoding, shape),
          .group_axis = encoding.axis,
          .bits = encoding.bits,
          .delayed = encoding.delayed};
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
  settings.axis = whole(AttributeKey::Axis, 0);
  settings.offset = whole(AttributeKey::Offset, 0);
  settings.neighbours = whole(AttributeKey::Neighbours, 0) != 0;
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
