// Decoders by their config.json, as small traces, for tests that look at single ops and weights.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "traces/models/config_reader.h"

namespace tidemark::decoder_traces {

inline DecoderConfig config_of(std::string_view json) {
  return std::get<DecoderConfig>(read_model_config(json, "config.json").config);
}

inline std::string error_of(std::string_view json) {
  try {
    read_model_config(json, "config.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// Of one sample of 16 tokens.
inline Trace trace_of(std::string_view json, StepOptions options = {}) {
  options.batch = 1, options.sequence = 16;
  return build_trace({"network", "", "", "", config_of(json)}, options);
}

inline std::int64_t parameters_in(const Trace& trace) {
  std::int64_t count = 0;
  for (const Tensor& tensor : trace.tensors)
    if (tensor.category == Category::Parameter && trace[tensor.storage].name == tensor.name)
      count += numel(tensor.shape);
  return count;
}

inline std::vector<std::string> names_of(const Trace& trace, OpKind kind) {
  std::vector<std::string> names;
  for (const Op& op : trace.ops)
    if (op.kind == kind) names.push_back(op.name);
  return names;
}

inline const Op& op_named(const Trace& trace, std::string_view name) {
  const auto op = std::ranges::find(trace.ops, name, &Op::name);
  EXPECT_NE(op, trace.ops.end()) << name;
  return *op;
}

}  // namespace tidemark::decoder_traces
