// Numbers are written so that they are read again to the bit.
#include "analysis/layouts/layout_records.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/quoted.h"
#include "simulator/parallel/cluster.h"
#include "traces/trace_json.h"

namespace tidemark {
namespace {

using Line = nlohmann::ordered_json;

constexpr std::string_view records_format = "tidemark-search-records";

// Fowler, Noll and Vo's hash of 64 bits (FNV-1a).
std::uint64_t mixed(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string text_of(const Interconnect& joined) {
  std::string text = fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {}", joined.cluster, joined.gpus_per_node,
      joined.link_bytes_per_second, joined.latency_protocol_limit, joined.gather_base_seconds,
      joined.gather_step_seconds, joined.link_is_pcie, joined.network_cards,
      joined.network_bytes_per_second, joined.channels, joined.multicast_channels,
      joined.multicast_bytes_per_second, joined.multicast_two_nodes, joined.multicast_more_nodes);
  for (const BusPoint& point : joined.all_reduce)
    text += fmt::format(" {}:{}", point.bytes, point.bus_bytes_per_second);
  return text;
}

std::string text_of(const allocator::AllocatorSettings& settings) {
  return fmt::format("{} {} {} {} {}", settings.max_split_size.value_or(Bytes{-1}).count,
                     settings.max_non_split_rounding.count,
                     fmt::join(settings.roundup_divisions, ","), settings.expandable_segments,
                     settings.garbage_collection_threshold);
}

std::string bounds_text(const LayoutRequest& request) {
  std::string text = fmt::format("{} {} {} {} {} {}", request.gpus, request.global_batch,
                                 request.micro_batch.value_or(0), request.top,
                                 request.scenario.budget.value_or(Bytes{-1}).count,
                                 request.scenario.step.sequence_parallel);
  const Mesh& mesh = request.scenario.step.mesh;
  if (!mesh.is_one()) text += " " + to_text(mesh);
  for (const StrategySpec& strategy : request.scenario.strategies) text += " " + strategy.text;
  for (const Sharding& sharding : request.shardings) text += " " + to_text(sharding);
  for (const PipelineSchedule& schedule : request.schedules) text += " " + to_text(schedule);
  return text;
}

// It is shown again: no file moves the terminal's cursor.
std::string shown_text(const JsonView& value) {
  const std::string text(value.text());
  if (printable(text, text.size() + 1) != text) value.fail("has characters that are not shown");
  return text;
}

LayoutNumbers read_numbers(const JsonView& row) {
  const auto bytes = [&](std::string_view key) { return Bytes{row.at(key).integer()}; };
  const auto time = [&](std::string_view key) { return Nanoseconds{row.at(key).integer()}; };
  const auto rate = [&](std::string_view key) { return row.at(key).number(0, 1e300); };
  return {.allocated = bytes("allocated_bytes"),
          .at_rest = bytes("allocated_at_rest_bytes"),
          .reserved = bytes("reserved_bytes"),
          .capacity = bytes("capacity_bytes"),
          .short_by = bytes("short_by_bytes"),
          .fits = row.at("fits").boolean(),
          .stage = row.at("stage").integer(),
          .step = time("step_ns"),
          .exposed = time("exposed_ns"),
          .bubble = time("bubble_ns"),
          .samples_per_second = rate("samples_per_second"),
          .throughput = rate("throughput"),
          .throughput_unit = shown_text(row.at("throughput_unit")),
          .mfu = rate("mfu")};
}

void read_header(const JsonView& header, LayoutRecords& records) {
  if (header.at("format").text() != records_format)
    header.at("format").fail(
        fmt::format("found {}; need '{}'", quoted(header.at("format").text()), records_format));
  records.version = header.at("version").text();
  records.question = header.at("question").text();
  records.part = parse_layout_part(header.at("part").text());
  for (const JsonView argument : header.at("arguments").items())
    records.arguments.push_back(shown_text(argument));
}

}  // namespace

std::string question_of(const LayoutRequest& request) {
  constexpr std::uint64_t offset = 0xcbf29ce484222325;
  const Scenario& scenario = request.scenario;
  std::uint64_t hash =
      mixed(offset, write_trace(build_trace(scenario.model, step_in(request, MeshLayout()))));
  hash = mixed(hash, write_device(scenario.device));
  if (const auto* joined = interconnect_of(scenario.device)) hash = mixed(hash, text_of(*joined));
  hash = mixed(hash, text_of(scenario.allocator));
  return fmt::format("{:016x}", mixed(hash, bounds_text(request)));
}

std::string header_line(const LayoutRecords& records) {
  return Line{{"format", records_format},
              {"version", records.version},
              {"question", records.question},
              {"part", to_text(records.part)},
              {"arguments", records.arguments}}
             .dump() +
         "\n";
}

std::string row_line(const FoundLayout& found) {
  const LayoutNumbers& numbers = found.numbers;
  return Line{{"layout", found.key},
              {"allocated_bytes", numbers.allocated.count},
              {"allocated_at_rest_bytes", numbers.at_rest.count},
              {"reserved_bytes", numbers.reserved.count},
              {"capacity_bytes", numbers.capacity.count},
              {"short_by_bytes", numbers.short_by.count},
              {"fits", numbers.fits},
              {"stage", numbers.stage},
              {"step_ns", numbers.step.count()},
              {"exposed_ns", numbers.exposed.count()},
              {"bubble_ns", numbers.bubble.count()},
              {"samples_per_second", numbers.samples_per_second},
              {"throughput", numbers.throughput},
              {"throughput_unit", numbers.throughput_unit},
              {"mfu", numbers.mfu}}
             .dump() +
         "\n";
}

std::string done_line() { return Line{{"is_done", true}}.dump() + "\n"; }

LayoutRecords read_layout_records(std::string_view text, std::string_view file) {
  LayoutRecords records;
  for (std::size_t number = 1;; ++number) {
    const std::size_t end = text.find('\n', records.whole);
    if (end == std::string_view::npos) break;
    const JsonDocument line(text.substr(records.whole, end - records.whole),
                            fmt::format("{}: line {}", file, number));
    if (number == 1) {
      read_header(line.root(), records);
    } else if (line.root().find("is_done")) {
      records.is_done = true;
    } else {
      const JsonView row = line.root();
      records.rows.insert_or_assign(std::string(row.at("layout").text()), read_numbers(row));
    }
    records.whole = end + 1;
  }
  return records;
}

}  // namespace tidemark
