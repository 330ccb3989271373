// Reads what was measured once, and shares it out among the storages and ops of a trace.
#include "simulator/noise/gradient_noise.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "base/embedded_file.h"
#include "base/error.h"
#include "base/json_reader.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {

std::span<const EmbeddedFile> embedded_noise();  // made from simulator/noise/ at build time

namespace {

constexpr double unknown = std::numeric_limits<double>::infinity();

/// Inside of blocks and outside: where the loss is near, the same reader makes more noise.
enum class Place : std::uint8_t { Blocks, Elsewhere };
constexpr std::array places = {Named{Place::Blocks, std::string_view("blocks")},
                               Named{Place::Elsewhere, std::string_view("elsewhere")}};
static_assert(is_in_order(places));

/// Of all that is of a kind together, by place.
using Totals = std::map<std::string, std::array<std::optional<double>, places.size()>, std::less<>>;

struct NoiseTable {
  std::string source;
  Totals codes, operators;
};

double mean_over_networks(const JsonView& networks) {
  double sum = 0, count = 0;
  for (const JsonView network : networks.members()) sum += network.number(0, 1e9), count += 1;
  if (count == 0) networks.fail("found no network; need what at least one has measured");
  return sum / count;
}

Totals read_totals(const JsonView& kinds) {
  Totals totals;
  for (const JsonView kind : kinds.members()) {
    kind.allow_only({places[0].name, places[1].name});
    for (const Named<Place>& place : places)
      if (const auto networks = kind.find(place.name))
        totals[std::string(kind.key())][static_cast<std::size_t>(place.value)] =
            mean_over_networks(*networks);
  }
  return totals;
}

const NoiseTable& noise_table() {
  static const NoiseTable table = [] {
    const EmbeddedFile& file = embedded_noise().front();
    const JsonDocument document(file.text, std::string(file.name));
    const JsonView root = document.root();
    root.allow_only({"format", "source", "codes", "operators"});
    return NoiseTable{std::string(root.at("source").text()), read_totals(root.at("codes")),
                      read_totals(root.at("operators"))};
  }();
  return table;
}

/// What was measured in one place stands for the other where that was not.
std::optional<double> total_of(const Totals& totals, std::string_view kind, Place place) {
  const auto found = totals.find(kind);
  if (found == totals.end()) return {};
  const auto& [in_blocks, elsewhere] = found->second;
  const auto& [first, second] =
      place == Place::Blocks ? std::tie(in_blocks, elsewhere) : std::tie(elsewhere, in_blocks);
  return first ? first : second;
}

Place place_of(const Trace& trace, OpId op) {
  return trace[op].block >= 0 ? Place::Blocks : Place::Elsewhere;
}

std::vector<std::string_view> parts_of(std::string_view readers) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = readers.find('+');
    parts.push_back(readers.substr(0, end));
    if (end == std::string_view::npos) return parts;
    readers.remove_prefix(end + 1);
  }
}

/// How many storages have such readers, by place.
using Counts = std::map<std::string, std::array<double, places.size()>, std::less<>>;

// Of one of so many alike, by all its readers, or else by each of them for itself.
double share_of(const Counts& counts, const Counts& counts_of_parts, const std::string& readers,
                Place place) {
  const auto p = static_cast<std::size_t>(place);
  const Totals& totals = noise_table().codes;
  if (const auto total = total_of(totals, readers, place)) return *total / counts.at(readers)[p];
  double sum = 0;
  for (const std::string_view part : parts_of(readers)) {
    const auto total = total_of(totals, part, place);
    if (!total) return unknown;
    sum += *total / counts_of_parts.find(part)->second[p];
  }
  return sum;
}

bool is_gelu(OpKind kind) {
  return kind == OpKind::Gelu || kind == OpKind::GeluComposed || kind == OpKind::ReGelu2;
}

// Ops that are approximate, or would be if the whole network had such operators.
bool are_alike(OpKind approximate, OpKind other) {
  if (approximate == OpKind::ReGelu2) return is_gelu(other);
  return other == OpKind::Silu || other == OpKind::ReSilu2;
}

std::vector<double> noise_of_ops(const Trace& trace) {
  std::vector<double> noise(trace.ops.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const OpKind kind = trace.ops[i].kind;
    if (kind != OpKind::ReGelu2 && kind != OpKind::ReSilu2) continue;
    const Place place = place_of(trace, static_cast<OpId>(i));
    const auto alike = std::ranges::count_if(trace.ops, [&](const Op& op) {
      return are_alike(kind, op.kind) && (op.block >= 0) == (place == Place::Blocks);
    });
    const auto total = total_of(noise_table().operators, to_string(kind), place);
    noise[i] = total ? *total / static_cast<double>(alike) : unknown;
  }
  return noise;
}

}  // namespace

std::vector<std::string> readers_in_codes(const Trace& trace, const Needs& needs) {
  std::vector<std::set<std::string>> readers(trace.tensors.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    for (Operands bits = needs.saved[i]; bits != 0; bits &= bits - 1) {
      const int bit = __builtin_ctz(bits);
      const std::string operand_name =
          bit < 16 ? "x" + std::to_string(bit) : "y" + std::to_string(bit - 16);
      readers[index(trace[operand(trace, op, bit)].storage)].insert(
          std::string(operation_name(trace, op)) + "." + operand_name);
    }
  }
  const std::vector<bool> may_be_coded = quantizable_storages(trace, needs);
  std::vector<std::string> texts(trace.tensors.size());
  for (std::size_t t = 0; t < texts.size(); ++t)
    for (const std::string& reader : readers[t])
      if (may_be_coded[t]) texts[t] += (texts[t].empty() ? "" : "+") + reader;
  return texts;
}

GradientNoise::GradientNoise(const Trace& trace, const Needs& needs)
    : of_unit_step_(trace.tensors.size(), unknown), of_op_(noise_of_ops(trace)) {
  const std::vector<std::string> readers = readers_in_codes(trace, needs);
  Counts counts, counts_of_parts;
  const auto place = [&](std::size_t t) { return place_of(trace, needs.producer[t]); };
  for (std::size_t t = 0; t < readers.size(); ++t) {
    if (readers[t].empty()) continue;
    const auto p = static_cast<std::size_t>(place(t));
    ++counts[readers[t]][p];
    for (const std::string_view part : parts_of(readers[t]))
      ++counts_of_parts[std::string(part)][p];
  }
  for (std::size_t t = 0; t < readers.size(); ++t)
    if (!readers[t].empty())
      of_unit_step_[t] = share_of(counts, counts_of_parts, readers[t], place(t));
}

double GradientNoise::of_codes(TensorId storage, int bits) const {
  const double levels = (1 << bits) - 1;
  return of_unit_step_[index(storage)] / (levels * levels);
}

std::string_view source_of_noise() { return noise_table().source; }

}  // namespace tidemark
