// Bytes as training data for a model of images, one of text and one of too few words for it: every
// batch has a value in range for each element, or the file is refused in one line.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "profiler/data_file.h"
#include "tests/fuzz/refusals.h"
#include "tests/support/small_models.h"
#include "traces/trace_builder.h"

namespace {

using namespace tidemark;

Trace model_of_images() {
  return build_trace(small_model("images", VitConfig{.image = 2,
                                                     .patch = 2,
                                                     .channels = 1,
                                                     .width = 4,
                                                     .depth = 1,
                                                     .heads = 1,
                                                     .mlp = 4,
                                                     .classes = 3}),
                     {.batch = 2});
}

Trace model_of_text(std::int64_t vocabulary) {
  Model model = small_gpt2(1);
  std::get<Gpt2Config>(model.config).vocabulary = vocabulary;
  return build_trace(model, {.batch = 1, .sequence = 4});
}

void take_batches(const profiler::Data& data, const Trace& trace) {
  for (std::size_t i = 0; i < trace.tensors.size(); ++i) {
    const auto id = static_cast<TensorId>(i);
    if (trace[id].category != Category::Input) continue;
    for (const std::int64_t step : {0, 1, 1000}) {
      const std::vector<double> values = data(trace, id, step);
      require(values.empty() || std::ssize(values) == numel(trace[id].shape));
      require(std::ranges::all_of(values, [](double v) { return v >= -2 && v <= 255; }));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array traces = {model_of_images(), model_of_text(256), model_of_text(61)};
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const Trace& trace : traces) {
    try {
      take_batches(profiler::data_of_bytes(bytes, "fuzz", trace), trace);
    } catch (const InputError& error) {
      require_one_line(error.what());
    }
  }
  return 0;
}
