// Roles are made once per trace; a pattern looks only at the tensors of its own role.
#include "simulator/tensor_roles.h"

#include <algorithm>

#include "base/error.h"

namespace tidemark {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

// Cuts off what stands before the next dot.
std::string_view next_part(std::string_view& rest) {
  const std::size_t dot = rest.find('.');
  const std::string_view part = rest.substr(0, dot);
  rest = dot == rest.npos ? std::string_view() : rest.substr(dot + 1);
  return part;
}

// Both have the same role, so the same number of parts.
bool fits(std::string_view pattern, std::string_view name) {
  while (!pattern.empty()) {
    const std::string_view wanted = next_part(pattern), part = next_part(name);
    if (wanted != part && wanted != "*") return false;
  }
  return true;
}

}  // namespace

std::string role_of(std::string_view tensor_name) {
  std::string role;
  for (std::size_t begin = 0; begin <= tensor_name.size();) {
    const std::size_t end = std::min(tensor_name.find('.', begin), tensor_name.size());
    const std::string_view part = tensor_name.substr(begin, end - begin);
    role.append(begin == 0 ? "" : ".").append(is_number(part) ? "*" : part);
    begin = end + 1;
  }
  return role;
}

TensorRoles::TensorRoles(const Trace& trace) : trace_(trace) {
  names_.reserve(trace.tensors.size());
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    names_.add(trace.tensors[t].name);
    by_role_[role_of(trace.tensors[t].name)].push_back(static_cast<TensorId>(t));
  }
}

std::vector<TensorId> TensorRoles::find(std::string_view name) const {
  if (const std::uint32_t place = names_.find(name); place != NameIndex::nothing)
    return {static_cast<TensorId>(place)};
  std::vector<TensorId> found;
  if (name.find('*') == name.npos) return found;
  const auto same_role = by_role_.find(role_of(name));
  if (same_role == by_role_.end()) return found;
  for (const TensorId id : same_role->second)
    if (fits(name, trace_[id].name)) found.push_back(id);
  return found;
}

std::vector<std::string> TensorRoles::names_for(const std::vector<bool>& is_chosen) const {
  std::vector<std::string> names;
  for (std::size_t t = 0; t < is_chosen.size(); ++t) {
    if (!is_chosen[t]) continue;
    const std::string& name = trace_.tensors[t].name;
    std::string role = role_of(name);
    const std::vector<TensorId>& all = by_role_.at(role);
    const bool is_whole =
        all.size() > 1 && names_.find(role) == NameIndex::nothing &&
        std::ranges::all_of(all, [&](TensorId id) { return is_chosen[index(id)]; });
    if (!is_whole) {
      names.push_back(name);
    } else if (all.front() == static_cast<TensorId>(t)) {
      names.push_back(std::move(role));
    }
  }
  return names;
}

std::string_view TensorRoles::nearest(std::string_view name) const {
  if (name.find('*') == name.npos) return nearest_name(name, names_.names());
  std::vector<std::string_view> roles;
  for (const auto& [role, tensors] : by_role_)
    if (tensors.size() > 1) roles.push_back(role);
  return nearest_name(role_of(name), roles);
}

}  // namespace tidemark
