// The file of a device: which figures it has, how they are read, written and shown.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "base/json_reader.h"
#include "simulator/cost/figure_text.h"

namespace tidemark {
namespace {

constexpr std::string_view format_name = "tidemark-device-1";
constexpr std::string_view capability_key = "compute_capability";

struct FigureSpec {
  std::string key;
  std::string_view unit;
  double min;
  double max;
};

/// Calls visit(spec, field) for each figure of `device`, which may be const, in file order: the
/// only list of them. A unit that the device does not have has no efficiency.
template <class SomeDevice, class Visit>
void for_each_figure(SomeDevice& device, Visit visit) {
  visit(FigureSpec{"capacity", "B", 1 << 20, 1e15}, device.capacity);
  visit(FigureSpec{"context", "B", 0, 1e15}, device.context);
  visit(FigureSpec{"l2_cache", "B", 1, 1e12}, device.l2_cache);
  visit(FigureSpec{"sm_count", "", 1, 65536}, device.sm_count);
  visit(FigureSpec{"clock_hz", "Hz", 1e6, 1e11}, device.clock_hz);
  visit(FigureSpec{"bytes_per_second", "B/s", 1e6, 1e17}, device.bytes_per_second);
  visit(FigureSpec{"memory_efficiency", "", 0.01, 1}, device.memory_efficiency);
  visit(FigureSpec{"host_link_bytes_per_second", "B/s", 1e6, 1e15},
        device.host_link_bytes_per_second);
  for (std::size_t unit = 0; unit < math_unit_names.size(); ++unit) {
    const bool required = unit == static_cast<std::size_t>(MathUnit::Fp32);
    const std::string name(math_unit_names[unit]);
    visit(FigureSpec{name + "_flops_per_second", "FLOP/s", required ? 1e6 : 0, 1e19},
          device.flops_per_second[unit]);
    if (device.flops_per_second[unit] > 0)
      visit(FigureSpec{name + "_gemm_efficiency", "", 0.01, 1.5}, device.gemm_efficiency[unit]);
  }
  visit(FigureSpec{"even_rows_gemm_share", "", 0.001, 1}, device.even_rows_gemm_share);
  visit(FigureSpec{"odd_rows_gemm_share", "", 0.001, 1}, device.odd_rows_gemm_share);
  visit(FigureSpec{"fp8_flops_per_second", "FLOP/s", 1e6, 1e19}, device.fp8_flops_per_second);
  visit(FigureSpec{"fp8_gemm_efficiency", "", 0.01, 1.5}, device.fp8_gemm_efficiency);
  visit(FigureSpec{"fp4_flops_per_second", "FLOP/s", 1e6, 1e19}, device.fp4_flops_per_second);
  visit(FigureSpec{"fp4_gemm_efficiency", "", 0.01, 1.5}, device.fp4_gemm_efficiency);
  visit(FigureSpec{"attention_efficiency", "", 0.01, 1.5}, device.attention_efficiency);
  visit(FigureSpec{"kernel_gap", "ns", 0, 1e9}, device.kernel_gap);
  visit(FigureSpec{"host_launch", "ns", 0, 1e9}, device.host_launch);
  visit(FigureSpec{"product_share", "", 0.001, 1}, device.product_share);
  visit(FigureSpec{"stream_share", "", 0.001, 1}, device.stream_share);
}

// A figure as a number. All limits above are below 2^53, so integers survive the way through.
double number_of(Bytes field) { return static_cast<double>(field.count); }
double number_of(Nanoseconds field) { return static_cast<double>(field.count()); }
double number_of(int field) { return field; }
double number_of(double field) { return field; }

template <class Field>
constexpr bool may_be_unknown = false;
template <class Field>
constexpr bool may_be_unknown<std::optional<Field>> = true;

template <class Field>
bool is_known(const Field& field) {
  if constexpr (may_be_unknown<Field>) return field.has_value();
  return true;
}
template <class Field>
double number_of(const std::optional<Field>& field) {
  return number_of(field.value_or(Field{}));
}

std::int64_t whole(const JsonView& value, const FigureSpec& spec) {
  return value.integer(static_cast<std::int64_t>(spec.min), static_cast<std::int64_t>(spec.max));
}
void read(const JsonView& value, const FigureSpec& spec, Bytes& field) {
  field.count = whole(value, spec);
}
void read(const JsonView& value, const FigureSpec& spec, Nanoseconds& field) {
  field = Nanoseconds(whole(value, spec));
}
void read(const JsonView& value, const FigureSpec& spec, int& field) {
  field = static_cast<int>(whole(value, spec));
}
void read(const JsonView& value, const FigureSpec& spec, double& field) {
  field = value.number(spec.min, spec.max);
}
template <class Field>
void read(const JsonView& value, const FigureSpec& spec, std::optional<Field>& field) {
  read(value, spec, field.emplace());
}

CurvePoint read_point(const JsonView& pair) {
  std::array<double, 2> numbers{};
  if (pair.items().size() != numbers.size())
    pair.fail("found another list; need [promised ns, measured ns]");
  std::size_t i = 0;
  for (const JsonView number : pair.items()) numbers[i++] = number.number(1e-3, 1e20);
  return {numbers[0], numbers[1]};
}

Curve read_curve(const JsonView& list) {
  Curve curve;
  for (const JsonView pair : list.items()) {
    const CurvePoint point = read_point(pair);
    if (!curve.empty() && point.work <= curve.back().work)
      pair.fail("found no more than in the point before; need rising promises");
    curve.push_back(point);
  }
  if (curve.empty()) list.fail("found no point; need [promised ns, measured ns]");
  return curve;
}

std::string curves_text(const Device& device) {
  std::string lines;
  for (const auto& [key, curve] : device.curves) {
    lines += fmt::format("{}    {}: [", lines.empty() ? "" : ",\n", json_quoted(key));
    for (const CurvePoint& point : curve)
      lines +=
          fmt::format("{}[{}, {}]", &point == curve.data() ? "" : ", ", point.work, point.time);
    lines += "]";
  }
  return lines.empty() ? "" : ",\n  \"kernels\": {\n" + lines + "\n  }";
}

// Text, or like a figure with its source.
void read_capability(const JsonView& view, Device& device) {
  if (view.kind() == JsonKind::Text) return void(device.compute_capability = plain_text(view));
  view.allow_only({"value", "kind", "source"});
  device.compute_capability = plain_text(view.at("value"));
  device.sources[std::string(capability_key)] = read_source(view);
}

std::string capability_text(const Device& device) {
  const auto source = device.sources.find(capability_key);
  const std::string value = json_quoted(device.compute_capability);
  return source == device.sources.end() ? value : sourced(value, source->second);
}

}  // namespace

std::vector<Figure> figures(const Device& device) {
  std::vector<Figure> result;
  for_each_figure(device, [&](const FigureSpec& spec, const auto& field) {
    if (!is_known(field)) return;
    const double number = number_of(field);
    const auto source = device.sources.find(spec.key);
    result.push_back({.key = spec.key,
                      .number = number,
                      .unit = std::string(spec.unit),
                      .text = display_text(number, spec.unit),
                      .source = source == device.sources.end() ? FigureSource{} : source->second});
  });
  return result;
}

Device read_device(std::string_view json, std::string_view file) {
  const JsonDocument document(json, file);
  const JsonView root = document.root();
  if (const auto old = root.find("curves"))
    old->fail(
        "found kernels' times by FLOP and bytes, which are no longer read; measure the device "
        "again (tidemark calibrate)");
  root.allow_only({"format", "name", "title", "compute_capability", "figures", "kernels"});
  const JsonView format = root.at("format");
  if (format.text() != format_name)
    format.fail(fmt::format("found another format; need '{}'", format_name));

  Device device;
  device.name = plain_name(root.at("name"));
  device.title = plain_text(root.at("title"));
  read_capability(root.at("compute_capability"), device);

  const JsonView listed = root.at("figures");
  std::vector<std::string> keys;
  for_each_figure(device, [&](const FigureSpec& spec, auto& field) {
    keys.push_back(spec.key);
    using Field = std::remove_cvref_t<decltype(field)>;
    if (may_be_unknown<Field> && !listed.find(spec.key)) return;
    const JsonView figure = listed.at(spec.key);
    figure.allow_only({"value", "kind", "source"});
    read(figure.at("value"), spec, field);
    device.sources[spec.key] = read_source(figure);
  });
  listed.allow_only({keys.begin(), keys.end()});
  if (const auto kernels = root.find("kernels"))
    for (const JsonView curve : kernels->members())
      device.curves[std::string(curve.key())] = read_curve(curve);
  return device;
}

std::string write_device(const Device& device) {
  std::string lines;
  for (const Figure& figure : figures(device))
    lines += fmt::format("{}    \"{}\": {}", lines.empty() ? "" : ",\n", figure.key,
                         sourced(figure.unit == "B" ? fmt::format("{:.0f}", figure.number)
                                                    : number_text(figure.number),
                                 figure.source));
  return fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"name\": {},\n  \"title\": {},\n"
      "  \"compute_capability\": {},\n  \"figures\": {{\n{}\n  }}{}\n}}\n",
      format_name, json_quoted(device.name), json_quoted(device.title), capability_text(device),
      lines, curves_text(device));
}

}  // namespace tidemark
