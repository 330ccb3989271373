// Writes simulator/noise/small_networks.json: what codes of each kind of saved tensor, and
// approximate operators, make of the gradients of small networks.
#include "simulator/noise/gradient_noise.h"

#include <fmt/format.h>

#include <map>

#include "simulator/strategies/strategy.h"
#include "tests/support/noise_networks.h"

namespace tidemark {
namespace {

constexpr int bits = 8;  // where squares of errors add up
constexpr double levels = (1 << bits) - 1;

/// By network.
using ByNetwork = std::map<std::string, double>;
/// By kind and place.
using Measured = std::map<std::string, std::map<std::string, ByNetwork>>;

// All storages with the same readers at once, where the readers are not among the known.
void measure_codes(const NoiseNetwork& network, const Measured& known, Measured& found) {
  const Trace& trace = *network.trace;
  const Needs needs = derive_needs(trace);
  const std::vector<std::string> readers = readers_in_codes(trace, needs);
  std::map<std::pair<std::string, std::string>, std::vector<TensorId>> groups;
  for (std::size_t t = 0; t < readers.size(); ++t) {
    if (readers[t].empty() || known.contains(readers[t])) continue;
    const bool is_in_block = trace[needs.producer[t]].block >= 0;
    groups[{readers[t], is_in_block ? "blocks" : "elsewhere"}].push_back(static_cast<TensorId>(t));
  }
  for (const auto& [kind, storages] : groups)
    found[kind.first][kind.second][network.name] =
        measured_noise(trace, storages, bits) * levels * levels;
}

void measure_operators(const NoiseNetwork& network, Measured& found) {
  const std::string kind = network.name == "llama" ? "resilu2" : "regelu2";
  const double in_blocks = measured_noise(
      network.trace, fmt::format("approx-bp:blocks=0-{}", network.trace->blocks.size() - 1));
  found[kind]["blocks"][network.name] = in_blocks;
  const double in_all = measured_noise(network.trace, "approx-bp");
  if (in_all != in_blocks) found[kind]["elsewhere"][network.name] = in_all - in_blocks;
}

std::string text_of(const ByNetwork& networks) {
  std::vector<std::string> rows;
  for (const auto& [name, noise] : networks)
    rows.push_back(fmt::format("\"{}\": {:.3g}", name, noise));
  return fmt::format("{{{}}}", fmt::join(rows, ", "));
}

std::string text_of(const Measured& measured) {
  std::vector<std::string> kinds;
  for (const auto& [kind, places] : measured) {
    std::vector<std::string> rows;
    for (const auto& [place, networks] : places)
      rows.push_back(fmt::format("\n      \"{}\": {}", place, text_of(networks)));
    kinds.push_back(fmt::format("\n    \"{}\": {{{}}}", kind, fmt::join(rows, ",")));
  }
  return fmt::format("{{{}\n  }}", fmt::join(kinds, ","));
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  using namespace tidemark;
  if (argc != 2) {
    fmt::print(stderr, "usage: {} DATE\n", argv[0]);
    return 2;
  }
  Measured codes, operators;
  for (const NoiseNetwork& network : noise_networks()) {
    measure_codes(network, {}, codes);
    measure_operators(network, operators);
  }
  const Measured plain = codes;
  for (const NoiseNetwork& network : noise_network_variants()) measure_codes(network, plain, codes);
  fmt::print(
      "{{\n  \"format\": \"tidemark-gradient-noise-1\",\n  \"source\": \"scripts/"
      "regenerate_noise.sh on {}: steps of small networks with their first parameters on the CPU, "
      "fp32; codes of {} bits, two seeds, two draws each (tests/support/noise_networks.cpp)\",\n"
      "  \"codes\": {},\n  \"operators\": {}\n}}\n",
      argv[1], bits, text_of(codes), text_of(operators));
}
