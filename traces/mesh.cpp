// Reads, writes and checks meshes.
#include "traces/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/number_in.h"
#include "base/quoted.h"

namespace tidemark {
namespace {

constexpr std::string_view experts_name = "ep", expert_tensor_name = "etp";

std::vector<std::string_view> axis_names() {
  std::vector<std::string_view> names;
  for (const auto& axis : axes) names.push_back(axis.name);
  names.push_back(experts_name);
  names.push_back(expert_tensor_name);
  return names;
}

std::int64_t parse_size(std::string_view text, std::string_view axis) {
  const auto size = number_in<std::int64_t>(text);
  if (!size || *size < 1 || *size > Mesh::most_gpus)
    throw UsageError(fmt::format("mesh: {}: {} is not a whole number from 1 to {}", axis,
                                 quoted(text), Mesh::most_gpus));
  return *size;
}

struct NamedSizes {
  Mesh mesh;
  std::optional<std::int64_t> expert_tensor;  ///< ranks that cut an expert
};

std::int64_t& size_named(NamedSizes& sizes, std::string_view name) {
  if (name == experts_name) return sizes.mesh.experts;
  if (name == expert_tensor_name) return sizes.expert_tensor.emplace();
  const auto found = std::ranges::find(axes, name, &Named<Axis>::name);
  if (found == axes.end()) throw UsageError("mesh: " + unknown_name("axis", name, axis_names()));
  return sizes.mesh[found->value];
}

// "dp=4"
void parse_axis(std::string_view text, std::vector<std::string_view>& named, NamedSizes& sizes) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    throw UsageError(
        fmt::format("mesh: {} is no axis with its size (as in dp=4,tp=2)", quoted(text)));
  const std::string_view name = text.substr(0, equals);
  std::int64_t& size = size_named(sizes, name);
  if (std::ranges::find(named, name) != named.end())
    throw UsageError(fmt::format("mesh: {} is named twice (give it once)", name));
  named.push_back(name);
  size = parse_size(text.substr(equals + 1), name);
}

NamedSizes parse_sizes(std::string_view text) {
  NamedSizes sizes;
  if (text == "1") return sizes;
  std::vector<std::string_view> named;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parse_axis(text.substr(begin, end - begin), named, sizes);
    begin = end + 1;
  }
  return sizes;
}

// Each axis takes what is nearest to what was asked for, innermost first; replicas are the rest.
Mesh nearest_mesh(Mesh mesh, std::int64_t gpus) {
  std::int64_t left = gpus;
  for (const Axis axis : {Axis::Tensor, Axis::Context, Axis::Pipeline}) {
    mesh[axis] = nearest_divisor(left, mesh[axis]);
    left /= mesh[axis];
  }
  mesh[Axis::Data] = left;
  if (mesh.expert_tensor > 0) mesh = with_ranks_of_expert(mesh, mesh.expert_tensor);
  mesh.experts = nearest_divisor(mesh.expert_ranks(), mesh.experts);
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

std::int64_t Mesh::expert_ranks() const {
  const Mesh& mesh = *this;
  return mesh[Axis::Data] * mesh[Axis::Context] * mesh[Axis::Tensor] / ranks_of_expert();
}

std::int64_t Mesh::ranks_of_expert() const {
  return expert_tensor > 0 ? expert_tensor : (*this)[Axis::Tensor];
}

// On one tensor-parallel rank "etp=1" says what is to be in layouts of more.
Mesh with_ranks_of_expert(Mesh mesh, std::int64_t ranks) {
  const std::int64_t all = mesh[Axis::Tensor], nearest = nearest_divisor(all, ranks);
  mesh.expert_tensor = nearest == all && all > 1 ? 0 : nearest;
  return mesh;
}

Mesh parse_mesh_axes(std::string_view text) {
  NamedSizes sizes = parse_sizes(text);
  sizes.mesh.expert_tensor = sizes.expert_tensor.value_or(0);
  return sizes.mesh;
}

Mesh parse_mesh(std::string_view text) {
  NamedSizes sizes = parse_sizes(text);
  Mesh& mesh = sizes.mesh;
  if (const auto ranks = sizes.expert_tensor) {
    const std::int64_t all = mesh[Axis::Tensor], nearest = nearest_divisor(all, *ranks);
    if (nearest != *ranks)
      throw UsageError(
          fmt::format("mesh: etp={} does not divide the {} ranks of tp (nearest: etp={})", *ranks,
                      all, nearest));
    mesh = with_ranks_of_expert(mesh, *ranks);
  }
  if (const std::string defect = defect_of(mesh); !defect.empty())
    throw UsageError("mesh: " + defect);
  return mesh;
}

std::vector<std::int64_t> uneven_stages(std::int64_t blocks, std::int64_t stages) {
  if (stages < 2 || blocks < stages || blocks % stages == 0) return {};
  const std::int64_t between = stages - 2;
  std::int64_t middle = blocks / stages + 1;
  if (blocks - middle * between < 2) --middle;
  const std::int64_t ends = blocks - middle * between, last = ends / 2;
  if (ends - last > middle + 1) return {};
  std::vector<std::int64_t> counts(static_cast<std::size_t>(stages), middle);
  counts.front() = ends - last;
  counts.back() = last;
  return counts;
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
  if (mesh.expert_tensor > 0)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", expert_tensor_name, mesh.expert_tensor);
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
  const std::int64_t cut_by = mesh.ranks_of_expert();
  if (cut_by < mesh[Axis::Tensor] && mesh.experts == 1)
    return fmt::format(
        "etp={0} is of experts that ranks share (give ep=2 or more, or leave etp={0} out)", cut_by);
  const std::int64_t sharing = mesh.expert_ranks();
  if (mesh.experts >= 1 && sharing % mesh.experts == 0) return {};
  const std::string_view apart = cut_by == mesh[Axis::Tensor] ? ""
                                 : cut_by == 1                ? " · tp"
                                                              : " · tp / etp";
  return fmt::format("ep={} does not divide the {} ranks of dp · cp{} (nearest: ep={})",
                     mesh.experts, sharing, apart, nearest_divisor(sharing, mesh.experts));
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
