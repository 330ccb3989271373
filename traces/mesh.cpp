// Reads, writes and checks meshes.
#include "traces/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/number_in.h"
#include "base/quoted.h"

namespace tidemark {
namespace {

constexpr std::string_view experts_name = "ep";

std::vector<std::string_view> axis_names() {
  std::vector<std::string_view> names;
  for (const auto& axis : axes) names.push_back(axis.name);
  names.push_back(experts_name);
  return names;
}

std::int64_t parse_size(std::string_view text, std::string_view axis) {
  const auto size = number_in<std::int64_t>(text);
  if (!size || *size < 1 || *size > Mesh::most_gpus)
    throw UsageError(fmt::format("mesh: {}: {} is not a whole number from 1 to {}", axis,
                                 quoted(text), Mesh::most_gpus));
  return *size;
}

std::int64_t& size_named(Mesh& mesh, std::string_view name) {
  if (name == experts_name) return mesh.experts;
  const auto found = std::ranges::find(axes, name, &Named<Axis>::name);
  if (found == axes.end()) throw UsageError("mesh: " + unknown_name("axis", name, axis_names()));
  return mesh[found->value];
}

// "dp=4"
void parse_axis(std::string_view text, std::vector<std::string_view>& named, Mesh& mesh) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    throw UsageError(
        fmt::format("mesh: {} is no axis with its size (as in dp=4,tp=2)", quoted(text)));
  const std::string_view name = text.substr(0, equals);
  std::int64_t& size = size_named(mesh, name);
  if (std::ranges::find(named, name) != named.end())
    throw UsageError(fmt::format("mesh: {} is named twice (give it once)", name));
  named.push_back(name);
  size = parse_size(text.substr(equals + 1), name);
}

// Each axis takes what is nearest to what was asked for, innermost first; replicas are the rest.
Mesh nearest_mesh(Mesh mesh, std::int64_t gpus) {
  std::int64_t left = gpus;
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline}) {
    mesh[axis] = nearest_divisor(left, mesh[axis]);
    left /= mesh[axis];
  }
  mesh[Axis::Data] = left;
  mesh.experts = nearest_divisor(mesh[Axis::Data] * mesh[Axis::Context], mesh.experts);
  return mesh;
}

}  // namespace

std::int64_t nearest_divisor(std::int64_t number, std::int64_t wanted) {
  std::int64_t nearest = 1;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    for (const std::int64_t divisor : {d, number / d}) {
      const std::int64_t off = std::abs(divisor - wanted), least = std::abs(nearest - wanted);
      if (off < least || (off == least && divisor < nearest)) nearest = divisor;
    }
  }
  return nearest;
}

std::int64_t Mesh::gpus() const {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

std::int64_t Mesh::stride(Axis axis) const {
  std::int64_t product = 1;
  for (std::size_t inner = static_cast<std::size_t>(axis) + 1; inner < sizes.size(); ++inner)
    product *= sizes[inner];
  return product;
}

Mesh parse_mesh(std::string_view text) {
  Mesh mesh;
  if (text == "1") return mesh;
  std::vector<std::string_view> named;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parse_axis(text.substr(begin, end - begin), named, mesh);
    begin = end + 1;
  }
  if (const std::string defect = defect_of(mesh); !defect.empty())
    throw UsageError("mesh: " + defect);
  return mesh;
}

RankClass parse_rank(std::string_view text) {
  constexpr std::string_view stage = "pp";
  const auto number = number_in<decltype(RankClass::stage)>(
      text.starts_with(stage) ? text.substr(stage.size()) : "");
  if (!number || *number < 0 || *number >= Mesh::most_gpus)
    throw UsageError(
        fmt::format("rank: {} is no pipeline stage, counted from 0 (as in pp0)", quoted(text)));
  return {*number};
}

namespace {

constexpr std::string_view chunks_key = "v=", blocks_key = "blocks=", group_key = "group=";

// One that may be zero.
std::int64_t schedule_count(std::string_view text, std::string_view key, std::int64_t least) {
  const auto count = number_in<std::int64_t>(text);
  if (!count || *count < least || *count > PipelineSchedule::most_chunks)
    throw UsageError(fmt::format("schedule: {} {} is not a whole number from {} to {}", key,
                                 quoted(text), least, PipelineSchedule::most_chunks));
  return *count;
}

void parse_blocks(std::string_view list, PipelineSchedule& schedule) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find('-', begin), list.size());
    schedule.blocks.push_back(schedule_count(list.substr(begin, end - begin), blocks_key, 0));
    begin = end + 1;
  }
}

