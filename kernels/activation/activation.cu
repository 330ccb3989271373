// Launches each activation's pointwise kernel; ReGELU2 and ReSiLU2 with 2-bit codes instead of x.
#include "kernels/activation/activation.cuh"
#include "kernels/activation/activation.h"

namespace tidemark::cuda {
namespace {

template <typename Function>
void forward(const Call& call, Launch& launch, const char* name) {
  watched_pointwise(launch, name, PerElement<Function>{}, {&call.inputs[0], &call.outputs[0]});
}

template <typename Function>
void backward(const Call& call, Launch& launch, const char* name, const Array& saved) {
  const Array& dy = call.d_outputs[0];
  const Array& dx = call.d_inputs[0];
  if (!dy) return fill_with(launch, dx, 0);
  pointwise(launch, name, PerElement<Function>{}, {&dy, &saved, &dx});
}

/// `from` and `to` are x and y, or dy and dx.
template <typename Steps, Direction direction>
void coded(Launch& launch, const char* name, const Array& from, const Array& to,
           const Array& codes) {
  const Array numbers = numbering(from.shape);
  const std::int64_t count = numel(from.shape);
  if (count == 0) return;
  // In the order of the codes, and dense only if both arrays lie in it without a gap.
  const Axes<3> all = merged(axes_over<3>(from.shape, {&from, &to, &numbers}), 2);
  Axes<2> axes;
  for (int i = 0; i < all.rank; ++i) axes.add(all.extent[i], {all.stride[i][0], all.stride[i][1]});
  with_dtype_of(std::array{&from, &to}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    const bool vectors = axes.rank <= 1 && is_vectorizable<2>(axes, {&from, &to}, V) &&
                         axes.stride[0][0] == 1 && axes.stride[0][1] == 1 &&
                         reinterpret_cast<std::uintptr_t>(codes.data) % 2 == 0;
    if constexpr (!std::is_same_v<T, AnyFloat>)
      if (vectors && count % V == 0)
        return start(launch, name, dense_coded_kernel<Steps, direction, T>,
                     dim3(blocks_for(launch, (count / V + 1) / 2)), dim3(usual_threads), 0,
                     elements<const T>(from), elements<T>(to), elements<std::uint8_t>(codes),
                     count / V);
    const Walk<2> walk(axes, vectors ? V : 1);
    const auto kernel = vectors ? coded_kernel<Steps, direction, T, V, true>
                                : coded_kernel<Steps, direction, T, 4, false>;
    const std::int64_t units = (count + (vectors ? V : 4) - 1) / (vectors ? V : 4);
    start(launch, name, kernel, dim3(blocks_for(launch, units)), dim3(usual_threads), 0,
          reader<T>(from), writer<T>(to), elements<std::uint8_t>(codes), walk, count);
  });
}

template <typename Steps>
void coded_forward(const Call& call, Launch& launch, const char* name) {
  coded<Steps, Direction::Forward>(launch, name, call.inputs[0], call.outputs[0], call.outputs[1]);
}

template <typename Steps>
void coded_backward(const Call& call, Launch& launch, const char* name) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return fill_with(launch, call.d_inputs[0], 0);
  coded<Steps, Direction::Backward>(launch, name, call.d_outputs[0], call.d_inputs[0],
                                    call.outputs[1]);
}

}  // namespace

void gelu_forward(const Call& call, Launch& launch) {
  call.settings.tanh_approx ? forward<GeluTanh>(call, launch, "gelu tanh")
                            : forward<GeluErf>(call, launch, "gelu");
}
void gelu_backward(const Call& call, Launch& launch) {
  call.settings.tanh_approx
      ? backward<GeluTanhGradient>(call, launch, "gelu tanh backward", call.inputs[0])
      : backward<GeluErfGradient>(call, launch, "gelu backward", call.inputs[0]);
}

void gelu_composed_forward(const Call& call, Launch& launch) {
  watched_pointwise(
      launch, "gelu composed", GeluComposed{},
      {&call.inputs[0], &call.outputs[0], &call.outputs[1], &call.outputs[2], &call.outputs[3]});
}
void gelu_composed_backward(const Call& call, Launch& launch) {
  const Array& dy = call.d_outputs[0];
  if (!dy) return fill_with(launch, call.d_inputs[0], 0);
  pointwise(launch, "gelu composed backward", PerElement<GeluComposedGradient>{},
            {&dy, &call.inputs[0], &call.outputs[1], &call.outputs[2], &call.outputs[3],
             &call.d_inputs[0]});
}

void silu_forward(const Call& call, Launch& launch) { forward<Silu>(call, launch, "silu"); }
void silu_backward(const Call& call, Launch& launch) {
  backward<SiluGradient>(call, launch, "silu backward", call.inputs[0]);
}

void tanh_forward(const Call& call, Launch& launch) { forward<Tanh>(call, launch, "tanh"); }
void tanh_backward(const Call& call, Launch& launch) {
  backward<TanhGradient>(call, launch, "tanh backward", call.outputs[0]);
}

void sigmoid_forward(const Call& call, Launch& launch) {
  forward<Sigmoid>(call, launch, "sigmoid");
}
void sigmoid_backward(const Call& call, Launch& launch) {
  backward<SigmoidGradient>(call, launch, "sigmoid backward", call.outputs[0]);
}

void relu_forward(const Call& call, Launch& launch) { forward<Relu>(call, launch, "relu"); }
void relu_backward(const Call& call, Launch& launch) {
  backward<ReluGradient>(call, launch, "relu backward", call.outputs[0]);
}

void regelu2_forward(const Call& call, Launch& launch) {
  coded_forward<ReGelu2>(call, launch, "regelu2");
}
void regelu2_backward(const Call& call, Launch& launch) {
  coded_backward<ReGelu2>(call, launch, "regelu2 backward");
}
void resilu2_forward(const Call& call, Launch& launch) {
  coded_forward<ReSilu2>(call, launch, "resilu2");
}
void resilu2_backward(const Call& call, Launch& launch) {
  coded_backward<ReSilu2>(call, launch, "resilu2 backward");
}

}  // namespace tidemark::cuda
