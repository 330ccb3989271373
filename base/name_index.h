// Where the names of a list stand. A trace has millions of names, so the index is two flat arrays
// instead of a map with an allocation for each.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace tidemark {

/// The texts of the names must outlive it.
class NameIndex {
 public:
  static constexpr std::uint32_t nothing = 0xffffffff;

  void reserve(std::size_t count) {
    names_.reserve(count);
    if (count > slots_.size() / 2) grow(count);
  }
  /// Appends a name, and returns where it stands first: at its own place if it is new.
  std::uint32_t add(std::string_view name) {
    const auto place = static_cast<std::uint32_t>(names_.size());
    names_.push_back(name);
    if (names_.size() > slots_.size() / 2) grow(names_.size());
    return insert(hash_of(name), place);
  }
  /// Where it stands first, or nothing.
  std::uint32_t find(std::string_view name) const {
    if (slots_.empty()) return nothing;
    return slots_[slot_of(hash_of(name), name)].place;
  }
  const std::vector<std::string_view>& names() const { return names_; }

 private:
  struct Slot {
    std::uint32_t hash = 0;  // compared first: nearly all others differ
    std::uint32_t place = nothing;
  };

  static std::uint32_t hash_of(std::string_view name) {
    const std::size_t hash = std::hash<std::string_view>()(name);
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
  }
  /// The name's slot, or the free one where it would be. At most half of all are taken.
  std::size_t slot_of(std::uint32_t hash, std::string_view name) const {
    std::size_t slot = hash & (slots_.size() - 1);
    while (slots_[slot].place != nothing &&
           (slots_[slot].hash != hash || names_[slots_[slot].place] != name))
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  std::uint32_t insert(std::uint32_t hash, std::uint32_t place) {
    Slot& slot = slots_[slot_of(hash, names_[place])];
    if (slot.place == nothing) slot = {hash, place};
    return slot.place;
  }
  void grow(std::size_t count) {
    constexpr std::size_t smallest = 16;
    slots_.assign(std::bit_ceil(std::max(smallest, 2 * count)), Slot{});
    for (std::size_t i = 0; i < names_.size(); ++i)
      insert(hash_of(names_[i]), static_cast<std::uint32_t>(i));
  }

  std::vector<std::string_view> names_;  // by place
  std::vector<Slot> slots_;              // their number is a power of two
};

}  // namespace tidemark
