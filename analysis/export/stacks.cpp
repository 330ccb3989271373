// Walks over the memory events once per curve; trees are built at the peak and sorted by size.
#include "analysis/export/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace tidemark::exports {
namespace {

std::size_t column_of(Nanoseconds time, Nanoseconds duration, std::size_t columns) {
  // Doubles: a long step times many columns may be more than 64 bits hold.
  const double share = static_cast<double>(time.count()) /
                       static_cast<double>(std::max<std::int64_t>(1, duration.count()));
  const auto column = static_cast<std::size_t>(share * static_cast<double>(columns));
  return std::min(column, columns - 1);
}

std::string name_of(const Recording& recording, const Buffer& buffer) {
  const std::string_view role = roles[static_cast<std::size_t>(buffer.role)].name;
  if (buffer.tensor == no_tensor) return fmt::format("({})", role);
  const std::string& name = (*recording.trace)[buffer.tensor].name;
  return buffer.role == Role::Value ? name : fmt::format("{} ({})", name, role);
}

std::string detail_of(const Recording& recording, const Buffer& buffer,
                      const std::vector<std::string_view>& lines) {
  if (buffer.tensor == no_tensor) return "";
  std::string detail(lines[index(buffer.tensor)]);
  const bool holds_value = buffer.role == Role::Value || buffer.role == Role::Codes;
  if (recording.decisions.empty() || !holds_value) return detail;
  const std::string& decision = recording.decisions[index(buffer.tensor)];
  return detail.empty() || decision.empty() ? detail + decision : detail + "\n" + decision;
}

AliveNode& child(AliveNode& parent, std::string_view name) {
  const auto found = std::ranges::find(parent.children, name, &AliveNode::name);
  if (found != parent.children.end()) return *found;
  return parent.children.emplace_back(AliveNode{std::string(name), "", {}, {}});
}

void sort_by_size(AliveNode& node) {
  std::ranges::stable_sort(node.children, std::greater(), &AliveNode::size);
  for (AliveNode& below : node.children) sort_by_size(below);
}

void add_lines(const AliveNode& node, const std::string& path, std::string& text) {
  for (const AliveNode& below : node.children) {
    std::string name = below.name;
    std::ranges::replace_if(
        name, [](unsigned char c) { return c == ';' || c < 0x20; }, '_');
    const std::string below_path = path.empty() ? name : path + ";" + name;
    if (below.children.empty()) text += fmt::format("{} {}\n", below_path, below.size.count);
    add_lines(below, below_path, text);
  }
}

}  // namespace

std::vector<BytesByCategory> stacked_curve(const Schedule& schedule, const Timeline& timeline,
                                           std::size_t columns) {
  std::vector<BytesByCategory> highest(columns);
  BytesByCategory now = timeline.baseline;
  Bytes live = total(now), best = live;
  std::size_t column = 0;
  highest[0] = now;
  const auto move_to = [&](std::size_t to) {
    while (column < to) highest[++column] = now, best = live;
  };
  for (const MemoryEvent& event : timeline.memory) {
    move_to(column_of(event.time, timeline.duration, columns));
    const Buffer& buffer = schedule[event.buffer];
    const Bytes change = event.appears ? buffer.size : Bytes{} - buffer.size;
    now[static_cast<std::size_t>(buffer.category)] += change, live += change;
    if (live > best) highest[column] = now, best = live;
  }
  move_to(columns - 1);
  return highest;
}

std::vector<std::string> blocks_by_tensor(const Trace& trace) {
  std::vector<std::string> blocks(trace.tensors.size());
  for (std::size_t i = trace.ops.size(); i-- > 0;) {
    const Op& op = trace.ops[i];
    if (op.block < 0) continue;
    const std::string& name = trace.blocks[static_cast<std::size_t>(op.block)].name;
    for (const TensorId output : trace.outputs(op)) blocks[index(output)] = name;
    for (const TensorId input : trace.inputs(op))
      if (trace[input].category == Category::Parameter) blocks[index(input)] = name;
  }
  return blocks;
}

std::vector<BufferId> alive_at_peak(const Recording& recording) {
  const std::size_t event = peak(recording.schedule, recording.timeline).event;
  if (event < recording.timeline.memory.size())
    return alive_after(recording.schedule, recording.timeline, event);
  std::vector<BufferId> alive;  // before the first run: what is always there
  for (std::size_t b = 0; b < recording.schedule.buffers.size(); ++b)
    if (recording.schedule.buffers[b].persistent) alive.push_back(static_cast<BufferId>(b));
  return alive;
}

AliveNode alive_tree(const Recording& recording) {
  const auto& [schedule, timeline] = std::tie(recording.schedule, recording.timeline);
  const std::vector<std::string> blocks = blocks_by_tensor(*recording.trace);
  const std::vector<std::string_view> lines = lines_by_tensor(*recording.trace);
  AliveNode root{"live", "", {}, {}};
  std::array<std::map<std::string_view, std::size_t>, category_count> places;
  for (const BufferId id : alive_at_peak(recording)) {
    const Buffer& buffer = schedule[id];
    const std::string_view block =
        buffer.tensor == no_tensor || blocks[index(buffer.tensor)].empty()
            ? "outside of blocks"
            : std::string_view(blocks[index(buffer.tensor)]);
    AliveNode& category = child(root, to_string(buffer.category));
    auto& known = places[static_cast<std::size_t>(buffer.category)];
    const std::size_t place = known.emplace(block, category.children.size()).first->second;
    if (place == category.children.size())
      category.children.push_back({std::string(block), "", {}, {}});
    category.children[place].children.push_back(
        {name_of(recording, buffer), detail_of(recording, buffer, lines), buffer.size, {}});
    for (AliveNode* node : {&root, &category, &category.children[place]}) node->size += buffer.size;
  }
  sort_by_size(root);
  return root;
}

std::string collapsed_stacks(const Recording& recording) {
  std::string text;
  add_lines(alive_tree(recording), "", text);
  return text;
}

}  // namespace tidemark::exports
