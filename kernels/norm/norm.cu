// Launches the row kernels of the norms; statistics that were not saved go to scratch first.
#include "kernels/norm/norm.h"
#include "kernels/norm/norm_columns.cuh"
#include "kernels/norm/norm_weights.cuh"

namespace tidemark::cuda {
namespace {

const Array& operand_or_absent(const std::vector<Array>& arrays, std::size_t i) {
  static const Array absent;
  return i < arrays.size() ? arrays[i] : absent;
}

/// What is absent takes no part in the walk.
const Array& present_or(const Array& array, const Array& other) { return array ? array : other; }

/// The arrays of one norm by name; LayerNorm: x, γ, β → y, mean, rstd; RMSNorm: x, γ → y, rstd,
/// normalized; without affine part: x → y, rstd.
struct NormArrays {
  Array x, gamma, beta, y, mean, rstd, normalized;
  DType rounded = DType::Float32;
};

/// An RMSNorm of two kernels stores the normalized row between them.
DType rounding_of_rms(const Call& call) {
  return call.outputs.size() > 2 ? call.outputs[2].dtype : DType::Float32;
}

/// Rows one behind the other, whose elements lie side by side in every operand that has them.
template <int N>
bool lies_in_columns(const Rows<N>& rows, const RowLaunch& plan, std::int64_t vector,
                     std::initializer_list<int> operands) {
  for (const int operand : operands)
    if (rows.step[operand] != 1) return false;
  return plan.has_vectors && rows.outer.rank == 0 && rows.width % vector == 0;
}

using NormOperands = std::array<const Array*, norm_operands>;

template <bool is_centred, typename T>
bool norm_columns_of(const NormArrays& arrays, const NormOperands& operands, double epsilon,
                     Launch& launch, const char* name) {
  constexpr int V = vector_size<T>;
  Rows<norm_operands> rows;
  const RowLaunch plan = plan_rows<norm_operands>(launch, arrays.x.shape, operands, 0, V, rows);
  const ColumnPlan columns(rows.width / V);
  if (columns.per_thread == 0 ||
      !lies_in_columns(rows, plan, V, {norm_x, norm_gamma, norm_beta, norm_y, norm_z}))
    return false;
  NormColumnArguments<T> a{elements<const T>(arrays.x),
                           elements<const T>(arrays.gamma),
                           elements<const T>(arrays.beta),
                           elements<T>(arrays.y),
                           elements<T>(arrays.normalized),
                           elements<float>(arrays.mean),
                           elements<float>(arrays.rstd),
                           rows.count,
                           {},
                           static_cast<int>(rows.width / V),
                           1.0f / static_cast<float>(rows.width),
                           static_cast<float>(epsilon),
                           arrays.rounded,
                           DeviceGroups(arrays.y)};
  std::copy_n(rows.outer.inner_stride, norm_operands, a.stride);
  const bool is_own_group = arrays.y.groups && has_groups_of_vectors(arrays.y, V) &&
                            comes_again_after(arrays.y.groups, a.stride[norm_y]);
  with_columns<vectors_under_way>(columns, [&](auto per_thread) {
    constexpr int P = decltype(per_thread)::value;
    using enum NormWatch;
    auto kernel = arrays.y.groups ? norm_columns_kernel<is_centred, T, P, Anywhere>
                                  : norm_columns_kernel<is_centred, T, P, No>;
    if constexpr (P == 1)
      if (is_own_group) kernel = norm_columns_kernel<is_centred, T, P, InOwnGroup>;
    const unsigned all = columns.blocks(rows.count, vectors_under_way / P);
    // Few blocks that watch: each asks for all extremes in the device's memory.
    const unsigned threads = columns.threads.x * columns.threads.y;
    const unsigned at_once =
        static_cast<unsigned>(launch.processors) * resident_blocks(kernel, threads, 0);
    start(launch, name, kernel, dim3(arrays.y.groups ? std::min(all, at_once) : all),
          columns.threads, 0, a);
  });
  return true;
}

/// False if the rows are too long for it, do not lie in vectors or are of several dtypes: then
/// nothing was done.
template <bool is_centred>
bool norm_columns(const NormArrays& arrays, const NormOperands& operands, double epsilon,
                  Launch& launch, const char* name) {
  Array y = arrays.y;  // of its dtype, watched or not
  y.groups = {};
  bool is_done = false;
  with_dtype_of(std::array<const Array*, 5>{operands[norm_x], operands[norm_gamma],
                                            operands[norm_beta], &y, operands[norm_z]},
                [&](auto tag) {
                  using T = typename decltype(tag)::type;
                  if constexpr (!std::is_same_v<T, AnyFloat>)
                    is_done =
                        norm_columns_of<is_centred, T>(arrays, operands, epsilon, launch, name);
                });
  return is_done;
}

template <bool is_centred>
void norm_forward(const NormArrays& arrays, double epsilon, Launch& launch, const char* name) {
  const Array& x = arrays.x;
  const Array& gamma = arrays.gamma;
  const Array& beta = arrays.beta;
  const Array& y = arrays.y;
  const Array& mean = arrays.mean;
  const Array& rstd = arrays.rstd;
  const Array& normalized = arrays.normalized;
  const DType rounded = arrays.rounded;
  if (numel(x.shape) == 0) return;
  // An absent array walks as x does; nothing is read or written there.
  Array nothing = x;
  nothing.data = nullptr;
  const NormOperands operands = {&x,
                                 &present_or(gamma, nothing),
                                 &present_or(beta, nothing),
                                 &y,
                                 &present_or(mean, nothing),
                                 &present_or(rstd, nothing),
                                 &present_or(normalized, nothing)};
  if (norm_columns<is_centred>(arrays, operands, epsilon, launch, name)) return;
  with_dtype_of(std::array{operands[norm_x], operands[norm_gamma], operands[norm_beta],
                           operands[norm_y], operands[norm_z]},
                [&](auto tag) {
                  using T = typename decltype(tag)::type;
                  NormArguments<T> a{reader<T>(x),
                                     reader<T>(gamma),
                                     reader<T>(beta),
                                     writer<T>(y),
                                     writer<T>(normalized),
                                     elements<float>(mean),
                                     elements<float>(rstd),
                                     {},
                                     static_cast<float>(epsilon),
                                     static_cast<bool>(gamma),
                                     rounded};
                  const RowLaunch plan = plan_rows<norm_operands>(launch, x.shape, operands, 1,
                                                                  vector_size<T>, a.rows);
                  constexpr int V = vector_size<T>;
                  const auto kernel =
                      plan.is_cached
                          ? (plan.has_vectors ? norm_forward_kernel<is_centred, T, V, true>
                                              : norm_forward_kernel<is_centred, T, 1, true>)
                          : (plan.has_vectors ? norm_forward_kernel<is_centred, T, V, false>
                                              : norm_forward_kernel<is_centred, T, 1, false>);
                  start(launch, name, kernel, plan.blocks, plan.threads, plan.shared_bytes, a);
                });
}

/// Mean and 1/σ of x in scratch, shaped as a norm's outputs.
template <bool is_centred>
void find_moments(const Array& x, double epsilon, Array& mean, Array& rstd, Launch& launch) {
  const Layout rows = dense(x.shape.with_back(1));
  const std::int64_t bytes = numel(rows.shape) * size_of(DType::Float32);
  mean = array_at(scratch(launch, bytes, 1), DType::Float32, rows);
  rstd = array_at(scratch(launch, bytes, 2), DType::Float32, rows);
  with_dtype_of(std::array{&x}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    Rows<2> both;
    const RowLaunch plan = plan_rows<2>(launch, x.shape, {&mean, &x}, 1, V, both);
    const auto kernel = plan.is_cached
                            ? (plan.has_vectors ? norm_moments_kernel<is_centred, T, V, true>
                                                : norm_moments_kernel<is_centred, T, 1, true>)
                            : (plan.has_vectors ? norm_moments_kernel<is_centred, T, V, false>
                                                : norm_moments_kernel<is_centred, T, 1, false>);
    start(launch, "norm moments", kernel, plan.blocks, plan.threads, plan.shared_bytes,
          reader<T>(x), both, static_cast<float>(epsilon), elements<float>(mean),
          elements<float>(rstd));
  });
}

struct NormGradients {
  Array x, gamma, mean, rstd, dy, dx;
  bool is_normalized = false;
};

template <bool is_centred>
void norm_backward(const NormGradients& arrays, Launch& launch, const char* name) {
  const Array& x = arrays.x;
  const Array& gamma = arrays.gamma;
  const Array& mean = arrays.mean;
  const Array& rstd = arrays.rstd;
  const Array& dy = arrays.dy;
  const Array& dx = arrays.dx;
  const bool is_normalized = arrays.is_normalized;
  if (!dx || numel(x.shape) == 0) return;
  Array nothing = x;
  nothing.data = nullptr;
  const std::array<const Array*, norm_gradient_operands> operands = {
      &x, &dy, &present_or(gamma, nothing), &dx, &present_or(mean, nothing), &rstd};
  with_dtype_of(
      std::array{operands[grad_x], operands[grad_dy], operands[grad_gamma], operands[grad_dx]},
      [&](auto tag) {
        using T = typename decltype(tag)::type;
        constexpr int V = vector_size<T>;
        NormGradientArguments<T> a{reader<T>(x),
                                   reader<T>(dy),
                                   reader<T>(gamma),
                                   writer<T>(dx),
                                   elements<const float>(mean),
                                   elements<const float>(rstd),
                                   {},
                                   static_cast<bool>(gamma),
                                   is_normalized};
        const RowLaunch plan =
            plan_rows<norm_gradient_operands>(launch, x.shape, operands, 2, V, a.rows);
        const auto kernel =
            plan.is_cached ? (plan.has_vectors ? norm_backward_kernel<is_centred, T, V, true>
                                               : norm_backward_kernel<is_centred, T, 1, true>)
                           : (plan.has_vectors ? norm_backward_kernel<is_centred, T, V, false>
                                               : norm_backward_kernel<is_centred, T, 1, false>);
        start(launch, name, kernel, plan.blocks, plan.threads, plan.shared_bytes, a);
      });
}

template <typename X>
Reader<X> norm_reader(const Array& x) {
  if constexpr (std::is_same_v<X, RowCodes>)
    return {elements<const std::uint8_t>(x), DeviceGroups(x)};
  else
    return reader<X>(x);
}

/// dγ and dβ, where they are wanted beside dx.
struct NormWeights {
  Array dgamma, dbeta;
  DType rounded = DType::Float32;
};

/// False if the rows are too long for it: then nothing was done.
template <bool is_centred, typename T, typename X>
bool start_whole(const NormGradients& arrays, const NormWeights& weights,
                 const Rows<norm_gradient_operands>& rows, Launch& launch, const char* name) {
  const ColumnPlan plan(rows.width / vector_size<T>);
  if (plan.per_thread == 0 || plan.per_thread > most_norm_vectors<T>) return false;
  WholeNormArguments<T, X> a{norm_reader<X>(arrays.x),
                             elements<const T>(arrays.dy),
                             reader<AnyFloat>(arrays.gamma),
                             elements<T>(arrays.dx),
                             elements<const float>(arrays.mean),
                             elements<const float>(arrays.rstd),
                             rows.count,
                             {},
                             static_cast<int>(rows.width / vector_size<T>),
                             1.0f / static_cast<float>(rows.width),
                             arrays.is_normalized,
                             weights.rounded};
  std::copy_n(rows.outer.inner_stride, norm_gradient_operands, a.stride);
  with_columns<most_norm_vectors<T>>(plan, [&](auto per_thread) {
    constexpr int P = decltype(per_thread)::value;
    const auto kernel = norm_whole_backward_kernel<is_centred, T, X, P>;
    const unsigned all = plan.blocks(rows.count, norm_rows_at_once<T, X, P>);
    const unsigned threads = plan.threads.x * plan.threads.y;
    const unsigned wanted = std::max(norm_threads_per_processor / threads, 1u);
    const unsigned at_once = static_cast<unsigned>(launch.processors) *
                             std::min(wanted, resident_blocks(kernel, threads, 0));
    // As few as take no longer: each goes through the same number of rows.
    const unsigned rounds = (all + at_once - 1) / at_once;
    const dim3 blocks((all + rounds - 1) / rounds);
    const std::int64_t parts = std::int64_t{blocks.x} * plan.threads.y;
    const auto sums_of = [&](const Array& of, std::size_t slot) -> float* {
      if (!of) return nullptr;
      const std::int64_t bytes = parts * rows.width * size_of(DType::Float32);
      return reinterpret_cast<float*>(scratch(launch, bytes, slot));
    };
    a.dgamma = sums_of(weights.dgamma, 3), a.dbeta = sums_of(weights.dbeta, 4);
    start(launch, name, kernel, blocks, plan.threads, 0, a);
    if (weights.dgamma) join_parts(launch, name, a.dgamma, parts, weights.dgamma);
    if (weights.dbeta) join_parts(launch, name, a.dbeta, parts, weights.dbeta);
  });
  return true;
}

/// False if the rows are too long for it, or do not lie in vectors: then nothing was done.
template <bool is_centred>
bool norm_whole_backward(const NormGradients& arrays, const NormWeights& weights, Launch& launch,
                         const char* name) {
  if (!arrays.dx || numel(arrays.x.shape) == 0) return false;
  Array nothing = arrays.x;
  nothing.data = nullptr;
  const std::array<const Array*, norm_gradient_operands> operands = {
      &arrays.x,
      &arrays.dy,
      &present_or(arrays.gamma, nothing),
      &arrays.dx,
      &present_or(arrays.mean, nothing),
      &arrays.rstd};
  bool is_done = false;
  with_dtype_of(std::array{&arrays.dy, &arrays.dx}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, AnyFloat>) {
      constexpr int V = vector_size<T>;
      Rows<norm_gradient_operands> rows;
      const RowLaunch plan =
          plan_rows<norm_gradient_operands>(launch, arrays.x.shape, operands, 0, V, rows);
      if (!lies_in_columns(rows, plan, V, {grad_x, grad_dy, grad_gamma, grad_dx}) ||
          (arrays.x.groups && !has_groups_of_vectors(arrays.x, V)))
        return;
      const auto start_with = [&](auto tag_of_x) {
        using X = typename decltype(tag_of_x)::type;
        return start_whole<is_centred, T, X>(arrays, weights, rows, launch, name);
      };
      if (!arrays.x.groups)
        is_done =
            arrays.x.dtype == arrays.dy.dtype ? start_with(Tag<T>{}) : start_with(Tag<AnyFloat>{});
      else if (comes_again_after(arrays.x.groups, rows.outer.inner_stride[grad_x]))
        is_done = start_with(Tag<RowCodes>{});
      else
        is_done = start_with(Tag<AnyFloat>{});
    }
  });
  return is_done;
}

