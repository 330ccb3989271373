// The bounds of an image's size, positions of patches, and the class targets of a batch of images.
#include "traces/models/image_model.h"

#include <fmt/format.h>

namespace tidemark {

std::int64_t image_size(const StepOptions& options, std::int64_t of_config) {
  constexpr std::int64_t largest = std::int64_t{1} << 20;
  const std::int64_t image = options.image.value_or(of_config);
  if (image < 1 || image > largest)
    throw UsageError(fmt::format("image size {} is not between 1 and {}", image, largest));
  return image;
}

std::int64_t patches_per_side(std::int64_t image, std::int64_t patch) {
  if (image >= patch && image % patch == 0) return image / patch;
  throw UsageError(
      fmt::format("image size {} is not a multiple of the patch size {}", image, patch));
}

TensorId stretched_positions(TraceBuilder& b, const std::string& name, const PositionTable& of) {
  const std::int64_t rows = of.of_table * of.of_table, wanted = of.side * of.side;
  const TensorId table = b.parameter(name, {1, rows + of.prefix, of.width});
  if (of.of_table == of.side) return table;
  const TensorId first = b.select(name + ".prefix", table, {1, of.prefix, of.width});
  TensorId grid =
      b.select(name + ".grid", table, {1, rows, of.width}, LayoutTransform::Slice, of.prefix);
  grid = b.cast(name + ".float", grid, DType::Float32);
  const OutputSpec stretched{"", {1, wanted, of.width}, DType::Float32};
  grid = b.opaque(name + ".stretch", std::array{grid}, std::span(&stretched, 1),
                  {.operation = "aten::upsample_bicubic2d",
                   .gradients = 1,
                   .computes = Formula::StretchBicubic});
  grid = b.cast(name + ".round", grid, b[table].dtype);
  return b.concat(name + ".join", std::array{first, grid}, {1, wanted + of.prefix, of.width});
}

TensorId image_targets(TraceBuilder& b, Head head) {
  return head == Head::None
             ? no_tensor
             : b.input("targets", {b.step().batch}, DType::Int64, fill::ImageClasses{});
}

}  // namespace tidemark
