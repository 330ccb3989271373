// Cuts names of ops at their dots.
#include "gui/indexes/modules.h"

#include <string_view>
#include <unordered_map>

namespace tidemark::gui {
namespace {

// "model.layers.0" stands in "model": what all names begin with says nothing about a module.
std::string_view parent_of_blocks(const Trace& trace) {
  if (trace.blocks.empty()) return "";
  std::string_view path = trace.blocks.front().name;
  for (int i = 0; i < 2; ++i) {
    const std::size_t dot = path.rfind('.');
    path = dot == path.npos ? std::string_view() : path.substr(0, dot);
  }
  return path;
}

bool is_inside(std::string_view path, std::string_view outer) {
  return !outer.empty() && path.size() > outer.size() && path.starts_with(outer) &&
         path[outer.size()] == '.';
}

// So much of the path as is one step further in than `outer`. "blocks.3.add1" has no module of its
// own there: the last part is the op's.
std::string_view one_step_in(std::string_view path, std::string_view outer) {
  const std::size_t begin = is_inside(path, outer) ? outer.size() + 1 : 0;
  return path.substr(0, path.find('.', begin));
}

std::string_view outer_path(const Trace& trace, const Op& op, std::string_view parent) {
  if (op.block >= 0) return trace.blocks[static_cast<std::size_t>(op.block)].name;
  return one_step_in(op.name, parent);
}

std::string_view inner_path(const Trace& trace, const Op& op, std::string_view parent) {
  const std::string_view outer = outer_path(trace, op, parent);
  const std::string_view inner = is_inside(op.name, outer) ? one_step_in(op.name, outer) : outer;
  return inner;
}

template <typename PathOf>
Modules modules_by(const Trace& trace, PathOf path_of) {
  const std::string_view parent = parent_of_blocks(trace);
  Modules modules;
  modules.of_op.reserve(trace.ops.size());
  std::unordered_map<std::string_view, std::uint32_t> known;  // parts of the trace's names
  for (const Op& op : trace.ops) {
    const std::string_view path = path_of(trace, op, parent);
    const auto next = static_cast<std::uint32_t>(modules.all.size());
    const auto [found, is_new] = known.try_emplace(path, next);
    if (is_new) modules.all.push_back({std::string(path), op.block});
    modules.of_op.push_back(found->second);
  }
  return modules;
}

}  // namespace

Modules outer_modules(const Trace& trace) { return modules_by(trace, outer_path); }

Modules inner_modules(const Trace& trace) { return modules_by(trace, inner_path); }

}  // namespace tidemark::gui