void all_zero(const Call& call, Launch& launch) {
  for (const Array& gradient : call.d_inputs) fill_with(launch, gradient, 0);
}

template <bool is_centred>
void ms_forward(const Call& call, Launch& launch, const char* name) {
  NormArrays arrays;
  arrays.x = call.inputs[0], arrays.y = call.outputs[0];
  arrays.rstd = operand_or_absent(call.outputs, 1);
  norm_forward<is_centred>(arrays, call.settings.epsilon, launch, name);
}

template <bool is_centred>
void ms_backward(const Call& call, Launch& launch, const char* name) {
  if (!call.d_outputs[0]) return all_zero(call, launch);
  const NormGradients gradients{.x = call.outputs[0],
                                .gamma = {},
                                .mean = {},
                                .rstd = call.outputs[1],
                                .dy = call.d_outputs[0],
                                .dx = call.d_inputs[0],
                                .is_normalized = true};
  if (!norm_whole_backward<is_centred>(gradients, {}, launch, name))
    norm_backward<is_centred>(gradients, launch, name);
}

}  // namespace

void layer_norm_forward(const Call& call, Launch& launch) {
  NormArrays arrays;
  arrays.x = call.inputs[0], arrays.y = call.outputs[0];
  arrays.gamma = operand_or_absent(call.inputs, 1), arrays.beta = operand_or_absent(call.inputs, 2);
  arrays.mean = operand_or_absent(call.outputs, 1);
  arrays.rstd = operand_or_absent(call.outputs, 2);
  norm_forward<true>(arrays, call.settings.epsilon, launch, "layer_norm");
}

