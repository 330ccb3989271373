// The choices of --optimizer in megatron/training/arguments.py are adam, sgd, muon, lion, soap and
// adaptive_muon; adam decouples the decay of weights, and sgd has a momentum that may be zero.
#include "traces/megatron_optimizers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace tidemark {
namespace {

constexpr std::array of_megatron = {Optimizer::AdamW, Optimizer::Sgd, Optimizer::SgdMomentum,
                                    Optimizer::Lion, Optimizer::Muon};

}  // namespace

bool is_of_megatron(Optimizer optimizer) {
  return std::ranges::find(of_megatron, optimizer) != of_megatron.end();
}

std::string optimizers_of_megatron() {
  std::vector<std::string_view> names;
  for (const Optimizer optimizer : of_megatron) names.push_back(row_of(optimizer).name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace tidemark
