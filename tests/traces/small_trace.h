// A small sound trace whose every id is known by heart: what the tests damage.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "traces/trace_builder.h"

namespace tidemark {

/// x [2, 3, 4] ─ two blocks of { norm, fc, drop, add1 | mlp, add2 } ─ flat ─ head [2, 5] ─ loss.
/// Block k's ops begin at 6 k, its tensors at 2 + 15 k.
inline Trace small_trace() {
  TraceBuilder b("small", "toy", {.batch = 2});
  TensorId x = b.input("x", {2, 3, 4}, DType::Float32);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  for (const std::string name : {"b0", "b1"}) {
    b.begin_block(name, x, 0);
    b.part(Part::F);
    TensorId y = b.layer_norm(name + ".norm", x, 1e-5);
    y = b.linear(name + ".fc", y, 4);
    y = b.dropout(name + ".drop", y, 0.1);
    x = b.residual(name + ".add1", x, y);
    b.part(Part::G);
    y = b.linear(name + ".mlp", x, 4);
    x = b.residual(name + ".add2", x, y);
    b.end_block();
  }
  x = b.view("flat", x, {2, 12});
  return b.finish(b.cross_entropy("loss", b.linear("head", x, 5), targets));
}

inline TensorId tensor_named(const Trace& trace, std::string_view name) {
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    if (trace.tensors[i].name == name) return static_cast<TensorId>(i);
  throw std::out_of_range("no tensor " + std::string(name));
}

inline OpId op_named(const Trace& trace, std::string_view name) {
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops[i].name == name) return static_cast<OpId>(i);
  throw std::out_of_range("no op " + std::string(name));
}

}  // namespace tidemark
