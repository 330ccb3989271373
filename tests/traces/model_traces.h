// Traces of presets in small steps, and what is in them by name.
#pragma once

#include <string>

#include "base/error.h"
#include "traces/presets.h"

namespace tidemark::model_traces {

/// A small step: enough to see the structure.
inline StepOptions small_step(const Model& model) {
  StepOptions step{.batch = 2};
  if (!sees_images(model.config)) step.sequence = 32;
  return step;
}

inline Trace trace_of(std::string_view name, const StepOptions& step) {
  return build_trace(find_model(name), step);
}

inline Trace math_trace(std::string_view name) {
  StepOptions step = small_step(find_model(name));
  step.attention = Attention::Math;
  return trace_of(name, step);
}

inline const Op& op_named(const Trace& trace, std::string_view name) {
  for (const Op& op : trace.ops)
    if (op.name == name) return op;
  throw InputError("no op named " + std::string(name));
}

inline const Op* find_op(const Trace& trace, std::string_view name) {
  for (const Op& op : trace.ops)
    if (op.name == name) return &op;
  return nullptr;
}

inline Shape output_shape(const Trace& trace, std::string_view op) {
  return trace[trace.outputs(op_named(trace, op))[0]].shape;
}

}  // namespace tidemark::model_traces
