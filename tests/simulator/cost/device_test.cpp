// Device files agree with their datasheets, survive a round trip, and name their mistakes.
#include "simulator/cost/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "base/files.h"

namespace tidemark::device_test {
namespace {

namespace fs = std::filesystem;

const fs::path device_folder = fs::path(TIDEMARK_TESTS_DIR).parent_path() / "simulator/devices";

std::string error_of(std::string_view json) {
  try {
    read_device(json, "d.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// The A100 file with one piece of text replaced.
std::string edited(std::string_view from, std::string_view to) {
  std::string json = read_file(device_folder / "a100-80gb.json", FileKind::Device);
  const std::size_t found = json.find(from);
  EXPECT_NE(found, std::string::npos) << from;
  return json.replace(found, from.size(), to);
}

Figure figure(const Device& device, std::string_view key) {
  for (const Figure& each : figures(device))
    if (each.key == key) return each;
  ADD_FAILURE() << "no figure " << key;
  return {};
}

TEST(Device, TheEmbeddedFilesAreTheOnesInTheTree) {
  std::set<std::string> in_tree;
  for (const auto& entry : fs::directory_iterator(device_folder))
    in_tree.insert(entry.path().stem());
  std::set<std::string> embedded;
  for (const Device& device : known_devices()) embedded.insert(device.name);
  EXPECT_EQ(embedded, in_tree);
  EXPECT_GE(embedded.size(), 12u);
}

// Also the definition of the files' layout: whoever edits one and builds learns here what differs.
TEST(Device, EveryFileIsWrittenAsTheWriterWouldWriteIt) {
  for (const Device& device : known_devices())
    EXPECT_EQ(read_file(device_folder / (device.name + ".json"), FileKind::Device),
              write_device(device));
}

TEST(Device, WritingAndReadingGivesTheSameDevice) {
  for (const Device& device : known_devices())
    EXPECT_EQ(read_device(write_device(device), "again.json"), device) << device.name;
}

// Only its own file is read.
TEST(Device, IsFoundByTheNameOfItsFileInAnyCase) {
  for (const Device& device : known_devices()) {
    EXPECT_EQ(find_device(device.name), device);
    std::string shouted = device.name;
    std::ranges::transform(shouted, shouted.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    EXPECT_EQ(find_device(shouted), device);
  }
}

TEST(Device, EveryFigureHasASource) {
  for (const Device& device : known_devices()) {
    EXPECT_EQ(figures(device).size() + 1, device.sources.size()) << device.name;
    EXPECT_TRUE(device.sources.contains("compute_capability")) << device.name;
    for (const Figure& each : figures(device))
      EXPECT_GT(each.source.text.size(), 10u) << device.name << " " << each.key;
  }
}

TEST(Device, TheA100IsKnownByItsDatasheet) {
  const Device device = find_device("a100-80gb");
  EXPECT_EQ(device.title, "NVIDIA A100 SXM4 80 GB");
  EXPECT_EQ(device.compute_capability, "8.0");
  EXPECT_EQ(device.sm_count, 108);
  EXPECT_EQ(device.l2_cache, Bytes{40 << 20});
  EXPECT_EQ(device.flops_per_second[static_cast<std::size_t>(MathUnit::Bf16)], 312e12);
  EXPECT_EQ(figure(device, "bf16_flops_per_second").text, "312 TFLOP/s");
  EXPECT_EQ(figure(device, "bf16_flops_per_second").source.kind, FigureKind::Datasheet);
  EXPECT_EQ(figure(device, "bytes_per_second").text, "2.04 TB/s");
  EXPECT_EQ(figure(device, "capacity").text, "79.3 GiB");
  EXPECT_EQ(figure(device, "clock_hz").text, "1.41 GHz");
  EXPECT_EQ(figure(device, "host_launch").text, "7.00 µs");
  EXPECT_EQ(figure(device, "sm_count").text, "108");
}

// Stated rates are SMs × clock × FLOP per SM and cycle; the last factor belongs to the generation.
// A typing mistake in any of the three figures shows here. Volta to Blackwell, dense, accumulating
// in fp32; CUDA cores do one multiply-add each, of which there are 64 or 128 in an SM.
TEST(Device, RatesAgreeWithClockAndSmCount) {
  const std::map<std::string, std::pair<int, int>> flops_per_cycle = {
      // fp32, fp16
      {"v100-16gb", {128, 1024}},  {"v100-32gb", {128, 1024}}, {"t4", {128, 1024}},
      {"rtx-2080-ti", {128, 512}}, {"rtx-3090", {256, 512}},   {"rtx-4090", {256, 512}},
      {"a100-40gb", {128, 2048}},  {"a100-80gb", {128, 2048}}, {"l40s", {256, 1024}},
      {"h100", {256, 4096}},       {"h200", {256, 4096}},      {"b200", {256, 8192}},
      {"a10g", {256, 512}},        {"a6000", {256, 1024}},     {"l4", {256, 1024}},
      {"b300", {256, 8192}},       {"gb200", {256, 8192}},     {"gb300", {256, 8192}}};
  for (const Device& device : known_devices()) {
    ASSERT_TRUE(flops_per_cycle.contains(device.name)) << device.name;
    const auto [fp32, fp16] = flops_per_cycle.at(device.name);
    const double cycles_per_second = device.sm_count * device.clock_hz;
    // The H100's CUDA core rate is stated at a higher clock (1.98 GHz) than its tensor rates. A
    // B300 can be clocked higher (2.03 GHz) than its board's rates are stated at (1.86).
    const bool is_b300 = device.name == "b300";
    const double fp32_tolerance = device.name.starts_with("h") ? 0.10 : is_b300 ? 0.03 : 0.02;
    EXPECT_NEAR(device.flops_per_second[0] / (cycles_per_second * fp32), 1, fp32_tolerance)
        << device.name;
    const double fp16_rate = device.flops_per_second[static_cast<std::size_t>(MathUnit::Fp16)];
    EXPECT_NEAR(fp16_rate / (cycles_per_second * fp16), 1, is_b300 ? 0.09 : 0.06) << device.name;
  }
}

TEST(Device, UnitsThatAGenerationLacksFallBackToCudaCores) {
  const Device volta = find_device("v100-16gb");
  EXPECT_EQ(volta.flops_per_second[static_cast<std::size_t>(MathUnit::Bf16)], 0);
  EXPECT_EQ(gemm_flops_per_second(volta, MathUnit::Bf16),
            gemm_flops_per_second(volta, MathUnit::Fp32));
  EXPECT_GT(gemm_flops_per_second(volta, MathUnit::Fp16),
            4 * gemm_flops_per_second(volta, MathUnit::Fp32));
  EXPECT_EQ(figure(volta, "bf16_flops_per_second").text, "none");
}

TEST(Device, ReachableRatesAreNominalOnesTimesEfficiency) {
  Device device;
  device.bytes_per_second = 1000e9;
  device.memory_efficiency = 0.5;
  device.flops_per_second = {10e12, 0, 100e12, 0};
  device.gemm_efficiency = {0.9, 0, 0.8, 0};
  EXPECT_EQ(stream_bytes_per_second(device), 500e9);
  EXPECT_EQ(gemm_flops_per_second(device, MathUnit::Fp16), 80e12);
  EXPECT_EQ(gemm_flops_per_second(device, MathUnit::Tf32), 9e12);
}

TEST(Device, NamesAreFoundInAnyCaseAndUnknownOnesGetASuggestion) {
  EXPECT_EQ(find_device("RTX-4090").name, "rtx-4090");
  try {
    find_device("a100-80g");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("unknown device 'a100-80g' (did you mean "
                        "'a100-80gb'? known: a100-40gb, a100-80gb, "),
              std::string::npos)
        << error.what();
  }
}

TEST(Device, PathsAreReadAsFiles) {
  EXPECT_EQ(find_device(device_folder / "h100.json").name, "h100");
  const std::string packed = ::testing::TempDir() + "device_test.json.zst";
  write_file(packed, read_file(device_folder / "h100.json", FileKind::Device));
  EXPECT_EQ(find_device(packed), find_device("h100"));
  EXPECT_THROW(find_device("no-such-file.json"), InputError);
  EXPECT_THROW(find_device("./h100"), InputError);
}

TEST(Device, WrongFilesSayWhatWouldBeRight) {
  EXPECT_EQ(error_of(edited("\"value\": 108", "\"value\": 108.5")),
            "d.json: /figures/sm_count/value: found 108.5; need a whole number from 1 to 65536");
  EXPECT_EQ(error_of(edited("2.039e12", "2039")),
            "d.json: /figures/bytes_per_second/value: found 2039; need a number from 1000000 to "
            "1e+17");
  EXPECT_EQ(error_of(edited("\"measured\"", "\"guessed\"")),
            "d.json: /figures/capacity/kind: unknown kind 'guessed' (known: datasheet, measured, "
            "derived, assumed)");
  EXPECT_EQ(error_of(edited("\"sm_count\"", "\"sm_cuont\"")),
            "d.json: /figures: found no key 'sm_count'; it is required");
  EXPECT_EQ(error_of(edited("tidemark-device-1", "tidemark-device-9")),
            "d.json: /format: found another format; need 'tidemark-device-1'");
  EXPECT_EQ(error_of(edited("\"title\"", "\"ttitle\": \"x\", \"title\"")),
            "d.json: unknown key 'ttitle' (did you mean 'title'? known: format, name, title, "
            "compute_capability, figures, kernels)");
  EXPECT_EQ(error_of(edited("\"title\"", "\"curves\": {}, \"title\"")),
            "d.json: /curves: found kernels' times by FLOP and bytes, which are no longer read; "
            "measure the device again (tidemark calibrate)");
  EXPECT_EQ(error_of(edited("\"figures\": {", "\"figures\": {\"l3_cache\": 1,"))
                .rfind("d.json: /figures: unknown key 'l3_cache' (did you mean 'l2_cache'?", 0),
            0u);
  EXPECT_NE(error_of(edited("a100-80gb", "A100 80GB")), "no error");
  EXPECT_NE(error_of(edited("NVIDIA A100 SXM4 80 GB", "\\u001b[31mred")), "no error");
  EXPECT_NE(error_of("[]"), "no error");
}

TEST(Device, AFileWithoutAContextIsComplete) {
  std::string json = read_file(device_folder / "a100-80gb.json", FileKind::Device);
  const std::size_t begin = json.find("    \"context\"");
  json.erase(begin, json.find('\n', begin) + 1 - begin);
  const Device device = read_device(json, "d.json");
  EXPECT_FALSE(device.context.has_value());
  EXPECT_EQ(read_device(write_device(device), "again.json"), device);
  EXPECT_EQ(figures(device).size(), figures(find_device("a100-80gb")).size() - 1);
}

TEST(Device, EveryTruncationIsAnError) {
  const std::string json = write_device(find_device("t4"));
  for (std::size_t size = 0; size + 2 < json.size(); ++size)  // the last byte is a newline
    EXPECT_NE(error_of(std::string_view(json).substr(0, size)), "no error") << size;
}

TEST(Device, CurvesSurviveTheFileAndMustRise) {
  Device device = find_device("a100-80gb");
  device.product_share = 0.5;
  device.sources["product_share"] = {FigureKind::Measured, "two products at once"};
  device.curves["forward gelu float32"] = {{1000, 5}, {4000, 11.5}};
  EXPECT_EQ(read_device(write_device(device), "d.json"), device);
  device.curves["a \"quoted\" name, \\ and\na second line"] = {{1, 2}};
  EXPECT_EQ(read_device(write_device(device), "d.json"), device);
  device.curves["forward gelu float32"] = {{4000, 5}, {1000, 11}};
  EXPECT_EQ(error_of(write_device(device)),
            "d.json: /kernels/forward gelu float32/1: found no more than in the point before; "
            "need rising promises");
}

TEST(Device, ACurveGoesOnAtTheRateOfItsEnds) {
  const Curve curve = {{100, 10}, {1000, 50}};
  EXPECT_DOUBLE_EQ(time_on(curve, 10), 1);
  EXPECT_DOUBLE_EQ(time_on(curve, 100), 10);
  EXPECT_DOUBLE_EQ(time_on(curve, 2000), 100);
  EXPECT_NEAR(time_on(curve, std::sqrt(100.0 * 1000)), std::sqrt(10.0 * 50), 1e-9);
}

}  // namespace
}  // namespace tidemark::device_test
