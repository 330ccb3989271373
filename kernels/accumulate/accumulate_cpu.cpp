// Sums of gradients, and what couplings need, on the CPU; see accumulate.h.
#include "kernels/accumulate/accumulate.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/map.h"

namespace tidemark::cpu {
namespace {

// In place and not: separate loops, since a vector loop must know that its arrays are apart.
TIDEMARK_CLONES void add_to_loop(std::int64_t n, float* __restrict y, const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}
TIDEMARK_CLONES void double_loop(std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += y[i];
}
TIDEMARK_CLONES void subtract_loop(std::int64_t n, float* __restrict y, const float* a,
                                   const float* b) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] - b[i];
}
TIDEMARK_CLONES void subtract_from_loop(std::int64_t n, float* __restrict y, const float* x) {
  for (std::int64_t i = 0; i < n; ++i) y[i] -= x[i];
}
TIDEMARK_CLONES void subtract_it_loop(std::int64_t n, float* __restrict y,
                                      const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] - y[i];
}

void add(std::int64_t n, float* y, const float* a, const float* b) {
  if (y == a && y == b) return double_loop(n, y);
  if (y == a) return add_to_loop(n, y, b);
  if (y == b) return add_to_loop(n, y, a);
  add_loop(n, y, a, b);
}

bool is_longer(const Array& input, const Array& output) {
  return numel(input.shape) > numel(output.shape);
}

}  // namespace

void fill(const Call& call, Workspace&) { set_all(call.outputs[0], 1.0f); }

// The input in whose place the sum appears comes first: later on it would be gone.
void accumulate(const Call& call, Workspace& workspace) {
  const Array& out = call.outputs[0];
  const std::vector<Array>& inputs = call.inputs;
  if (std::ranges::any_of(inputs, [&](const Array& input) { return is_longer(input, out); })) {
    Sums sums(out.shape, workspace);
    for (const Array& input : inputs)
      sums.add(is_longer(input, out) ? input.shape : out.shape, input);
    return sums.write_to(out);
  }
  std::size_t first = 0;
  for (std::size_t k = inputs.size(); k-- > 0;)
    if (inputs[k].data == out.data) first = k;
  if (inputs.size() == 1 && inputs[0].data != out.data) return assign(out, inputs[0]);
  bool is_begun = false;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (k == first) continue;
    CHECK(!is_begun || inputs[k].data != out.data);
    map(out, add, is_begun ? out : inputs[first], inputs[k]);
    is_begun = true;
  }
}

void subtract(const Call& call, Workspace&) {
  map(
      call.outputs[0],
      [](std::int64_t n, float* y, const float* a, const float* b) {
        if (y == a) return subtract_from_loop(n, y, b);
        if (y == b) return subtract_it_loop(n, y, a);
        subtract_loop(n, y, a, b);
      },
      call.inputs[0], call.inputs[1]);
}

}  // namespace tidemark::cpu
