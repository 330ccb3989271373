// Reads the file whole and hands out bytes as tokens, or records as pixels and labels.
#include "profiler/data_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "profiler/initial_values.h"

namespace tidemark::profiler {
namespace {

constexpr std::int64_t byte_values = 256;

template <typename Kind>
bool holds(const Trace& trace, const Tensor& tensor) {
  const InputFill* fill = fill_of(trace, tensor);
  return fill && std::holds_alternative<Kind>(*fill);
}

template <typename Kind>
TensorId find(const Trace& trace) {
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (holds<Kind>(trace, trace.tensors[t])) return static_cast<TensorId>(t);
  return no_tensor;
}

double byte_at(const std::string& bytes, std::int64_t i) {
  const std::size_t place = static_cast<std::size_t>(i) % bytes.size();
  return static_cast<unsigned char>(bytes[place]);
}

std::int64_t shortest_row(const Trace& trace) {
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (const Tensor& tensor : trace.tensors)
    if (holds<fill::Words>(trace, tensor)) shortest = std::min(shortest, tensor.shape.back());
  return shortest;
}

Data text(const std::string& path, std::shared_ptr<const std::string> bytes, const Trace& trace) {
  for (std::size_t i = 0; i < trace.tensors.size(); ++i) {
    if (!holds<fill::Words>(trace, trace.tensors[i])) continue;
    if (const std::int64_t words = index_range(trace, static_cast<TensorId>(i));
        words < byte_values)
      throw InputError(fmt::format("{}: text needs a vocabulary of 256 or more; {} has {}", path,
                                   trace.model, words));
  }
  return [bytes = std::move(bytes)](const Trace& of, TensorId input, std::int64_t step) {
    const Tensor& tensor = of[input];
    std::vector<double> values;
    if (!holds<fill::Words>(of, tensor)) return values;
    // A row of labels that goes on for one word more begins where the row of ids does.
    const std::int64_t width = tensor.shape.back(), row = shortest_row(of);
    const std::int64_t rows = numel(tensor.shape) / width;
    for (std::int64_t r = step * rows; r < (step + 1) * rows; ++r)
      for (std::int64_t i = 0; i < width; ++i) values.push_back(byte_at(*bytes, r * row + i));
    return values;
  };
}

/// Labelled images of one size.
struct Records {
  std::shared_ptr<const std::string> bytes;
  std::int64_t pixels = 0;

  std::int64_t count() const { return static_cast<std::int64_t>(bytes->size()) / (pixels + 1); }
  std::int64_t begin(std::int64_t i) const { return i % count() * (pixels + 1); }
};

void check(const std::string& path, const Records& records, const Trace& trace) {
  const auto size = static_cast<std::int64_t>(records.bytes->size());
  if (size % (records.pixels + 1) != 0)
    throw InputError(fmt::format(
        "{}: {} bytes are no whole number of records of 1 + {} bytes, a label and an image of {} "
        "(use --image for another size)",
        path, size, records.pixels, trace.model));
  const TensorId targets = find<fill::ImageClasses>(trace);
  if (targets == no_tensor) return;
  const std::int64_t classes = index_range(trace, targets);
  for (std::int64_t i = 0; i < records.count(); ++i) {
    const double label = byte_at(*records.bytes, records.begin(i));
    if (label >= static_cast<double>(classes))
      throw InputError(fmt::format("{}: record {} has label {}; {} has {} classes", path, i, label,
                                   trace.model, classes));
  }
}

std::vector<double> images(const Records& records, std::int64_t batch, std::int64_t step) {
  constexpr double middle = 127.5, scale = 64;  // about zero mean and unit variance
  std::vector<double> values;
  for (std::int64_t i = 0; i < batch; ++i)
    for (std::int64_t p = 0; p < records.pixels; ++p)
      values.push_back((byte_at(*records.bytes, records.begin(step * batch + i) + 1 + p) - middle) /
                       scale);
  return values;
}

Data labelled_images(const std::string& path, Records records, const Trace& trace) {
  check(path, records, trace);
  return [records = std::move(records)](const Trace& of, TensorId input, std::int64_t step) {
    const Tensor& tensor = of[input];
    const std::int64_t batch = tensor.shape.rank() > 0 ? tensor.shape[0] : 0;
    if (holds<fill::Pixels>(of, tensor)) return images(records, batch, step);
    std::vector<double> labels;
    if (holds<fill::ImageClasses>(of, tensor))
      for (std::int64_t i = 0; i < batch; ++i)
        labels.push_back(byte_at(*records.bytes, records.begin(step * batch + i)));
    return labels;
  };
}

}  // namespace

Data data_of_bytes(std::string bytes, const std::string& file, const Trace& trace) {
  if (bytes.empty()) throw InputError(file + ": the file is empty");
  const auto shared = std::make_shared<const std::string>(std::move(bytes));
  const TensorId picture = find<fill::Pixels>(trace);
  if (picture == no_tensor && find<fill::Words>(trace) == no_tensor)
    throw InputError(file + ": the trace reads neither images nor words");
  if (picture == no_tensor) return text(file, shared, trace);
  const Shape& shape = trace[picture].shape;
  return labelled_images(file, {shared, numel(shape) / shape[0]}, trace);
}

Data data_of_file(const std::string& path, const Trace& trace) {
  return data_of_bytes(read_file(path, FileKind::TrainingData), path, trace);
}

}  // namespace tidemark::profiler
