// The step that tests/reference/make_gradient_fixtures.py ran in PyTorch: its gradients, and the
// formula that both sides fill parameters and inputs with.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace tidemark::profiler {

/// What rounding did to PyTorch's own step in a dtype, as relative errors.
struct TorchError {
  double loss = 0, gradients = 0;
};

struct TorchFixture {
  struct Gradient {
    Shape shape;
    std::vector<double> values;
  };
  double loss = 0;
  TorchError float32, bfloat16;
  std::map<std::string, Gradient> gradients;
};

/// Of tests/reference/gradients/`network`.json.
TorchFixture read_torch_fixture(const std::string& network);

/// Row-major, exact in every dtype down to bfloat16.
std::vector<double> torch_parameter(const Tensor& parameter);

/// Images, ids, labels and targets; nothing for the inputs that a model defines, such as masks and
/// tables. Whole numbers are below `limit`.
std::vector<double> torch_input(const Tensor& input, std::int64_t limit, bool is_masked_language);

}  // namespace tidemark::profiler
