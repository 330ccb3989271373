// Launches of pairs.cuh; see pairs.h.
#include "kernels/pairs/pairs.cuh"
#include "kernels/pairs/pairs.h"

namespace tidemark::cuda {
namespace {

/// The first ones of pairs that lie beside each other, or half a row apart.
Array first_of_pairs(const Array& x, bool beside) {
  Array first = x;
  first.shape = x.shape.with_back(x.shape.back() / 2);
  if (beside) first.strides[x.shape.rank() - 1] *= 2;
  return first;
}

std::int64_t step_of(const Array& x, bool beside) {
  const std::int64_t stride = x.strides[x.shape.rank() - 1];
  return beside ? stride : stride * (x.shape.back() / 2);
}

void sort_pairs(Launch& launch, const Array& from, bool from_beside, const Array& to) {
  const Array read = first_of_pairs(from, from_beside), written = first_of_pairs(to, !from_beside);
  const Walk<2> walk = walk_in_order<2>(read.shape, {&read, &written});
  const PairSteps steps{step_of(from, from_beside), step_of(to, !from_beside)};
  with_dtype_of(std::array{&from, &to}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "sort_pairs", sort_pairs_kernel<T>, dim3(blocks_for(launch, walk.vectors)),
          dim3(usual_threads), 0, reader<T>(from), writer<T>(to), walk, steps);
  });
}

void turn_pairs(Launch& launch, const Array& from, const Array& table, const Array& to,
                float direction) {
  const Array read = first_of_pairs(from, true), written = first_of_pairs(to, true);
  const Walk<2> walk = walk_in_order<2>(read.shape, {&read, &written});
  const std::size_t rank = table.shape.rank();
  const Waves waves{reader<AnyFloat>(table), numel(table.shape) / table.shape.back(),
                    table.shape.back() / 2,  table.strides[rank - 2],
                    table.strides[rank - 1], direction};
  const PairSteps steps{step_of(from, true), step_of(to, true)};
  with_dtype_of(std::array{&from, &to}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "turn_pairs", turn_pairs_kernel<T>, dim3(blocks_for(launch, walk.vectors)),
          dim3(usual_threads), 0, reader<T>(from), writer<T>(to), walk, steps, waves);
  });
}

}  // namespace

void turn_pairs_forward(const Call& call, Launch& launch) {
  turn_pairs(launch, call.inputs[0], call.inputs[1], call.outputs[0], 1);
}

void turn_pairs_backward(const Call& call, Launch& launch) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return fill_with(launch, call.d_inputs[0], 0);
  turn_pairs(launch, call.d_outputs[0], call.inputs[1], call.d_inputs[0], -1);
}

void sort_pairs_forward(const Call& call, Launch& launch) {
  sort_pairs(launch, call.inputs[0], true, call.outputs[0]);
}

void sort_pairs_backward(const Call& call, Launch& launch) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return fill_with(launch, call.d_inputs[0], 0);
  sort_pairs(launch, call.d_outputs[0], false, call.d_inputs[0]);
}

}  // namespace tidemark::cuda
