// What a call needs to know of the step that its kernel cannot ask: the dither of codes that are
// written in passing lies in the arrays, which are bound once.
#pragma once

#include <algorithm>

#include "kernels/call.h"
#include "kernels/dither.h"

namespace tidemark {

inline bool writes_codes(const Call& call) {
  return std::ranges::any_of(call.outputs,
                             [](const Array& array) { return array.groups.codes != nullptr; });
}

/// The call with the step's own dither in place of the tensors' keys.
inline Call in_step(Call call, const StepState& state) {
  for (Array& output : call.outputs)
    if (output.groups.codes != nullptr)
      output.groups.dither = step_dither(state.seed, state.number, output.groups.dither);
  return call;
}

}  // namespace tidemark