void layer_norm_backward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &dy = call.d_outputs[0];
  if (!dy) return all_zero(call, launch);
  const Array dx = operand_or_absent(call.d_inputs, 0),
              dgamma = operand_or_absent(call.d_inputs, 1);
  const Array dbeta = operand_or_absent(call.d_inputs, 2);
  Array mean = operand_or_absent(call.outputs, 1), rstd = operand_or_absent(call.outputs, 2);
  if ((dx || dgamma) && !(mean && rstd))
    find_moments<true>(x, call.settings.epsilon, mean, rstd, launch);
  const NormGradients gradients{.x = x,
                                .gamma = operand_or_absent(call.inputs, 1),
                                .mean = mean,
                                .rstd = rstd,
                                .dy = dy,
                                .dx = dx,
                                .is_normalized = false};
  if (norm_whole_backward<true>(gradients, {dgamma, dbeta, DType::Float32}, launch,
                                "layer_norm backward"))
    return;
  norm_backward<true>(gradients, launch, "layer_norm backward");
  if (dgamma)
    reduce(launch, "layer_norm weight", GammaTerm{}, x.shape, {&dy, &x, &mean, &rstd}, dgamma);
  if (dbeta) reduce(launch, "layer_norm bias", Identity{}, x.shape, {&dy}, dbeta);
}

