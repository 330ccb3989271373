// Quantizes in three kernels: min/max of each group, its running range, then the codes, which
// a kernel of its own packs where they are shorter than a byte. Delayed, the ranges move before and
// one kernel does the rest.
#include "kernels/mesa/mesa.cuh"
#include "kernels/mesa/mesa.h"

namespace tidemark::cuda {
namespace {

/// How a value is walked in the order of its codes, in vectors that no group's border cuts.
struct MesaPlan {
  MesaPlan(const Array& value, const Array& codes, const Quantizer& quantizer, int vector) {
    CHECK(is_dense(codes.layout()) && numel(codes.shape) == numel(value.shape));
    const std::int64_t stretch = groups_of(quantizer, value.shape, codes.data).stretch;
    const Array numbers = numbering(value.shape);
    const Axes<2> axes = merged(axes_over<2>(value.shape, {&value, &numbers}), 1);
    has_vectors = stretch % vector == 0 && axes.rank > 0 && axes.stride[axes.rank - 1][1] == 1 &&
                  axes.extent[axes.rank - 1] % vector == 0 &&
                  is_vectorizable<2>(axes, {&value, &numbers}, vector) &&
                  reinterpret_cast<std::uintptr_t>(codes.data) % 8 == 0;
    const int v = has_vectors ? vector : 1;
    walk = Walk<2>(axes, v);
    groups = {Divisor(stretch / v), Divisor(quantizer.groups)};
    vectors_per_group = numel(value.shape) / v / quantizer.groups;
  }
  Walk<2> walk;
  MesaGroups groups;
  std::int64_t vectors_per_group = 0;
  bool has_vectors = false;
};

/// A value in one piece, and the groups of its elements; no groups where a vector has two of them.
template <typename T>
struct DenseValue {
  DenseValue(const Call& call, const MesaPlan& plan) : value(call.inputs[0]) {
    constexpr int V = vector_size<T>;
    if (!plan.has_vectors || plan.walk.rank != 0 || plan.walk.inner_stride[0] != 1) return;
    value.groups = groups_of(call.quantizer, value.shape, value.data);
    value.groups.bits = 8;
    vectors = plan.walk.vectors;
    CHECK(has_groups_of_vectors(value, V));  // as the plan has found
  }
  explicit operator bool() const { return vectors > 0; }
  Array value;
  std::int64_t vectors = 0;
};

/// What is resident at once: on an H200 enough to read, and the best of those tried to quantize
/// (bench/results/nvidia-h200/2026-11-27/mesa_variants.json).
std::int64_t resident_wanted(const Launch& launch) { return std::int64_t{launch.processors} * 8; }

/// Parts of at least eight vectors per thread, and about eight blocks per multiprocessor.
std::int64_t parts_of(const Launch& launch, std::int64_t vectors, std::int64_t groups) {
  const std::int64_t wanted = (resident_wanted(launch) + groups - 1) / groups;
  const std::int64_t most = std::max<std::int64_t>(1, vectors / (8 * usual_threads));
  return std::clamp<std::int64_t>(wanted, 1, std::min<std::int64_t>(most, 65535));
}

template <typename T>
void pack(const Call& call, Launch& launch, const RandomTensor& random) {
  const Array &value = call.inputs[0], &codes = call.outputs[0];
  const Quantizer& quantizer = call.quantizer;
  const MesaPlan plan(value, codes, quantizer, 1);
  const std::int64_t elements = numel(value.shape);
  start(launch, "mesa pack", quantizer.bits == 4 ? mesa_pack_kernel<T, 4> : mesa_pack_kernel<T, 2>,
        dim3(blocks_for(launch, (elements * quantizer.bits + 7) / 8)), dim3(usual_threads), 0,
        reader<T>(value), tidemark::elements<std::uint8_t>(codes), elements, plan.walk, plan.groups,
        static_cast<const GroupRange*>(quantizer.ranges), random, quantizer.delayed,
        quantizer.wraps ? mesa_wrap_limit : code_levels(quantizer.bits));
}

bool is_first(const Call& call, const Launch& launch) {
  return launch.state.number == 0 && !call.quantizer.continues;
}

template <typename T>
void note_min_max(const Call& call, Launch& launch, const MesaPlan& plan) {
  if constexpr (!std::is_same_v<T, AnyFloat>)
    if (const DenseValue<T> dense(call, plan); dense)
      return start_watching(launch, "mesa min max", mesa_dense_watch_kernel<T>, dense.vectors,
                            vector_size<T>, dense.value.groups, elements<const T>(dense.value),
                            DeviceGroups(dense.value), dense.vectors);
  const Quantizer& quantizer = call.quantizer;
  const std::int64_t parts = parts_of(launch, plan.vectors_per_group, quantizer.groups);
  const std::int64_t per_part = (plan.vectors_per_group + parts - 1) / parts;
  start(launch, "mesa min max",
        plan.has_vectors ? mesa_min_max_kernel<T, vector_size<T>> : mesa_min_max_kernel<T, 1>,
        dim3(static_cast<unsigned>(quantizer.groups), static_cast<unsigned>(parts)),
        dim3(usual_threads), 0, reader<T>(call.inputs[0]), plan.walk, plan.groups,
        plan.vectors_per_group, per_part, quantizer.ranges);
}

void move_ranges(const Call& call, Launch& launch, bool is_first, Noted noted) {
  start(launch, "mesa range", mesa_range_kernel, dim3(blocks_for(launch, call.quantizer.groups)),
        dim3(usual_threads), 0, call.quantizer.groups, is_first, call.inputs[0].dtype, noted,
        call.quantizer.ranges);
}

// Codes of a byte are written while the extremes are noted, which does not change the range; the
// first step, which has none yet, asks for the extremes before.
template <typename T>
void quantize_delayed(const Call& call, Launch& launch, const MesaPlan& plan) {
  const Array &value = call.inputs[0], &codes = call.outputs[0];
  const Quantizer& quantizer = call.quantizer;
  const bool notes_before = is_first(call, launch) || quantizer.bits < 8;
  if (notes_before && !quantizer.knows_min_max) note_min_max<T>(call, launch, plan);
  if (is_first(call, launch)) move_ranges(call, launch, true, Noted::Kept);
  if (quantizer.has_codes && !is_first(call, launch)) return;
  const std::uint64_t dither = step_dither(launch.state.seed, launch.state.number, call.key);
  if (quantizer.bits < 8) return pack<T>(call, launch, {dither, 0});
  if constexpr (!std::is_same_v<T, AnyFloat>)
    if (DenseValue<T> dense(call, plan); dense) {
      dense.value.groups.codes = elements<std::uint8_t>(codes), dense.value.groups.dither = dither;
      return start_watching(launch, "mesa delayed", mesa_dense_watch_kernel<T>, dense.vectors,
                            vector_size<T>, dense.value.groups, elements<const T>(dense.value),
                            DeviceGroups(dense.value), dense.vectors);
    }
  Array watched = numbering(value.shape);
  watched.groups = groups_of(quantizer, value.shape, watched.data);
  watched.groups.codes = elements<std::uint8_t>(codes), watched.groups.dither = dither;
  constexpr int V = vector_size<T>;
  const auto kernel = plan.has_vectors ? mesa_delayed_kernel<T, V> : mesa_delayed_kernel<T, 1>;
  const std::int64_t at_once =
      std::int64_t{launch.processors} * resident_blocks(kernel, usual_threads, 0);
  const unsigned blocks =
      watching_blocks(at_once, plan.walk.vectors, plan.has_vectors ? V : 1, watched.groups);
  start(launch, "mesa delayed", kernel, dim3(blocks), dim3(usual_threads), 0, reader<T>(value),
        plan.walk, DeviceGroups(watched));
}

/// False if codes or values do not lie in vectors of one group: then nothing was done.
bool dequantize_dense(const Array& codes, const Array& value, Launch& launch) {
  if (!codes.groups || value.groups || !is_dense(codes.layout()) || !is_dense(value.layout()) ||
      reinterpret_cast<std::uintptr_t>(value.data) % 16 != 0 ||
      reinterpret_cast<std::uintptr_t>(codes.data) % 8 != 0)
    return false;
  bool is_done = false;
  with_dtype_of(std::array{&value}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, AnyFloat>) {
      constexpr int V = vector_size<T>;
      if (!has_groups_of_vectors(codes, V) || numel(value.shape) % V != 0) return;
      const std::int64_t vectors = numel(value.shape) / V;
      start(launch, "mesa dequantize", mesa_dense_dequantize_kernel<T>,
            dim3(own_group_blocks(own_group_wanted(launch), vectors, V, codes.groups)),
            dim3(usual_threads), 0, DeviceGroups(codes), elements<T>(value), vectors);
      is_done = true;
    }
  });
  return is_done;
}

}  // namespace

