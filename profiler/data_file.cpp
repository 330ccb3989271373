#include "profiler/data_file.h"

#include <fmt/format.h>

#include <memory>

#include "traces/error.h"
#include "traces/files.h"

namespace tidemark {
namespace {

constexpr std::int64_t byte_values = 256;

TensorId find(const Trace& trace, std::string_view name) {
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (trace.tensors[t].name == name) return static_cast<TensorId>(t);
  return no_tensor;
}

double byte_at(const std::string& bytes, std::int64_t i) {
  const std::size_t place = static_cast<std::size_t>(i) % bytes.size();
  return static_cast<unsigned char>(bytes[place]);
}

std::int64_t classes_of(const Trace& trace) {
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::NllLoss) return trace[trace.inputs(op)[0]].shape.back();
  return 0;
}

Data text(const std::string& path, std::shared_ptr<const std::string> bytes, const Trace& trace) {
  if (classes_of(trace) < byte_values)
    throw InputError(fmt::format("{}: text needs a vocabulary of 256 or more; {} has {}", path,
                                 trace.model, classes_of(trace)));
  return [bytes = std::move(bytes)](const Trace& of, TensorId input, std::int64_t step) {
    const Tensor& tensor = of[input];
    std::vector<double> values;
    if (tensor.name != "input_ids" && tensor.name != "labels") return values;
    const std::int64_t count = numel(tensor.shape);
    for (std::int64_t i = 0; i < count; ++i) values.push_back(byte_at(*bytes, step * count + i));
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
  for (std::int64_t i = 0; i < records.count(); ++i) {
    const double label = byte_at(*records.bytes, records.begin(i));
    if (label >= static_cast<double>(classes_of(trace)))
      throw InputError(fmt::format("{}: record {} has label {}; {} has {} classes", path, i, label,
                                   trace.model, classes_of(trace)));
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
    if (tensor.name == "images") return images(records, batch, step);
    std::vector<double> labels;
    if (tensor.name == "targets")
      for (std::int64_t i = 0; i < batch; ++i)
        labels.push_back(byte_at(*records.bytes, records.begin(step * batch + i)));
    return labels;
  };
}

}  // namespace

Data data_of_file(const std::string& path, const Trace& trace) {
  auto bytes = std::make_shared<const std::string>(read_file(path));
  if (bytes->empty()) throw InputError(path + ": the file is empty");
  const TensorId picture = find(trace, "images");
  if (picture == no_tensor && find(trace, "input_ids") == no_tensor)
    throw InputError(path + ": the trace has neither images nor input_ids to fill");
  if (picture == no_tensor) return text(path, std::move(bytes), trace);
  const Shape& shape = trace[picture].shape;
  return labelled_images(path, {std::move(bytes), numel(shape) / shape[0]}, trace);
}

}  // namespace tidemark
