// Launches of update.cuh; see optimizer.h.
#include "kernels/dynamic_map.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/optimizer/update.cuh"

namespace tidemark::cuda {
namespace {

/// Elements of a dense state, in the shape of the parameter.
Array state_part(const Array& state, std::int64_t first, const Shape& shape) {
  return array_at(state.data + first * size_of(state.dtype), state.dtype, dense(shape));
}

Array update_scratch(Launch& launch, const Shape& shape, std::size_t slot) {
  return array_at(scratch(launch, numel(shape) * size_of(DType::Float32), slot), DType::Float32,
                  dense(shape));
}

Shape with_ones(const Shape& shape, std::size_t from_back, std::size_t count) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  for (std::size_t i = 0; i < count; ++i) dims[dims.size() - 1 - from_back - i] = 1;
  return Shape(dims);
}

/// fp32 in row-major order: the array itself, or a copy.
Array in_order(Launch& launch, const Array& array, std::size_t slot) {
  if (array.dtype == DType::Float32 && is_dense(array.layout())) return array;
  const Array copy = update_scratch(launch, array.shape, slot);
  pointwise(launch, "update", PerElement<Identity>{}, {&array, &copy});
  return copy;
}

void update_blocks(const UpdateRule& rule, const Array& parameter, const Array& gradient,
                   const Array& state, Launch& launch) {
  const bool has_second = has_second_state(rule.optimizer);
  const StateInBlocks blocks(state, numel(parameter.shape), has_second ? 2 : 1);
  CodeNumbers numbers;
  std::ranges::copy(dynamic_map(true), numbers.of_first);
  std::ranges::copy(dynamic_map(false), numbers.of_second);
  const Array p = in_order(launch, parameter, 0), g = in_order(launch, gradient, 1);
  start(launch, "update", update_blocks_kernel, dim3(blocks_for(launch, blocks.blocks, 1)),
        dim3(static_cast<unsigned>(state_block)), 0, rule, blocks, has_second, numbers,
        elements<float>(p), elements<const float>(g));
  if (p.data != parameter.data)
    pointwise(launch, "update", PerElement<Identity>{}, {&p, &parameter});
}

struct Means {
  Array rows, columns, all;
};

/// The state's means with this step's, by rows and columns; of a vector by its elements.
Means new_means(const FactoredRule& rule, const Shape& shape, const Array& gradient,
                const Array& state, Launch& launch) {
  const auto renew = [&](const Array& mean, float scale, std::size_t slot) {
    const Array now = update_scratch(launch, mean.shape, slot);
    summed_to(launch, "adafactor", SquareFunction{scale, rule.added}, shape, {&gradient}, now);
    pointwise(launch, "adafactor", PerElement<FreshMean>{{rule.fresh}}, {&mean, &now, &mean});
  };
  if (shape.rank() < 2) {
    const Means means{state_part(state, 0, shape), {}, {}};
    renew(means.rows, 1, 1);
    return means;
  }
  const FactoredShape factored(shape);
  const Shape by_row = with_ones(shape, 0, 1), by_column = with_ones(shape, 1, 1);
  Means means{state_part(state, 0, by_row),
              state_part(state, factored.matrices * factored.rows, by_column),
              update_scratch(launch, with_ones(shape, 0, 2), 3)};
  renew(means.rows, 1.0f / static_cast<float>(factored.columns), 1);
  renew(means.columns, 1.0f / static_cast<float>(factored.rows), 2);
  summed_to(launch, "adafactor", ShareFunction{1.0f / static_cast<float>(factored.rows)}, by_row,
            {&means.rows}, means.all);
  return means;
}

void adafactor(const FactoredRule& rule, const Array& parameter, const Array& gradient,
               const Array& state, Launch& launch) {
  const Shape& shape = parameter.shape;
  const Means means = new_means(rule, shape, gradient, state, launch);
  const FactoredStep step{rule, shape.rank() >= 2};
  const Shape one = with_ones(shape, 0, shape.rank());
  const float share = 1.0f / static_cast<float>(numel(shape));
  const Array of_steps = update_scratch(launch, one, 1), own = update_scratch(launch, one, 2);
  summed_to(launch, "adafactor", SquaredStep{step, share}, shape,
            {&means.rows, &means.columns, &means.all, &gradient}, of_steps);
  summed_to(launch, "adafactor", SquareFunction{share, 0}, shape, {&parameter}, own);
  pointwise(launch, "adafactor", PerElement<BoundedStep>{{step}},
            {&means.rows, &means.columns, &means.all, &gradient, &parameter, &of_steps, &own,
             &parameter});
}

}  // namespace

void update_otherwise(const Call& call, const Array& gradient, const Array* outputs,
                      Launch& launch) {
  const Array &parameter = outputs[0], &state = outputs[1];
  const std::int64_t count = numel(parameter.shape);
  const UpdateRule rule(call, launch.state);
  const auto part = [&](int number) { return state_part(state, number * count, parameter.shape); };
  if (call.settings.masters) {
    const Array master = part(0), m = part(1), v = part(2);
    return pointwise(launch, "adamw", MasterStep{rule, launch.state.number == 0},
                     {&parameter, &gradient, &master, &m, &v, &parameter, &master, &m, &v});
  }
  if (call.optimizer == Optimizer::Adafactor || call.optimizer == Optimizer::AdafactorTransformers)
    return adafactor({call, launch.state, parameter.dtype}, parameter, gradient, state, launch);
  if (state.dtype == DType::UInt8) return update_blocks(rule, parameter, gradient, state, launch);
  const Array first = part(0), second = has_second_state(rule.optimizer) ? part(1) : Array{};
  pointwise(launch, "update", RuleStep{rule},
            {&parameter, &gradient, &first, &second, &parameter, &first, &second});
}

}  // namespace tidemark::cuda
