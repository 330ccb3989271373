// Resamples plane by plane, with the taps of both axes made once; see resample.h.
#include "kernels/cpu/elements.h"
#include "kernels/cpu/map.h"
#include "kernels/resample/resample.h"

namespace tidemark::cpu {
namespace {

/// The taps of both axes, and what they read of one plane.
class Planes {
 public:
  Planes(Resampling kind, const Array& small, const Array& large)
      : kind_(kind), height_(small.shape[2]), width_(small.shape[3]) {
    for (std::int64_t i = 0; i < large.shape[2]; ++i)
      rows_.push_back(taps_of(kind, i, height_, large.shape[2]));
    for (std::int64_t j = 0; j < large.shape[3]; ++j)
      columns_.push_back(taps_of(kind, j, width_, large.shape[3]));
  }

  /// Calls body(i, j, u, v, weight) for each element and each that it is made of.
  template <typename Body>
  void for_terms(Body&& body) const {
    for (std::size_t i = 0; i < rows_.size(); ++i)
      for (std::size_t j = 0; j < columns_.size(); ++j)
        for (std::int64_t s = 0; s < rows_[i].count; ++s)
          for (std::int64_t t = 0; t < columns_[j].count; ++t)
            body(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j),
                 rows_[i].index(s, height_), columns_[j].index(t, width_),
                 rows_[i].weight(kind_, s) * columns_[j].weight(kind_, t));
  }

 private:
  Resampling kind_;
  std::int64_t height_, width_;
  std::vector<Taps> rows_, columns_;
};

/// The array of one plane, as fp32 in scratch; writes it back.
class Plane {
 public:
  Plane(const Array& planes, Workspace& workspace, std::size_t slot)
      : planes_(planes), width_(planes.shape[3]) {
    values_ = workspace.floats(static_cast<std::size_t>(planes.shape[2] * width_), slot);
  }
  float& at(std::int64_t row, std::int64_t column) {
    return values_[static_cast<std::size_t>(row * width_ + column)];
  }
  void clear() { std::ranges::fill(values_, 0.0f); }
  void read(const Index& plane) {
    for (std::int64_t row = 0; row < planes_.shape[2]; ++row)
      gather(run(plane, row), width_, &at(row, 0));
  }
  void write(const Index& plane) {
    for (std::int64_t row = 0; row < planes_.shape[2]; ++row)
      scatter(&at(row, 0), width_, run(plane, row));
  }

 private:
  Run run(const Index& plane, std::int64_t row) const {
    return {planes_.data + offset_of(planes_, {plane[0], plane[1], row}), planes_.dtype,
            planes_.strides[3]};
  }

  const Array& planes_;
  std::int64_t width_;
  std::span<float> values_;
};

}  // namespace

void resample_forward(const Call& call, Workspace& workspace) {
  const Array x = as_planes(call.inputs[0]), y = as_planes(call.outputs[0]);
  const Planes planes(resampling_of(call.formula), x, y);
  Plane from(x, workspace, 0), to(y, workspace, 1);
  for_each_index({y.shape[0], y.shape[1]}, [&](const Index& plane) {
    from.read(plane), to.clear();
    planes.for_terms([&](auto i, auto j, auto u, auto v, float weight) {
      to.at(i, j) += weight * from.at(u, v);
    });
    to.write(plane);
  });
}

void resample_backward(const Call& call, Workspace& workspace) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return set_all(call.d_inputs[0], 0.0f);
  const Array dx = as_planes(call.d_inputs[0]), dy = as_planes(call.d_outputs[0]);
  const Planes planes(resampling_of(call.formula), dx, dy);
  Plane from(dy, workspace, 0), to(dx, workspace, 1);
  for_each_index({dx.shape[0], dx.shape[1]}, [&](const Index& plane) {
    from.read(plane), to.clear();
    planes.for_terms([&](auto i, auto j, auto u, auto v, float weight) {
      to.at(u, v) += weight * from.at(i, j);
    });
    to.write(plane);
  });
}

}  // namespace tidemark::cpu
