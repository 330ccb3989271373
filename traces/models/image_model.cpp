// The bounds of an image's size, and the class targets of a batch of images.
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

TensorId image_targets(TraceBuilder& b, Head head) {
  return head == Head::None
             ? no_tensor
             : b.input("targets", {b.step().batch}, DType::Int64, fill::ImageClasses{});
}

}  // namespace tidemark
