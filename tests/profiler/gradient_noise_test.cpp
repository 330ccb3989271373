// The numbers of small_networks.json are what a replay measures, and they may be added up.
#include "simulator/noise/gradient_noise.h"

#include <gmock/gmock.h>

#include "base/json_reader.h"
#include "tests/support/noise_networks.h"

namespace tidemark::profiler::gradient_noise_test {
namespace {

NoiseNetwork network_called(std::string_view name) {
  for (NoiseNetwork& network : noise_networks())
    if (network.name == name) return std::move(network);
  throw std::runtime_error("no such network");
}

/// In blocks.
std::vector<TensorId> storages_read_as(const Trace& trace, std::string_view readers) {
  const Needs needs = derive_needs(trace);
  const std::vector<std::string> found = readers_in_codes(trace, needs);
  std::vector<TensorId> storages;
  for (std::size_t t = 0; t < found.size(); ++t)
    if (found[t] == readers && trace[needs.producer[t]].block >= 0)
      storages.push_back(static_cast<TensorId>(t));
  return storages;
}

double committed(std::string_view readers, std::string_view network) {
  const JsonDocument document =
      read_json(TIDEMARK_SOURCE_DIR "/simulator/noise/small_networks.json", FileKind::Device);
  return document.root().at("codes").at(readers).at("blocks").at(network).number(0, 1e9);
}

// Three digits are written: 0.5 %. Another processor's products round otherwise, by 1e-6 of a
// range, so one code of some thousands is another one: far less.
TEST(GradientNoise, IsWhatWasMeasured) {
  for (const auto& [name, readers] :
       {std::pair("llama", "mul.x0"), {"gpt2", "layer_norm.x0"}, {"vit", "linear.x0"}}) {
    const NoiseNetwork network = network_called(name);
    const double now =
        measured_noise(*network.trace, storages_read_as(*network.trace, readers), 8) * 255 * 255;
    EXPECT_NEAR(now / committed(readers, name), 1, 0.01) << name << " " << readers;
  }
}

// Of kinds that are independent the squares add up; each is known to 1/√n of n draws of a sum over
// thousands of elements, and what it does to the gradient that other noise meets is of second
// order: a few per cent each.
TEST(GradientNoise, OfSeveralKindsIsTheSum) {
  for (const char* name : {"gpt2", "bert", "swin"}) {
    const NoiseNetwork network = network_called(name);
    std::vector<TensorId> all;
    double sum = 0;
    for (const char* readers : {"linear.x0", "layer_norm.x0", "matmul.x1"}) {
      const std::vector<TensorId> storages = storages_read_as(*network.trace, readers);
      sum += measured_noise(*network.trace, storages, 8, 1);
      all.insert(all.end(), storages.begin(), storages.end());
    }
    EXPECT_NEAR(measured_noise(*network.trace, all, 8, 1) / sum, 1, 0.1) << name;
  }
}

// 4 bits have a seventeenth of the levels of 8.
TEST(GradientNoise, FallsWithTheSquareOfTheLevels) {
  const NoiseNetwork network = network_called("gpt2");
  const std::vector<TensorId> storages = storages_read_as(*network.trace, "linear.x0");
  const double eight = measured_noise(*network.trace, storages, 8, 1);
  const double four = measured_noise(*network.trace, storages, 4, 1);
  EXPECT_NEAR(four / (17 * 17 * eight), 1, 0.1);
}

}  // namespace
}  // namespace tidemark::profiler::gradient_noise_test
