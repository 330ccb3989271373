// A chain of equal layers over tensors of one float: every number about it can be derived by hand.
//   x0 ─f1─► x1 ─f2─► x2 … ─fn─► xn = loss        each layer's gradient needs its input
#pragma once

#include <fmt/format.h>

#include "simulator/plan.h"
#include "tests/simulator/step_facts.h"
#include "traces/trace_builder.h"

namespace tidemark {

/// Blocks of `every` layers; x0 is given, and its gradient is wanted.
inline Trace chain(std::int64_t layers, std::int64_t every = 1) {
  TraceBuilder b("chain", "toy", {.precision = Precision::Fp32, .optimizer = Optimizer::Sgd});
  TensorId x = b.input("x0", {}, DType::Float32);
  for (std::int64_t i = 1; i <= layers; ++i) {
    if ((i - 1) % every == 0) b.begin_block(fmt::format("block{}", (i - 1) / every), x, -1);
    x = b.gelu(fmt::format("x{}", i), x);
    if (i % every == 0 || i == layers) b.end_block();
  }
  Trace trace = b.finish(x);
  trace.tensors[0].trainable = true;
  return trace;
}

/// Live bytes in tensors.
inline std::int64_t units(Bytes bytes) { return bytes.count / 4; }

}  // namespace tidemark
