// Reads a fixture's base64 gradients and fills tensors from the hash of their names.
#include "tests/profiler/torch_fixture.h"

#include <cstring>

#include "base/error.h"
#include "base/json_reader.h"

namespace tidemark::profiler {
namespace {

// FNV-1a of the name, then one step of a Weyl sequence per element, then MurmurHash3's finalizer.
std::uint32_t hash_of(std::string_view name, std::uint32_t i) {
  std::uint32_t x = 0x811C9DC5;
  for (const char c : name) x = (x ^ static_cast<unsigned char>(c)) * 0x01000193;
  x += (i + 1) * 0x9E3779B9;
  x = (x ^ (x >> 16)) * 0x85EBCA6B;
  x = (x ^ (x >> 13)) * 0xC2B2AE35;
  return x ^ (x >> 16);
}

template <typename Make>
std::vector<double> each_filled(const Tensor& tensor, Make make) {
  std::vector<double> values(static_cast<std::size_t>(numel(tensor.shape)));
  for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = make(i);
  return values;
}

double signed_byte(std::string_view name, std::uint32_t i) {
  return static_cast<double>(hash_of(name, i) >> 24) - 128;
}

double whole(std::string_view name, std::uint32_t i, std::int64_t limit) {
  return static_cast<double>((hash_of(name, i) >> 8) % limit);
}

unsigned sextet(char c) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t at = digits.find(c);
  CHECK(at != std::string_view::npos);
  return static_cast<unsigned>(at);
}

std::string decoded_base64(std::string_view text) {
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (const char c : text.substr(0, text.find('='))) {
    bits = bits << 6 | sextet(c), count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return bytes;
}

TorchFixture::Gradient read_gradient(JsonView view) {
  std::vector<std::int64_t> dims;
  for (const JsonView dim : view.at("shape").items()) dims.push_back(dim.integer());
  TorchFixture::Gradient gradient{.shape = Shape(dims), .values = {}};
  const std::string bytes = decoded_base64(view.at("float32").text());
  if (bytes.size() != 4 * static_cast<std::size_t>(numel(gradient.shape)))
    view.fail("as many numbers as the shape says are needed");
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    float value = 0;
    std::memcpy(&value, bytes.data() + i, 4);
    gradient.values.push_back(static_cast<double>(value));
  }
  return gradient;
}

TorchError read_error(JsonView view) {
  return {view.at("loss").number(0, 1), view.at("gradients").number(0, 1)};
}

}  // namespace

TorchFixture read_torch_fixture(const std::string& network) {
  const JsonDocument document =
      read_json(std::string(TIDEMARK_TESTS_DIR) + "/reference/gradients/" + network + ".json",
                FileKind::TrainingData);
  const JsonView root = document.root();
  TorchFixture fixture{.loss = root.at("loss").number(0, 1e3),
                       .float32 = read_error(root.at("error").at("float32")),
                       .bfloat16 = read_error(root.at("error").at("bfloat16")),
                       .gradients = {}};
  for (const JsonView gradient : root.at("gradients").members())
    fixture.gradients.emplace(gradient.key(), read_gradient(gradient));
  return fixture;
}

std::vector<double> torch_parameter(const Tensor& parameter) {
  const std::string& name = parameter.name;
  if (parameter.shape.rank() == 1 && name.ends_with("weight"))
    return each_filled(parameter,
                       [&](auto i) { return 1 + std::floor(signed_byte(name, i) / 4) / 128; });
  double scale = 1.0 / 1024;
  if (parameter.shape.rank() > 1) {
    const std::int64_t inputs = numel(parameter.shape) / parameter.shape[0];
    scale = 1.0 / 128;
    for (std::int64_t most = 6; most < inputs; most *= 4) scale /= 2;
  }
  return each_filled(parameter, [&](auto i) { return scale * signed_byte(name, i); });
}

std::vector<double> torch_input(const Tensor& input, std::int64_t limit, bool is_masked_language) {
  const std::string& name = input.name;
  if (name == "images")
    return each_filled(input, [&](auto i) { return signed_byte(name, i) / 64; });
  if (name == "token_type_ids")
    limit = 2;
  else if (name != "input_ids" && name != "decoder_input_ids" && name != "targets" &&
           name != "labels")
    return {};
  const bool some = name == "labels" && is_masked_language;
  return each_filled(input, [&](auto i) {
    return some && whole("is_masked", i, 3) > 0 ? -100 : whole(name, i, limit);
  });
}

}  // namespace tidemark::profiler