void parse_schedule_option(std::string_view option, PipelineSchedule& schedule) {
  const bool is_interleaved = schedule.kind == PipelineSchedule::Kind::Interleaved;
  if (is_interleaved && option.starts_with(chunks_key)) {
    schedule.chunks = schedule_count(option.substr(chunks_key.size()), chunks_key, 2);
  } else if (is_interleaved && option.starts_with(group_key)) {
    schedule.group = schedule_count(option.substr(group_key.size()), group_key, 1);
  } else if (option.starts_with(blocks_key) && schedule.blocks.empty()) {
    parse_blocks(option.substr(blocks_key.size()), schedule);
  } else {
    throw UsageError(
        fmt::format("schedule: no option {} (blocks=2-4-4-2 says how many blocks "
                    "stages have, interleaved:v=2 how many chunks, and group=6 how many "
                    "micro-batches go through one before the next)",
                    quoted(option)));
  }
}

}  // namespace

PipelineSchedule parse_schedule(std::string_view text) {
  const std::size_t colon = text.find(':');
  PipelineSchedule schedule{.kind =
                                parse_name(pipeline_schedules, "schedule", text.substr(0, colon))};
  const bool has_two = schedule.kind == PipelineSchedule::Kind::Interleaved ||
                       schedule.kind == PipelineSchedule::Kind::ZeroBubbleV;
  if (has_two) schedule.chunks = 2;
  if (colon == std::string_view::npos) return schedule;
  for (std::size_t begin = colon + 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parse_schedule_option(text.substr(begin, end - begin), schedule);
    begin = end + 1;
  }
  return schedule;
}

std::string to_text(const PipelineSchedule& schedule) {
  std::string text(pipeline_schedules[static_cast<std::size_t>(schedule.kind)].name);
  char before = ':';
  if (schedule.kind == PipelineSchedule::Kind::Interleaved) {
    text += fmt::format("{}{}{}", before, chunks_key, schedule.chunks);
    before = ',';
  }
  if (schedule.group > 0) text += fmt::format("{}{}{}", before, group_key, schedule.group);
  if (!schedule.blocks.empty())
    text += fmt::format("{}{}{}", before, blocks_key, fmt::join(schedule.blocks, "-"));
  return text;
}

std::string to_text(const RankClass& rank) { return fmt::format("pp{}", rank.stage); }

std::string to_text(const Mesh& mesh) {
  std::string text;
  const auto add = [&](std::string_view name, std::int64_t size) {
    if (size != 1) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, size);
  };
  for (const auto& axis : axes) add(axis.name, mesh[axis.value]);
  add(experts_name, mesh.experts);
  return text.empty() ? "1" : text;
}

std::string defect_of(const Mesh& mesh) {
  std::int64_t gpus = 1;
  for (const std::int64_t size : mesh.sizes) {
    if (size < 1 || size > Mesh::most_gpus)
      return fmt::format("found a size of {}; need one from 1 to {}", size, Mesh::most_gpus);
    gpus *= size;
    if (gpus > Mesh::most_gpus) return fmt::format("more than {} GPUs", Mesh::most_gpus);
  }
  const std::int64_t sharing = mesh[Axis::Data] * mesh[Axis::Context];
  if (mesh.experts >= 1 && sharing % mesh.experts == 0) return {};
  return fmt::format("ep={} does not divide the {} ranks of dp · cp (nearest: ep={})", mesh.experts,
                     sharing, nearest_divisor(sharing, mesh.experts));
}

Mesh fitted(Mesh mesh, std::int64_t gpus, bool is_given) {
  if (is_given) {
    if (mesh.gpus() == gpus) return mesh;
    throw UsageError(fmt::format("--mesh {} is of {} GPUs, and --gpus says {} (nearest: --mesh {})",
                                 to_text(mesh), mesh.gpus(), gpus,
                                 to_text(nearest_mesh(mesh, gpus))));
  }
  mesh[Axis::Data] = gpus;
  return mesh;
}

}  // namespace tidemark
