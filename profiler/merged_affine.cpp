// Finds such norms and the linears behind them; merges γ and β, and splits their gradients again.
#include "profiler/merged_affine.h"

#include <algorithm>

#include "simulator/strategies/consumers.h"

namespace tidemark::profiler {
namespace {

/// A norm that lost its affine part, and a linear that took it; names of parameters, "" = none.
struct Merge {
  std::string gamma, beta, weight, bias;
  std::int64_t rows = 0, columns = 0;  ///< of the weight
};

class Merges {
 public:
  Merges(const Trace& before, const Trace& after) : trace_(before), consumers_(before) {
    for (std::size_t i = 0; i < before.ops.size(); ++i)
      for (const TensorId output : before.outputs(before.ops[i]))
        maker_.emplace(output, static_cast<OpId>(i));
    for (const Op& op : after.ops)
      if (op.kind == OpKind::MsLayerNorm || op.kind == OpKind::MsRmsNorm)
        merged_.push_back(op.name);
  }

  std::vector<Merge> run() {
    for (const Op& norm : trace_.ops)
      if (std::ranges::find(merged_, norm.name) != merged_.end())
        follow(norm, trace_.outputs(norm)[0]);
    return std::move(found_);
  }

 private:
  void follow(const Op& norm, TensorId tensor) {
    for (const OpId id : consumers_(tensor)) {
      const Op& op = trace_[id];
      if (passes_through(op.kind))
        follow(norm, trace_.outputs(op)[0]);
      else if (op.kind == OpKind::Linear && trace_.inputs(op)[0] == tensor)
        found_.push_back(merge(norm, op));
    }
  }

  Merge merge(const Op& norm, const Op& linear) const {
    const auto affine = trace_.inputs(norm), operands = trace_.inputs(linear);
    const TensorId weight = parameter_of(operands[1]);
    return {.gamma = trace_[parameter_of(affine[1])].name,
            .beta = affine.size() > 2 ? trace_[affine[2]].name : "",
            .weight = trace_[weight].name,
            .bias = operands.size() > 2 ? trace_[parameter_of(operands[2])].name : "",
            .rows = trace_[weight].shape[0],
            .columns = trace_[weight].shape[1]};
  }

  // The parameter behind the casts that are put in front of it.
  TensorId parameter_of(TensorId tensor) const {
    const auto maker = maker_.find(tensor);
    return maker == maker_.end() ? tensor : parameter_of(trace_.inputs(trace_[maker->second])[0]);
  }

  const Trace& trace_;
  const Consumers consumers_;
  std::map<TensorId, OpId> maker_;
  std::vector<std::string> merged_;
  std::vector<Merge> found_;
};

/// Calls visit(row, column, index) for each element of the weight.
template <typename Visit>
void for_each_element(const Merge& merge, Visit visit) {
  std::size_t at = 0;
  for (std::int64_t r = 0; r < merge.rows; ++r)
    for (std::int64_t c = 0; c < merge.columns; ++c)
      visit(static_cast<std::size_t>(r), static_cast<std::size_t>(c), at++);
}

}  // namespace

NamedValues merge_affine(const Trace& before, const Trace& after, NamedValues parameters) {
  const std::vector<Merge> merges = Merges(before, after).run();
  if (merges.empty()) return parameters;
  const NamedValues old = parameters;
  for (const Merge& merge : merges) {
    const std::vector<double>&gamma = old.at(merge.gamma), &weight = old.at(merge.weight);
    std::vector<double>& merged = parameters.at(merge.weight);
    for_each_element(merge, [&](std::size_t, std::size_t c, std::size_t i) {
      merged[i] = weight[i] * gamma[c];
    });
    if (merge.bias.empty() || merge.beta.empty()) continue;
    const std::vector<double>& beta = old.at(merge.beta);
    std::vector<double>& bias = parameters.at(merge.bias);
    for_each_element(merge, [&](std::size_t r, std::size_t c, std::size_t i) {
      bias[r] += weight[i] * beta[c];
    });
  }
  return parameters;
}

NamedValues unmerge_gradients(const Trace& before, const Trace& after,
                              const NamedValues& parameters, NamedValues gradients) {
  const std::vector<Merge> merges = Merges(before, after).run();
  if (merges.empty()) return gradients;
  const NamedValues merged = gradients;
  const auto sum_into = [&](const std::string& name) -> std::vector<double>& {
    std::vector<double>& sum = gradients[name];
    sum.resize(parameters.at(name).size());
    return sum;
  };
  for (const Merge& merge : merges) {
    const auto d_weight = merged.find(merge.weight), d_bias = merged.find(merge.bias);
    const std::vector<double>&gamma = parameters.at(merge.gamma), &w = parameters.at(merge.weight);
    if (d_weight != merged.end()) {
      std::vector<double>&d_gamma = sum_into(merge.gamma), &d_old = gradients.at(merge.weight);
      for_each_element(merge, [&](std::size_t, std::size_t c, std::size_t i) {
        d_gamma[c] += d_weight->second[i] * w[i];
        d_old[i] = d_weight->second[i] * gamma[c];
      });
    }
    if (d_bias == merged.end() || merge.beta.empty()) continue;
    const std::vector<double>& beta = parameters.at(merge.beta);
    std::vector<double>& d_beta = sum_into(merge.beta);
    for_each_element(merge, [&](std::size_t r, std::size_t c, std::size_t i) {
      d_beta[c] += w[i] * d_bias->second[r];
      if (d_weight != merged.end()) gradients.at(merge.weight)[i] += d_bias->second[r] * beta[c];
    });
  }
  return gradients;
}

}  // namespace tidemark::profiler