void rms_norm_forward(const Call& call, Launch& launch) {
  NormArrays arrays;
  arrays.x = call.inputs[0], arrays.y = call.outputs[0];
  arrays.gamma = operand_or_absent(call.inputs, 1);
  arrays.rstd = operand_or_absent(call.outputs, 1);
  arrays.normalized = operand_or_absent(call.outputs, 2);
  arrays.rounded = rounding_of_rms(call);
  norm_forward<false>(arrays, call.settings.epsilon, launch, "rms_norm");
}

void rms_norm_backward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &dy = call.d_outputs[0];
  if (!dy) return all_zero(call, launch);
  const Array dx = operand_or_absent(call.d_inputs, 0),
              dgamma = operand_or_absent(call.d_inputs, 1);
  const Array normalized = operand_or_absent(call.outputs, 2);
  Array mean, rstd = operand_or_absent(call.outputs, 1);
  if ((dx || (dgamma && !normalized)) && !rstd)
    find_moments<false>(x, call.settings.epsilon, mean, rstd, launch);
  const NormGradients gradients{.x = x,
                                .gamma = operand_or_absent(call.inputs, 1),
                                .mean = {},
                                .rstd = rstd,
                                .dy = dy,
                                .dx = dx,
                                .is_normalized = false};
  const bool finds_weight = dgamma && !normalized;
  const bool is_done = norm_whole_backward<false>(
      gradients, {finds_weight ? dgamma : Array{}, {}, rounding_of_rms(call)}, launch,
      "rms_norm backward");
  if (!is_done) norm_backward<false>(gradients, launch, "rms_norm backward");
  if (!dgamma || (is_done && finds_weight)) return;
  if (normalized)
    return reduce(launch, "rms_norm weight", RmsGammaOfNormalized{}, x.shape, {&dy, &normalized},
                  dgamma);
  reduce(launch, "rms_norm weight", RmsGammaTerm{rounding_of_rms(call)}, x.shape, {&dy, &x, &rstd},
         dgamma);
}

void ms_layer_norm_forward(const Call& call, Launch& launch) {
  ms_forward<true>(call, launch, "ms_layer_norm");
}
void ms_layer_norm_backward(const Call& call, Launch& launch) {
  ms_backward<true>(call, launch, "ms_layer_norm backward");
}
void ms_rms_norm_forward(const Call& call, Launch& launch) {
  ms_forward<false>(call, launch, "ms_rms_norm");
}
void ms_rms_norm_backward(const Call& call, Launch& launch) {
  ms_backward<false>(call, launch, "ms_rms_norm backward");
}

}  // namespace tidemark::cuda
