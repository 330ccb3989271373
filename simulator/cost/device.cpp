// Rates of a device, and devices found by name among the embedded ones or read from a file.
#include "simulator/cost/device.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/embedded_file.h"
#include "base/error.h"
#include "base/files.h"

namespace tidemark {

std::span<const EmbeddedFile> embedded_devices();  // made from simulator/devices/ at build time

double gemm_flops_per_second(const Device& device, MathUnit unit) {
  const auto wanted = static_cast<std::size_t>(unit);
  const std::size_t used = device.flops_per_second[wanted] > 0 ? wanted : 0;
  return device.flops_per_second[used] * device.gemm_efficiency[used];
}

double attention_flops_per_second(const Device& device, MathUnit unit) {
  const bool is_wide = unit != MathUnit::Fp16 && unit != MathUnit::Bf16;
  const double rate = device.flops_per_second[static_cast<std::size_t>(MathUnit::Fp16)];
  if (is_wide || !device.attention_efficiency || rate == 0)
    return gemm_flops_per_second(device, unit);
  return rate * *device.attention_efficiency;
}

double time_on(const Curve& curve, double work) {
  CHECK(!curve.empty());
  const auto next = std::ranges::lower_bound(curve, work, {}, &CurvePoint::work);
  if (next == curve.begin()) return curve.front().time * work / curve.front().work;
  if (next == curve.end()) return curve.back().time * work / curve.back().work;
  const CurvePoint &low = *(next - 1), &high = *next;
  const double share = std::log(work / low.work) / std::log(high.work / low.work);
  return low.time * std::pow(high.time / low.time, share);
}

double stream_bytes_per_second(const Device& device) {
  return device.bytes_per_second * device.memory_efficiency;
}

const std::vector<Device>& known_devices() {
  static const std::vector<Device> devices = [] {
    std::vector<Device> read;
    for (const EmbeddedFile& file : embedded_devices())
      read.push_back(read_device(file.text, file.name));
    std::ranges::sort(read, {}, &Device::name);
    return read;
  }();
  return devices;
}

Device find_device(const std::string& name_or_path) {
  const bool is_path = name_or_path.find('/') != std::string::npos ||
                       name_or_path.ends_with(".json") || name_or_path.ends_with(".json.zst");
  if (is_path) return read_device(read_file(name_or_path, FileKind::Device), name_or_path);

  std::string name = name_or_path;
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  // Its file has its name: the others need not be read.
  const auto file = std::ranges::find(embedded_devices(), name + ".json", &EmbeddedFile::name);
  if (file != embedded_devices().end()) return read_device(file->text, file->name);

  const std::vector<Device>& devices = known_devices();
  std::vector<std::string_view> names;
  names.reserve(devices.size());
  for (const Device& device : devices) names.push_back(device.name);
  throw UsageError(unknown_name("device", name, names) + "; a device file's name ends in .json");
}

}  // namespace tidemark