void move_range(const Call& call, Launch& launch) {
  const Quantizer& quantizer = call.quantizer;
  if (!is_first(call, launch)) return move_ranges(call, launch, false, Noted::Forgotten);
  start(launch, "mesa forget", mesa_forget_kernel, dim3(blocks_for(launch, quantizer.groups)),
        dim3(usual_threads), 0, quantizer.groups, quantizer.ranges);
}

void quantize(const Call& call, Launch& launch) {
  const Array &value = call.inputs[0], &codes = call.outputs[0];
  if (numel(value.shape) == 0) return;
  const Quantizer& quantizer = call.quantizer;
  with_dtype_of(std::array{&value}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    const MesaPlan plan(value, codes, quantizer, V);
    if (quantizer.delayed) return quantize_delayed<T>(call, launch, plan);
    if (!quantizer.knows_min_max) note_min_max<T>(call, launch, plan);
    move_ranges(call, launch, is_first(call, launch), Noted::Forgotten);
    const RandomTensor random = random_tensor(launch.state, call.key);
    if (quantizer.bits < 8) return pack<T>(call, launch, random);
    const float limit = quantizer.wraps ? mesa_wrap_limit : code_levels(8);
    if constexpr (!std::is_same_v<T, AnyFloat>)
      if (const DenseValue<T> dense(call, plan); dense)
        return start(
            launch, "mesa quantize", mesa_dense_quantize_kernel<T>,
            dim3(own_group_blocks(resident_wanted(launch), dense.vectors, V, dense.value.groups)),
            dim3(usual_threads), 0, elements<const T>(value), DeviceGroups(dense.value),
            elements<std::uint8_t>(codes), dense.vectors, random, limit);
    start(launch, "mesa quantize",
          plan.has_vectors ? mesa_quantize_kernel<T, V> : mesa_quantize_kernel<T, 1>,
          dim3(blocks_for(launch, plan.walk.vectors)), dim3(usual_threads), 0, reader<T>(value),
          elements<std::uint8_t>(codes), plan.walk, plan.groups,
          static_cast<const GroupRange*>(quantizer.ranges), random, limit);
  });
}

void dequantize(const Call& call, Launch& launch) {
  if (numel(call.outputs[0].shape) == 0) return;
  if (dequantize_dense(call.inputs[0], call.outputs[0], launch)) return;
  pointwise(launch, "mesa dequantize", PerElement<Identity>{}, {&call.inputs[0], &call.outputs[0]});
}

}  // namespace tidemark::cuda
