// The chain that fronts are made of: the step's stages, some of them twice.
#pragma once

#include <cstdint>
#include <vector>

namespace tidemark {

/// Stages in order. One whose cost depends on whether the couplings of the stage before are undone
/// is there twice: for where they are not, and behind that for where they are.
struct Links {
  struct Link {
    std::uint32_t stage;
    bool is_behind_undone = false;
  };
  std::vector<Link> all;
  std::vector<std::uint32_t> of_stage;  ///< its first link, and the end

  bool is_first_of_two(std::uint32_t link) const {
    return link + 1 < all.size() && all[link + 1].stage == all[link].stage;
  }
  /// From the link past so many stages, the last of which undoes its couplings or does not.
  std::uint32_t span(std::uint32_t link, std::uint32_t stages, bool undoes) const {
    const std::uint32_t to = of_stage[all[link].stage + stages];
    return to + (undoes && is_first_of_two(to) ? 1 : 0) - link;
  }
};

}  // namespace tidemark
